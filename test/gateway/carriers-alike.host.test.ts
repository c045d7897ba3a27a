import { request as requestHttp1 } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  create,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type JsonValue,
  toBinary,
  toJson,
  toJsonString,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { createCallerPort } from '../../src/gateway/connect/caller-port.ts';
import { AUTHZ_ERRORS, malformedMessage } from '../../src/gateway/connect/connect-error.ts';
import { DecisionReader } from '../../src/gateway/hot/decision-reader.ts';
import { FramedDecisions } from '../../src/gateway/hot/framed-decisions.ts';
import { HOT_METHODS } from '../../src/gateway/hot/hot-methods.ts';
import { RawDecisions } from '../../src/gateway/hot/raw-decisions.ts';
import { ReadScopes } from '../../src/gateway/reads/read-scopes.ts';
import { createAuthzService } from '../../src/gateway/rpc/authz-service.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import {
  AuthzService,
  CheckRequestSchema,
  CheckResponseSchema,
  ListObjectsRequestSchema,
  ListObjectsResponseSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import { createConnectAdapter } from '../../src/http/connect/adapter.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../../src/http/exchange/unread-answers.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { TokenCodec } from '../../src/model/consistency-token.ts';
import type { RawAnswer, ShardClient } from '../../src/protocol/shard-client.ts';
import type { ProjectSettings } from '../../src/services/projects/project-settings.ts';
import { ReadPositions } from '../../src/services/reads/read-positions.ts';
import type { TupleService } from '../../src/services/tuples/tuple-service.ts';
import { ANSWER_JSON } from '../../src/shared/answer-json.ts';
import type { IndexRow } from '../../src/store/sql/reads/read-index.ts';
import { callersOf } from '../support/callers.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { indexOver, rowAt } from '../support/read-index.ts';

/*
 * One call goes down every carrier at once, over both listeners, the hot path and what it leaves to the general one, and all must
 * answer alike: at the end of a stated time, with gzip either way, with too large a body, and while a read waits for
 * the read index beside a second instance, or for its worker. Workers and PostgreSQL answer when the test says so.
 */
