/**
 * Yields what HTTP/2 on framing of our own makes of gRPC beside node:http2: Check and BatchCheck of 100 with a bearer token against two
 * services that differ in GATEWAY_HTTP2 alone, per second, per CPU-second of the service, and the p99 at half of the slower one's rate. All in one
 * run, in turns; medians of the rounds, and of their ratios.
 * Run: npm run bench -- grpc-framing, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS, BENCH_STREAMS (of each connection). Prints one
 * JSON line.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { type Service, startService } from '../load/harness/service.ts';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../src/gen/workspace/v1/authz_service_pb.ts';
import { enveloped, Http2Generator, type Http2Rate } from './harness/http2-rate.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 1);
const STREAMS = Number(process.env['BENCH_STREAMS'] ?? 32);
const SERVICE = '/workspace.v1.AuthzService';
const OBJECTS = 500;
const BATCH = 100;

type Figures = Record<'own' | 'node', Http2Rate>;

const questions = Array.from({ length: OBJECTS }, (_, i) => ({
  namespace: 'resource',
  objectId: `doc-${(i * 7) % OBJECTS}`,
  relation: 'viewer',
  subjectUserId: 'alice',
}));
const checks = questions.map((one) =>
  toBinary(CheckRequestSchema, create(CheckRequestSchema, one)),
);
const batches = Array.from({ length: 20 }, (_, i) => {
  const items = Array.from({ length: BATCH }, (_item, j) => questions[(i * BATCH + j) % OBJECTS]);
  const message = create(BatchCheckRequestSchema, { items: items.map((item) => item ?? {}) });
  return toBinary(BatchCheckRequestSchema, message);
});

const own = await startService({ GATEWAY_WORKERS: '1', GATEWAY_HTTP2: 'own' });
const node = await startService({ GATEWAY_WORKERS: '1', GATEWAY_HTTP2: 'node' });
const generator = new Http2Generator();
try {
  for (const service of [own, node]) await writeGrants(service);
  const check = await inTurns('Check', checks, 0);
  const half = Math.min(check.own.perSecond, check.node.perSecond) / 2;
  const result = {
    bench: 'grpc-framing',
    connections: CONNECTIONS,
    streams: STREAMS,
    check,
    checkAtHalf: await inTurns('Check', checks, half),
    batch: await inTurns('BatchCheck', batches, 0),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  generator.stop();
  await Promise.all([own.stop(), node.stop()]);
}

function load(
  { baseUrl, token, pid }: Service,
  method: string,
  bodies: readonly Uint8Array[],
  perSecond: number,
): Promise<Http2Rate> {
  const job = {
    port: Number(new URL(baseUrl).port),
    path: `${SERVICE}/${method}`,
    headers: {
      authorization: `Bearer ${token}`,
      te: 'trailers',
      'content-type': 'application/grpc',
      'user-agent': 'bench',
    },
    bodies: bodies.map((body) => enveloped(body).toString('base64')),
    hasTrailers: true,
    connections: CONNECTIONS,
    streams: STREAMS,
    seconds: SECONDS,
    perSecond,
  };
  return generator.measure(job, pid);
}

/** Rounds of both in turns, each beginning every other one; the first is not counted. */
async function inTurns(
  method: string,
  bodies: readonly Uint8Array[],
  perSecond: number,
): Promise<Figures & { readonly ratio: Http2Rate }> {
  const rounds: Figures[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const isOwnFirst = round % 2 === 0;
    const first = await load(isOwnFirst ? own : node, method, bodies, perSecond);
    const second = await load(isOwnFirst ? node : own, method, bodies, perSecond);
    rounds.push(isOwnFirst ? { own: first, node: second } : { own: second, node: first });
  }
  rounds.shift();
  const medians = (figure: (round: Figures, key: keyof Http2Rate) => number): Http2Rate => {
    const of = (key: keyof Http2Rate): number => {
      const values = rounds.map((round) => figure(round, key)).toSorted((a, b) => a - b);
      return Math.round((values[values.length >> 1] ?? Number.NaN) * 1_000) / 1_000;
    };
    return {
      perSecond: of('perSecond'),
      perCpuSecond: of('perCpuSecond'),
      p50Ms: of('p50Ms'),
      p99Ms: of('p99Ms'),
    };
  };
  return {
    own: medians((round, key) => round.own[key]),
    node: medians((round, key) => round.node[key]),
    ratio: medians((round, key) => round.own[key] / round.node[key]),
  };
}

/** Half of the objects are alice's to view. */
async function writeGrants({ baseUrl, token }: Service): Promise<void> {
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `doc-${i}`,
      relation: 'viewer',
      subject: { user_id: i % 2 === 0 ? 'alice' : `user-${i}` },
    },
  }));
  const response = await fetch(`${baseUrl}${SERVICE}/WriteRelationTuples`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ updates }),
  });
  if (response.status !== 200) throw new Error(`HTTP ${response.status} ${await response.text()}`);
}
