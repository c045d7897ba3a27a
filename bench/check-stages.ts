/**
 * Yields where the time of a Check goes, ns a call by stage, over HTTP/1.1 and over gRPC, and of a Check of gatehouse.v1 with a contextual tuple, at saturation and at half of that
 * rate; what the threads of the service take beside what the stages say (user and system), and what measuring costs: Checks
 * a CPU-second with the counters on over those without, in turns.
 * Run: npm run bench -- check-stages, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS. Prints one JSON line for each.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { create, toBinary, toJson } from '@bufbuild/protobuf';
import { CheckRequestSchema as QuestionSchema } from '../src/gen/gatehouse/v1/query_service_pb.ts';
import { CheckRequestSchema } from '../src/gen/workspace/v1/authz_service_pb.ts';
import { measurePaced } from './harness/http-paced.ts';
import { measureHttp } from './harness/http-rate.ts';
import { enveloped, Http2Generator, type Http2Job } from './harness/http2-rate.ts';
import { type Service, startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const PATH = '/workspace.v1.AuthzService/Check';
const QUESTION_PATH = '/gatehouse.v1.QueryService/Check';
const OBJECTS = 500;
const TICK_US = 10_000;

type Rate = { readonly perSecond: number; readonly perCpuSecond: number };
/** Puts a load of so many calls a second on a service; 0 is as many as it takes. */
type Load = (service: Service, perSecond: number) => Promise<Rate>;

const questions = Array.from({ length: OBJECTS }, (_, i) => ({
  namespace: 'resource',
  objectId: `doc-${(i * 7) % OBJECTS}`,
  relation: 'viewer',
  subjectUserId: 'alice',
}));
const checks = questions.map((one) => create(CheckRequestSchema, one));
const contextual = questions
  .slice(0, 200)
  .map(({ namespace, objectId, relation, subjectUserId: value }) => {
    const of = { namespace, objectId, relation };
    const tuple = { ...of, subject: { kind: { case: 'userId' as const, value: 'guest' } } };
    const subject = { kind: { case: 'userId' as const, value } };
    return create(QuestionSchema, {
      scope: { contextualTuples: [tuple] },
      question: { ...of, subject },
    });
  });
const generator = new Http2Generator();
/** Each with the carrier under which its stages are counted. */
const LOADS: Readonly<Record<string, readonly [string, Load]>> = {
  http1: [
    'http1',
    overHttp1(
      PATH,
      checks.map((one) => toJson(CheckRequestSchema, one)),
    ),
  ],
  http2: [
    'http2',
    overGrpc(
      PATH,
      checks.map((one) => toBinary(CheckRequestSchema, one)),
    ),
  ],
  http1Contextual: [
    'http1',
    overHttp1(
      QUESTION_PATH,
      contextual.map((one) => toJson(QuestionSchema, one)),
    ),
  ],
  http2Contextual: [
    'http2',
    overGrpc(
      QUESTION_PATH,
      contextual.map((one) => toBinary(QuestionSchema, one)),
    ),
  ],
};
const [measured, plain] = await Promise.all([
  startService({ GATEWAY_WORKERS: '1', GATEWAY_STAGE_TIMES: 'true' }),
  startService({ GATEWAY_WORKERS: '1' }),
]);
try {
  for (const service of [measured, plain]) await writeGrants(service);
  for (const [name, [carrier, load]] of Object.entries(LOADS)) {
    if (![undefined, name].includes(process.env['BENCH_CASE'])) continue;
    await load(measured, 0);
    await load(plain, 0);
    const cost: number[] = [];
    const rates: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [on, off] = [await load(measured, 0), await load(plain, 0)];
      cost.push(on.perCpuSecond / off.perCpuSecond);
      rates.push(on.perSecond);
    }
    const half = median(rates) / 2;
    for (const [rate, perSecond] of Object.entries({ saturation: 0, half })) {
      const rounds: Readonly<Record<string, number>>[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const before = await figuresOf(measured);
        await load(measured, perSecond);
        rounds.push(perCall(before, await figuresOf(measured), carrier));
      }
      const found = [...new Set(rounds.flatMap((round) => Object.keys(round)))];
      const stages = Object.fromEntries(
        found.map((stage) => [stage, median(rounds.map((round) => round[stage] ?? 0))]),
      );
      process.stdout.write(`${JSON.stringify({ bench: 'check-stages', name, rate, stages })}\n`);
    }
    const onOverOff = Math.round(median(cost) * 1000) / 1000;
    process.stdout.write(`${JSON.stringify({ bench: 'check-stages', name, onOverOff })}\n`);
  }
} finally {
  generator.stop();
  await measured.stop();
  await plain.stop();
}