const RUNS = Math.ceil(60 * Number(process.env['FUZZ_RUNS'] ?? 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const BODY_BYTES_MAX = 100_000;
const SHORT_MS = 40;
const LONG_MS = 60_000;
/** Enough for an answer that is compressed. */
const OBJECTS = Array.from({ length: 300 }, (_, i) => `d${i}`);

const CARRIERS = [
  { name: 'Connect over HTTP/1.1', protocol: 'connect', version: 1 },
  { name: 'Connect over HTTP/2', protocol: 'connect', version: 2 },
  { name: 'gRPC', protocol: 'grpc', version: 2 },
  { name: 'gRPC-Web over HTTP/1.1', protocol: 'grpc-web', version: 1 },
  { name: 'gRPC-Web over HTTP/2', protocol: 'grpc-web', version: 2 },
] as const;
type Carrier = (typeof CARRIERS)[number];

const METHODS = {
  Check: {
    request: CheckRequestSchema,
    response: CheckResponseSchema,
    fields: { namespace: 'doc', objectId: 'd1', relation: 'viewer', subjectUserId: 'ann' },
    right: { allowed: true },
  },
  ListObjects: {
    request: ListObjectsRequestSchema,
    response: ListObjectsResponseSchema,
    fields: { namespace: 'doc', relation: 'viewer', subjectUserId: 'ann' },
    right: { object_ids: OBJECTS },
  },
} as const;
type Method = keyof typeof METHODS;

const SETTINGS: ProjectSettings = {
  projectId: 'default',
  suspended: false,
  dataRegion: '',
  regionServed: true,
  readBudget: 10,
  version: 1,
  modelVersion: 1,
  modelJson: '',
  writeRules: 0,
  pendingJson: '',
  refusesUnknown: false,
};

/** What answers when it is told to: calls of `hold` wait while it is held. */
class Gate {
  isHeld = false;
  waiting: (() => void)[] = [];

  /** Calls `answer` at once, or when the gate opens; what it returns takes the call out. */
  hold(answer: () => void): () => void {
    if (!this.isHeld) {
      queueMicrotask(answer);
      return () => undefined;
    }
    this.waiting.push(answer);
    return () => {
      this.waiting = this.waiting.filter((one) => one !== answer);
    };
  }

  open(): void {
    this.isHeld = false;
    for (const answer of this.waiting.splice(0)) answer();
  }
}

const store = new Gate();
const worker = new Gate();
const { headRevisions: heads, index } = indexOver(
  [
    (asks) =>
      new Promise<readonly IndexRow[]>((resolve) => {
        store.hold(() => resolve(asks.map((_, at) => rowAt(at, 5))));
      }),
  ],
  { clock: { nowMs: () => 0, monotonicMs: () => 0 } },
);
const codec = new TokenCodec({ key: Buffer.alloc(32, 1), rememberMax: 100 });
const scopes = new ReadScopes({
  settingsSource: {
    peek: () => SETTINGS,
    known: () => SETTINGS,
    load: () => Promise.resolve(SETTINGS),
    settings: () => Promise.resolve(SETTINGS),
    confirm: () => SETTINGS,
    atLeast: () => Promise.resolve(SETTINGS),
    mustBeAtLeast: () => undefined,
    guard: () => undefined,
    resolveId: (id) => id,
  },
  positions: new ReadPositions({ codec, headRevisions: heads, index }),
  index,
  isAlone: () => false,
});

function unexpected(): never {
  throw new Error('nobody asks for this here');
}

const shards: ShardClient = {
  raw: (method, format, _body, _scope, _expected, onAnswer) => {
    const { response, right } = method === 'check' ? METHODS.Check : METHODS.ListObjects;
    const answer: RawAnswer =
      method === 'check'
        ? { kind: 'allowed' }
        : { kind: 'body', body: encoded(response, messageOf(response, right), format === 'json') };
    return { cancel: worker.hold(() => onAnswer(answer)) };
  },
  refusalBefore: () => null,
  query: unexpected,
  setModel: unexpected,
  hint: unexpected,
  applyCarried: unexpected,
  applyCommitted: unexpected,
};

const failures: unknown[] = [];
const meter = {
  ended: () => undefined,
  failed: () => undefined,
  measure: <T>(_rpc: string, work: () => Promise<T>): Promise<T> => work(),
};
const bodyBudget = new BodyBudget();
const limits = { bodyBytesMax: BODY_BYTES_MAX, compressMinBytes: 1_024, timeoutMsMax: LONG_MS };
const general = createConnectAdapter({
  routes: (router) => {
    const service = createAuthzService({
      tuples: {} as TupleService,
      shards,
      scopes,
      meter: meter as unknown as Parameters<typeof createAuthzService>[0]['meter'],
      batchItemsMax: 100,
      timeoutMsMax: LONG_MS,
    });
    router.service(AuthzService, { check: service.check, listObjects: service.listObjects });
  },
  callers: createCallerPort(),
  errors: AUTHZ_ERRORS,
  malformed: malformedMessage,
  readMaxBytes: BODY_BYTES_MAX,
  bodyBudget,
  report: (failure) => void failures.push(failure),
});
const reader = new DecisionReader({});
const versions = { peek: () => undefined };
const shared = {
  callers: callersOf(),
  shards,
  scopes,
  versions,
  meter,
  general,
  bodyBudget,
  reader,
};
const parts = { ...shared, ...limits };
const raw = new RawDecisions(parts);
const framed = new FramedDecisions({
  ...parts,
  unread: new UnreadAnswers({
    bytesMax: UNREAD_BYTES_MAX,
    stallMs: 60_000,
    onDropped: (bytes) => void failures.push(bytes),
  }),
});
const server = createHttpServer({
  host: '127.0.0.1',
  port: 0,
  http2: {
    onStream: (stream, headers, deadlines) => framed.handleStream(stream, headers, deadlines),
  },
});
for (const hot of HOT_METHODS) {
  server.route('POST', hot.path, (exchange) => raw.handle(exchange, hot));
}
const { port } = await server.listen();
let session: ClientHttp2Session | undefined;
afterAll(async () => {
  session?.destroy();
  index.stop();
  await server.stop(0);
  expect(failures).toEqual([]);
});

type Case = {
  readonly method: Method;
  readonly isJson: boolean;
  readonly isGzip: boolean;
  readonly acceptsGzip: boolean;
  /** 'large' is beyond what a hot method reads, 'too large' beyond every body; with gzip, once it is unpacked. */
  readonly size: 'small' | 'large' | 'too large';
  readonly waits: 'not' | 'for the read index' | 'for the worker';
  readonly time: 'none' | 'enough' | 'too short';
};

/** What a caller learns, however it was framed. */
type Outcome = {
  readonly code: string;
  readonly message: string;
  readonly info: JsonValue;
  readonly answer: JsonValue;
  readonly isCompressed: boolean;
};

const cases: fc.Arbitrary<Case> = fc
  .record({
    method: fc.constantFrom('Check', 'ListObjects'),
    isJson: fc.boolean(),
    isGzip: fc.boolean(),
    acceptsGzip: fc.boolean(),
    size: fc.constantFrom('small', 'small', 'large', 'too large'),
    waits: fc.constantFrom('not', 'for the read index', 'for the worker'),
    time: fc.constantFrom('none', 'enough', 'too short'),
  } as const)
  // What is answered at once, or refused at once, may be so before or after a time that is too short.
  .filter(
    ({ size, waits, time }) => time !== 'too short' || (size !== 'too large' && waits !== 'not'),
  );

const PLAIN: Case = {
  method: 'Check',
  isJson: true,
  isGzip: false,
  acceptsGzip: true,
  size: 'small',
  waits: 'not',
  time: 'none',
};
/** Tried in every run, whatever is drawn. */
const ALWAYS: readonly Case[] = [
  PLAIN,
  { ...PLAIN, size: 'too large' },
  { ...PLAIN, size: 'too large', isGzip: true, isJson: false },
  ...(['for the read index', 'for the worker'] as const).flatMap((waits): Case[] => [
    { ...PLAIN, waits },
    { ...PLAIN, waits, time: 'too short' },
    { ...PLAIN, waits, time: 'too short', isGzip: true, size: 'large' },
    { ...PLAIN, waits, method: 'ListObjects', time: 'enough' },
  ]),
];

function messageOf(schema: DescMessage, fields: object) {
  return fromJsonString(schema, JSON.stringify(fields));
}

function encoded(
  schema: DescMessage,
  message: ReturnType<typeof messageOf>,
  isJson: boolean,
): Buffer {
  return isJson
    ? Buffer.from(toJsonString(schema, message, { useProtoFieldName: true }))
    : Buffer.from(toBinary(schema, message));
}

/** A request of the size; blanks in JSON, a long text elsewhere, which does not count. */
function requestBytes({ method, isJson, size }: Case): Buffer {
  const { request, fields } = METHODS[method];
  const bytes = encoded(request, create(request, fields) as ReturnType<typeof messageOf>, isJson);
  const extra = size === 'small' ? 0 : size === 'large' ? 80_000 : BODY_BYTES_MAX;
  if (extra === 0) return bytes;
  if (isJson) return Buffer.concat([bytes, Buffer.alloc(extra, 0x20)]);
  // A long text in the first field, which comes again behind it: the last one counts.
  const long = new BinaryWriter().tag(1, WireType.LengthDelimited).string('x'.repeat(extra));
  return Buffer.concat([long.finish(), bytes]);
}

async function send(carrier: Carrier, one: Case): Promise<Outcome> {
  const { protocol, version } = carrier;
  const isConnect = protocol === 'connect';
  const format = one.isJson ? 'json' : 'proto';
  const headers: Record<string, string> = {
    'content-type': `application/${isConnect ? format : `${protocol}+${format}`}`,
    [isConnect ? 'accept-encoding' : 'grpc-accept-encoding']: one.acceptsGzip ? 'gzip' : 'identity',
  };
  if (one.isGzip) headers[isConnect ? 'content-encoding' : 'grpc-encoding'] = 'gzip';
  if (one.time !== 'none') {
    const ms = one.time === 'enough' ? LONG_MS - 1 : SHORT_MS;
    headers[isConnect ? 'connect-timeout-ms' : 'grpc-timeout'] = isConnect ? `${ms}` : `${ms}m`;
  }
  const bytes = requestBytes(one);
  const packed = one.isGzip ? gzipSync(bytes) : bytes;
  const body = isConnect ? packed : envelope(one.isGzip ? 1 : 0, packed);
  const path = `/workspace.v1.AuthzService/${one.method}`;
  const answer =
    version === 1 ? await postHttp1(path, headers, body) : await postHttp2(path, headers, body);
  return isConnect ? outcomeOfConnect(answer, one) : outcomeOfEnvelopes(answer, one);
}

type Answer = {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

function postHttp1(path: string, headers: Record<string, string>, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = requestHttp1({ port, path, method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          fields: response.headers as Record<string, string>,
          body: Buffer.concat(chunks),
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function postHttp2(
  path: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<Answer> {
  if (session === undefined || session.closed || session.destroyed) {
    session = connect(`http://127.0.0.1:${port}`);
  }
  return await callHttp2(session, path, headers, [body]);
}

const NO_ERROR = { code: 'ok', message: '', info: null };

function outcomeOfConnect({ status, fields, body }: Answer, { method, isJson }: Case): Outcome {
  const isCompressed = fields['content-encoding'] === 'gzip';
  const bytes = isCompressed ? gunzipSync(body) : body;
  if (status === 200) {
    return { ...NO_ERROR, answer: answerOf(method, isJson, bytes), isCompressed };
  }
  const error = JSON.parse(bytes.toString()) as {
    readonly code: string;
    readonly message: string;
    readonly details: readonly { readonly debug: JsonValue }[];
  };
  const info = error.details[0]?.debug ?? null;
  return { code: error.code, message: error.message, info, answer: null, isCompressed };
}

function outcomeOfEnvelopes({ fields, body }: Answer, { method, isJson }: Case): Outcome {
  const trailer = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('grpc-')) trailer.set(name, value);
  }
  let answer: JsonValue = null;
  let isCompressed = false;
  for (let at = 0; at < body.length;) {
    const flags = body[at] as number;
    const end = at + 5 + body.readUInt32BE(at + 1);
    const bytes = body.subarray(at + 5, end);
    if ((flags & 0x80) !== 0) {
      for (const line of bytes.toString().trim().split('\r\n')) {
        const [name = '', value = ''] = line.split(/: ?(.*)/s);
        trailer.set(name, value);
      }
    } else {
      isCompressed = flags === 1;
      answer = answerOf(method, isJson, isCompressed ? gunzipSync(bytes) : bytes);
    }
    at = end;
  }
  const error = findTrailerError(trailer);
  if (error === undefined) {
    expect(trailer.get('grpc-status')).toBe('0');
    return { ...NO_ERROR, answer, isCompressed };
  }
  const [info] = error.findDetails(ErrorInfoSchema);
  return {
    code: codeToString(error.code),
    message: error.rawMessage,
    info: info === undefined ? null : toJson(ErrorInfoSchema, info, ANSWER_JSON),
    answer,
    isCompressed,
  };
}

function answerOf(method: Method, isJson: boolean, bytes: Buffer): JsonValue {
  const { response } = METHODS[method];
  const message = isJson
    ? fromJsonString(response, bytes.toString())
    : fromBinary(response as DescMessage, bytes);
  return toJson(response as DescMessage, message as never, { useProtoFieldName: true });
}

/** Sends the call down all carriers at once; what held them goes on once all of them wait, or have had their time. */
async function sendToAll(one: Case): Promise<readonly Outcome[]> {
  const gate = one.waits === 'for the worker' ? worker : store;
  gate.isHeld = one.waits !== 'not';
  const answers = Promise.all(CARRIERS.map((carrier) => send(carrier, one)));
  try {
    if (one.waits !== 'not' && one.time !== 'too short' && one.size !== 'too large') {
      const waiting = (): number =>
        one.waits === 'for the worker' ? worker.waiting.length : index.waitingCount;
      await expect.poll(waiting, { interval: 2, timeout: 20_000 }).toBe(CARRIERS.length);
      gate.open();
    }
    return await answers;
  } finally {
    gate.open();
    await answers;
  }
}

test(`all carriers answer alike (SEED=${seed})`, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      const outcomes = await sendToAll(one);
      const [first, ...others] = outcomes;
      CARRIERS.slice(1).forEach(({ name }, i) => {
        expect(others[i], `${name}, ${JSON.stringify(one)}`).toEqual(first);
      });
      const isOver = one.time === 'too short';
      const code =
        one.size === 'too large' ? 'resource_exhausted' : isOver ? 'deadline_exceeded' : 'ok';
      expect(first?.code, JSON.stringify(one)).toBe(code);
      if (code === 'ok') {
        expect(first?.answer).toEqual(METHODS[one.method].right);
        expect(first?.isCompressed).toBe(one.acceptsGzip && one.method === 'ListObjects');
      } else if (code === 'resource_exhausted') {
        expect(first?.info).toMatchObject({ reason: 'BODY_TOO_LARGE' });
      } else expect(first?.info).toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
      expect([worker.waiting.length, index.waitingCount], 'nobody waits on').toEqual([0, 0]);
      seen.add(`${code} ${one.waits}`);
    }),
    { numRuns: RUNS, seed, examples: ALWAYS.map((one) => [one]) },
  );
  for (const waits of ['for the read index', 'for the worker']) {
    for (const code of ['ok', 'deadline_exceeded']) expect(seen).toContain(`${code} ${waits}`);
  }
}, 300_000);
