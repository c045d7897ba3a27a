/**
 * Yields ratios of this checkout to another one, by requests per CPU-second of the service: Check, BatchCheck of 100 and writes of one
 * tuple over HTTP/1.1, Check and BatchCheck over gRPC, requests that are decoded, and calls of the general path. Both services run at the same time and are loaded in turns of a second,
 * so that both see the same machine; the median over the rounds' ratios, and their quartiles.
 * Run: npm run bench -- two-checkouts -- OTHER_DIRECTORY [ROUNDS]; the other checkout has its dependencies installed.
 * BENCH_SECONDS is the length of a turn, BENCH_CASE the name of the only case to run. BENCH_OTHER, as `NAME=VALUE NAME=VALUE`, has settings of
 * the other service alone: with `.` as its directory two settings of one checkout are compared. Prints one JSON line.
 */
import { loadavg } from 'node:os';
import {
  create,
  type DescMessage,
  type MessageInitShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import {
  BatchCheckRequestSchema as QuestionsRequestSchema,
  CheckRequestSchema as QuestionRequestSchema,
} from '../src/gen/gatehouse/v1/query_service_pb.ts';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../src/gen/workspace/v1/authz_service_pb.ts';
import { measureHttp } from './harness/http-rate.ts';
import { enveloped, Http2Generator } from './harness/http2-rate.ts';
import { type Service, startService } from './harness/service.ts';

const [other, rounds = '15'] = process.argv.slice(2);
if (other === undefined) throw new Error('name the directory of the other checkout');
const ROUNDS = Number(rounds);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1);
const CONNECTIONS = 32;
const SERVICE = '/workspace.v1.AuthzService';
const QUERIES = '/gatehouse.v1.QueryService';
const HEALTH = '/grpc.health.v1.Health';
const OBJECTS = 500;
const BATCH = 100;

type Case = { readonly name: string; readonly perCpuSecond: (of: Service) => Promise<number> };

const questions = Array.from({ length: OBJECTS }, (_, i) => ({
  namespace: 'resource',
  objectId: `doc-${(i * 7) % OBJECTS}`,
  relation: 'viewer',
  subjectUserId: 'alice',
}));
const batches = Array.from({ length: 20 }, (_, i) =>
  Array.from({ length: BATCH }, (_item, j) => questions[(i * BATCH + j) % OBJECTS] ?? {}),
);
const writes = Array.from({ length: 2_000 }, (_, i) => ({
  updates: [{ op: 'OP_INSERT', tuple: tupleOf(`written-${i}`, `user-${i % 50}`) }],
}));
/** Questions of gatehouse.v1, each with one contextual tuple. */
const contextual = questions.map(({ objectId, relation, subjectUserId, namespace }, i) => ({
  scope: {
    contextualTuples: [
      { namespace, objectId, relation, subject: { kind: { case: 'userId', value: `guest-${i}` } } },
    ],
  },
  question: {
    namespace,
    objectId,
    relation,
    subject: { kind: { case: 'userId', value: subjectUserId } },
  },
})) satisfies MessageInitShape<typeof QuestionRequestSchema>[];
const asJson = <Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): object =>
  toJson(desc, create(desc, init)) as object;
const generator = new Http2Generator();

function tupleOf(objectId: string, userId: string): object {
  const subject = { user_id: userId };
  return { namespace: 'resource', object_id: objectId, relation: 'viewer', subject };
}