function overHttp1(path: string, bodies: readonly unknown[]): Load {
  const texts = bodies.map((body) => JSON.stringify(body));
  return ({ baseUrl, pid, token }, perSecond) => {
    const load = {
      port: Number(new URL(baseUrl).port),
      pid,
      path,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      bodies: texts,
      connections: CONNECTIONS,
      seconds: SECONDS,
    };
    if (perSecond === 0) return measureHttp(load);
    return measurePaced({ ...load, perSecond }).then((rate) => ({
      perSecond: rate.perSecond,
      perCpuSecond: 1e6 / rate.cpuUs,
    }));
  };
}

function overGrpc(path: string, messages: readonly Uint8Array[]): Load {
  const bodies = messages.map((message) => enveloped(message).toString('base64'));
  return ({ baseUrl, pid, token }, perSecond) => {
    const job: Http2Job = {
      port: Number(new URL(baseUrl).port),
      path,
      headers: {
        authorization: `Bearer ${token}`,
        te: 'trailers',
        'content-type': 'application/grpc',
        'user-agent': 'bench',
      },
      bodies,
      hasTrailers: true,
      connections: 1,
      streams: CONNECTIONS,
      seconds: SECONDS,
      perSecond,
    };
    return generator.measure(job, pid);
  };
}

/** Seconds and counts by `carrier stage`, and microseconds by thread. */
type Figures = {
  readonly seconds: ReadonlyMap<string, number>;
  readonly calls: ReadonlyMap<string, number>;
  readonly threadUs: ReadonlyMap<string, number>;
};

async function figuresOf({ metricsUrl, pid }: Service): Promise<Figures> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const line = /^gatehouse_stage_(\w+)_total\{carrier="(\w+)",stage="(\w+)"\} (\S+)$/gm;
  const seconds = new Map<string, number>();
  const calls = new Map<string, number>();
  for (const [, family, carrier, stage, value] of text.matchAll(line)) {
    (family === 'seconds' ? seconds : calls).set(`${carrier} ${stage}`, Number(value));
  }
  return { seconds, calls, threadUs: threadsOf(pid) };
}

/** User and system time of each thread, microseconds. */
function threadsOf(pid: number): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    found.set(`${thread} user`, Number(fields[11]) * TICK_US);
    found.set(`${thread} system`, Number(fields[12]) * TICK_US);
  }
  return found;
}

/** Of what passed between two looks: ns a call by stage, batches a call, and CPU of threads that had any to speak of. */
function perCall(before: Figures, after: Figures, carrier: string): Record<string, number> {
  const grown = (key: 'seconds' | 'calls', name: string): number =>
    (after[key].get(name) ?? 0) - (before[key].get(name) ?? 0);
  const calls = grown('calls', `${carrier} write`);
  const found: Record<string, number> = {};
  for (const name of after.seconds.keys()) {
    const [of, stage] = name.split(' ') as [string, string];
    if (of !== carrier && of !== 'any') continue;
    // What passes between two calls is not seen of the first one of a turn: its mean stands for it.
    const isSeldomSeen = ['socket', 'body', 'waiting', 'hop_out', 'hop_back'].includes(stage);
    const count = isSeldomSeen ? grown('calls', name) : calls;
    found[stage] = Math.round((grown('seconds', name) * 1e9) / Math.max(1, count));
  }
  found['callsOfBatch'] = Math.round((calls / grown('calls', 'any hop_out')) * 10) / 10;
  // The main thread has the number of the process; the others are told by what they took.
  const threads = [...after.threadUs].map(([name, us]): [string, number] => [
    name,
    ((us - (before.threadUs.get(name) ?? 0)) * 1_000) / calls,
  ]);
  const main = Math.min(...[...after.threadUs.keys()].map((name) => Number(name.split(' ')[0])));
  let others = 0;
  for (const [name, ns] of threads) {
    const [thread, kind] = name.split(' ') as [string, string];
    if (Number(thread) === main) found[`gateway ${kind}`] = Math.round(ns);
    else others += ns;
  }
  found['all other threads'] = Math.round(others);
  return found;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
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
  const response = await fetch(`${baseUrl}/workspace.v1.AuthzService/WriteRelationTuples`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ updates }),
  });
  if (response.status !== 200) throw new Error(`HTTP ${response.status} ${await response.text()}`);
}
