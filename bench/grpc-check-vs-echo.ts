/**
 * Yields ratios of a real Check over gRPC with a bearer token to a raw node:http2 server of the same shape (core
 * streams, head and trailers made beforehand): per second, per CPU-second of the server, and of the p99 at half of each one's
 * rate; to the general path, which the same call in another spelling of its content type takes; and of items of a
 * BatchCheck of 100 over gRPC to those over HTTP/1.1 JSON. All in one run, in turns; medians of the rounds' ratios.
 * Run: npm run bench -- grpc-check-vs-echo, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS, BENCH_STREAMS (of each
 * connection), BENCH_GENERATOR=own (for HTTP/1.1). Prints one JSON line.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../src/gen/workspace/v1/authz_service_pb.ts';
import { measureHttp } from './harness/http-rate.ts';
import { enveloped, Http2Generator, type Http2Rate } from './harness/http2-rate.ts';
import { startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 1);
const STREAMS = Number(process.env['BENCH_STREAMS'] ?? 32);
const SERVICE = '/workspace.v1.AuthzService';
const OBJECTS = 500;
const BATCH = 100;

type Rate = { readonly perSecond: number; readonly perCpuSecond: number };
type Measure<R extends Rate> = () => Promise<R>;

const service = await startService({ GATEWAY_WORKERS: '1' });
const echo = spawn(process.execPath, ['bench/grpc-echo-server.ts'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const generator = new Http2Generator();
try {
  const [said] = (await once(echo.stdout, 'data')) as [Buffer];
  const target = { port: Number(new URL(service.baseUrl).port), pid: service.pid };
  const yardstick = { port: Number(said.toString().trim()), pid: echo.pid ?? 0 };
  await writeGrants();
  const questions = Array.from({ length: OBJECTS }, (_, i) => ({
    namespace: 'resource',
    objectId: `doc-${(i * 7) % OBJECTS}`,
    relation: 'viewer',
    subjectUserId: 'alice',
  }));
  const checks = questions.map((one) =>
    toBinary(CheckRequestSchema, create(CheckRequestSchema, one)),
  );
  const batches = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: BATCH }, (_item, j) => questions[(i * BATCH + j) % OBJECTS]),
  );
  const load = (
    { port, pid }: typeof target,
    method: string,
    bodies: readonly Uint8Array[],
    { contentType = 'application/grpc', perSecond = 0 } = {},
  ): Promise<Http2Rate> => {
    const headers = { authorization: `Bearer ${service.token}`, te: 'trailers' };
    const job = {
      port,
      path: `${SERVICE}/${method}`,
      headers: { ...headers, 'content-type': contentType, 'user-agent': 'bench' },
      bodies: bodies.map((body) => enveloped(body).toString('base64')),
      hasTrailers: true,
      connections: CONNECTIONS,
      streams: STREAMS,
      seconds: SECONDS,
      perSecond,
    };
    return generator.measure(job, pid);
  };
  const check = (): Promise<Http2Rate> => load(target, 'Check', checks);
  const raw = (): Promise<Http2Rate> => load(yardstick, 'Check', checks);
  const generalType = { contentType: 'Application/grpc' };
  const general = (): Promise<Http2Rate> => load(target, 'Check', checks, generalType);
  const ofEcho = await inTurns(check, raw);
  const ofGeneral = await inTurns(check, general);
  const rates = [ofEcho.perSecond, ofEcho.perSecondOfOther].map((rate) => rate / 2);
  const half = await inTurns(
    () => load(target, 'Check', checks, { perSecond: rates[0] ?? 0 }),
    () => load(yardstick, 'Check', checks, { perSecond: rates[1] ?? 0 }),
  );
  const batchBodies = batches.map((items) =>
    toBinary(
      BatchCheckRequestSchema,
      create(BatchCheckRequestSchema, { items: items.map((item) => item ?? {}) }),
    ),
  );
  const ofHttp1 = await inTurns(
    () => load(target, 'BatchCheck', batchBodies),
    () =>
      measureHttp({
        ...target,
        path: `${SERVICE}/BatchCheck`,
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${service.token}`,
        },
        bodies: batches.map((items) => JSON.stringify({ items })),
        connections: CONNECTIONS * STREAMS,
        seconds: SECONDS,
      }),
  );
  const result = {
    bench: 'grpc-check-vs-echo',
    connections: CONNECTIONS,
    streams: STREAMS,
    checkOfEcho: ofEcho,
    checkOfGeneral: ofGeneral,
    halfRate: {
      p99Ms: median(half.rounds.map((one) => one.p99Ms)),
      p99MsOfEcho: median(half.otherRounds.map((one) => one.p99Ms)),
      p99Ratio: rounded(
        median(half.rounds.map((one, i) => one.p99Ms / (half.otherRounds[i]?.p99Ms ?? Number.NaN))),
      ),
    },
    batchOfHttp1: ofHttp1,
  };
  // The rounds are for who looks at one alone.
  const text = JSON.stringify(result, (key, value: unknown) =>
    key === 'rounds' || key === 'otherRounds' ? undefined : value,
  );
  process.stdout.write(`${text}\n`);
} finally {
  generator.stop();
  echo.kill();
  await service.stop();
}

/** Rounds of both in turns, each beginning every other one; the first of each is not counted. */
async function inTurns<A extends Rate, B extends Rate>(
  one: Measure<A>,
  other: Measure<B>,
): Promise<{
  readonly perSecond: number;
  readonly perSecondOfOther: number;
  readonly ratio: number;
  readonly ratioPerCpuSecond: number;
  readonly perCpuSecond: number;
  readonly perCpuSecondOfOther: number;
  readonly rounds: readonly A[];
  readonly otherRounds: readonly B[];
}> {
  const rounds: A[] = [];
  const otherRounds: B[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    if (round % 2 === 0) rounds.push(await one());
    otherRounds.push(await other());
    if (round % 2 === 1) rounds.push(await one());
  }
  rounds.shift();
  otherRounds.shift();
  const ratioOf = (key: keyof Rate): number =>
    rounded(median(rounds.map((rate, i) => rate[key] / (otherRounds[i]?.[key] ?? Number.NaN))));
  return {
    perSecond: median(rounds.map((rate) => rate.perSecond)),
    perSecondOfOther: median(otherRounds.map((rate) => rate.perSecond)),
    perCpuSecond: median(rounds.map((rate) => rate.perCpuSecond)),
    perCpuSecondOfOther: median(otherRounds.map((rate) => rate.perCpuSecond)),
    ratio: ratioOf('perSecond'),
    ratioPerCpuSecond: ratioOf('perCpuSecond'),
    rounds,
    otherRounds,
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Half of the objects are alice's to view. */
async function writeGrants(): Promise<void> {
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `doc-${i}`,
      relation: 'viewer',
      subject: { user_id: i % 2 === 0 ? 'alice' : `user-${i}` },
    },
  }));
  const response = await fetch(`${service.baseUrl}${SERVICE}/WriteRelationTuples`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${service.token}` },
    body: JSON.stringify({ updates }),
  });
  if (response.status !== 200) throw new Error(`HTTP ${response.status} ${await response.text()}`);
}