function overHttp1(
  name: string,
  method: string,
  bodies: readonly object[],
  service = SERVICE,
): Case {
  const texts = bodies.map((body) => JSON.stringify(body));
  return {
    name,
    perCpuSecond: async (of) => {
      const rate = await measureHttp({
        port: Number(new URL(of.baseUrl).port),
        pid: of.pid,
        path: `${service}/${method}`,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${of.token}` },
        bodies: texts,
        connections: CONNECTIONS,
        seconds: SECONDS,
      });
      return rate.perCpuSecond;
    },
  };
}

function overGrpc(
  name: string,
  method: string,
  messages: readonly Uint8Array[],
  service = SERVICE,
): Case {
  const bodies = messages.map((message) => enveloped(message).toString('base64'));
  return {
    name,
    perCpuSecond: async (of) => {
      const rate = await generator.measure(
        {
          port: Number(new URL(of.baseUrl).port),
          path: `${service}/${method}`,
          headers: {
            authorization: `Bearer ${of.token}`,
            te: 'trailers',
            'content-type': 'application/grpc',
          },
          bodies,
          hasTrailers: true,
          connections: 1,
          streams: CONNECTIONS,
          seconds: SECONDS,
          perSecond: 0,
        },
        of.pid,
      );
      return rate.perCpuSecond;
    },
  };
}

const CASES: readonly Case[] = [
  overHttp1('check', 'Check', questions),
  overGrpc(
    'grpcCheck',
    'Check',
    questions.map((one) => toBinary(CheckRequestSchema, create(CheckRequestSchema, one))),
  ),
  overHttp1(
    'batch',
    'BatchCheck',
    batches.map((items) => ({ items })),
  ),
  overGrpc(
    'grpcBatch',
    'BatchCheck',
    batches.map((items) =>
      toBinary(BatchCheckRequestSchema, create(BatchCheckRequestSchema, { items })),
    ),
  ),
  overHttp1('write', 'WriteRelationTuples', writes),
  // Requests that no scanner takes.
  overHttp1(
    'usersetCheck',
    'Check',
    questions.map(({ subjectUserId: _user, ...object }) => ({ ...object, subjectSet: object })),
  ),
  overHttp1(
    'longContextCheck',
    'Check',
    questions.map((one) => ({ ...one, context: { agent: 'x'.repeat(20_000) } })),
  ),
  overHttp1(
    'oddBatch',
    'BatchCheck',
    batches.map((items) => ({ items: items.map((item) => ({ ...item, objectId: 'doc-"1"' })) })),
  ),
  overHttp1(
    'contextualCheck',
    'Check',
    contextual.map((one) => asJson(QuestionRequestSchema, one)),
    QUERIES,
  ),
  overHttp1(
    'exactCheck',
    'Check',
    contextual.map(({ question: { subject: _user, ...object } }) => ({
      scope: { usersetMode: 'USERSET_MODE_EXACT' },
      question: { ...object, subject: { set: { ...object, objectId: 'doc-1' } } },
    })),
    QUERIES,
  ),
  overGrpc(
    'grpcContextualCheck',
    'Check',
    contextual.map((one) => toBinary(QuestionRequestSchema, create(QuestionRequestSchema, one))),
    QUERIES,
  ),
  overHttp1(
    'questions',
    'BatchCheck',
    batches.map((_items, i) => {
      const items = contextual.slice(i * 20, i * 20 + BATCH).map(({ question }) => ({ question }));
      return asJson(QuestionsRequestSchema, { items });
    }),
    QUERIES,
  ),
  // The general path, and next to nothing behind it.
  overHttp1('health', 'Check', [{}], HEALTH),
  overGrpc('grpcHealth', 'Check', [new Uint8Array(0)], HEALTH),
];

const settings = { GATEWAY_WORKERS: '1' };
const ofOther = (process.env['BENCH_OTHER'] ?? '').split(' ').filter((pair) => pair !== '');
const otherSettings = {
  ...settings,
  ...Object.fromEntries(ofOther.map((pair) => pair.split('=', 2) as [string, string])),
};
const services: Service[] = [];
try {
  services.push(await startService(settings), await startService(otherSettings, other));
  const [own, its] = services as [Service, Service];
  await Promise.all([own, its].map(writeGrants));
  const results: Record<string, object> = {};
  for (const { name, perCpuSecond } of CASES) {
    if (![undefined, name].includes(process.env['BENCH_CASE'])) continue;
    const figures: { own: number; other: number }[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const isFirst = round % 2 === 0;
      const before = isFirst ? await perCpuSecond(own) : 0;
      const figure = await perCpuSecond(its);
      const pair = { own: isFirst ? before : await perCpuSecond(own), other: figure };
      // The first round warms both up.
      if (round > 0) figures.push(pair);
    }
    results[name] = {
      ratio: quantile(
        figures.map((pair) => pair.own / pair.other),
        0.5,
      ),
      quartiles: [0.25, 0.75].map((q) =>
        quantile(
          figures.map((pair) => pair.own / pair.other),
          q,
        ),
      ),
      perCpuSecond: quantile(
        figures.map((pair) => pair.own),
        0.5,
      ),
      perCpuSecondOfOther: quantile(
        figures.map((pair) => pair.other),
        0.5,
      ),
    };
    process.stderr.write(`${name} ${JSON.stringify(results[name])}\n`);
  }
  const load = loadavg().map((one) => Math.round(one * 10) / 10);
  process.stdout.write(
    `${JSON.stringify({ bench: 'two-checkouts', rounds: ROUNDS, seconds: SECONDS, load, ...results })}\n`,
  );
} finally {
  generator.stop();
  for (const service of services) await service.stop();
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN) * 1000) / 1000;
}

/** Half of the objects are alice's to view. */
async function writeGrants(to: Service): Promise<void> {
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: tupleOf(`doc-${i}`, i % 2 === 0 ? 'alice' : `user-${i}`),
  }));
  const response = await fetch(`${to.baseUrl}${SERVICE}/WriteRelationTuples`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${to.token}` },
    body: JSON.stringify({ updates }),
  });
  if (response.status !== 200) throw new Error(`HTTP ${response.status} ${await response.text()}`);
}
