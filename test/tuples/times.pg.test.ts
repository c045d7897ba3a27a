/* Times of callers at every door of the service: what is no time of the calendar is refused by name, and what is one is kept as it is. */
import http2 from 'node:http2';
import { create, fromJson, toBinary } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { afterAll, describe, expect, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { ImportTuplesRequestSchema } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import {
  TupleUpdate_Op as Op,
  WriteRelationTuplesRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { sharedInstance } from '../support/shared-instance.ts';
import { NO_TIMES, TIMES } from '../support/times.ts';

const service = await sharedInstance();
const { projectId } = service;
const session = http2.connect(service.baseUrl);
afterAll(() => session.destroy());

type Outcome = { readonly code: string; readonly message: string };
/** Sends a body; `code` is '' where it is taken. */
type Send = (path: string, body: object) => Promise<Outcome>;

/** Connect in JSON, over HTTP/1.1. */
async function unaryAnswer(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${service.baseUrl}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

const unary: Send = async (path, body) => {
  const answer = (await unaryAnswer(path, body)) as Partial<Outcome>;
  return { code: answer.code ?? '', message: answer.message ?? '' };
};

/** A stream of Connect in JSON, over HTTP/2. */
const stream: Send = async (path, body) => {
  const { body: bytes } = await sent(path, 'application/connect+json', bodyOf(body));
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    if (bytes[at] !== 2) continue;
    const end = JSON.parse(bytes.subarray(at + 5).toString()) as { error?: Outcome };
    return end.error ?? { code: '', message: '' };
  }
  throw new Error('the stream has no end');
};

/** gRPC or gRPC-Web. */
async function enveloped(path: string, type: string, message: Uint8Array): Promise<Outcome> {
  const { fields, body } = await sent(path, type, message);
  const text = fields['grpc-status'] === undefined ? body.toString('latin1') : '';
  const of = (name: string): string =>
    fields[name] ?? new RegExp(`${name}: ([^\\r]*)`).exec(text)?.[1] ?? '';
  const code = { 0: '', 3: 'invalid_argument' }[of('grpc-status')] ?? of('grpc-status');
  return { code, message: decodeURIComponent(of('grpc-message')) };
}

function bodyOf(body: object): Buffer {
  return Buffer.from(JSON.stringify(body));
}

function sent(path: string, type: string, message: Uint8Array) {
  const headers = { authorization: `Bearer ${service.token}`, 'content-type': type };
  return callHttp2(session, `/${path}`, headers, [envelope(0, message)]);
}

const grpcJson: Send = (path, body) => enveloped(path, 'application/grpc+json', bodyOf(body));
const webJson: Send = (path, body) => enveloped(path, 'application/grpc-web+json', bodyOf(body));

/** A file of tuples, of which the second is looked at. */
const lines: Send = async (path, body) => {
  const plain = JSON.stringify(tuple('plain'));
  const response = await fetch(
    `${service.baseUrl}/${path}?project_id=${projectId}&tenant_id=lines`,
    {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/x-ndjson' },
      body: `${plain}\n${JSON.stringify(body)}\n`,
    },
  );
  const answer = (await response.json()) as Partial<Outcome>;
  return { code: answer.code ?? '', message: answer.message ?? '' };
};

function tuple(object_id: string, more: object = {}): object {
  const subject = { user_id: 'ann' };
  return { namespace: 'resource', object_id, relation: 'viewer', subject, ...more };
}

let count = 0;
const scope = { project_id: projectId, tenant_id: 'times' };
const updates = (expires_at: string) => ({
  ...scope,
  updates: [
    { op: 'OP_INSERT', tuple: tuple(`plain-${(count += 1)}`) },
    { op: 'OP_INSERT', tuple: tuple(`timed-${count}`, { expires_at }) },
  ],
});
const question = {
  namespace: 'resource',
  object_id: 'x',
  relation: 'viewer',
  subject: { user_id: 'ann' },
};
const asked = (expires_at: string) => ({
  scope: { ...scope, contextual_tuples: [tuple('x', { expires_at })] },
  question,
});
const import_ = { options: scope, tuples: [tuple('imported')] };

const WRITE = 'workspace.v1.AuthzService/WriteRelationTuples';
const CHECK = 'gatehouse.v1.QueryService/Check';
const IMPORT = 'gatehouse.v1.TupleService/ImportTuples';
const AT_WRITE = 'updates[1].tuple.expires_at: ';
const AT_CHECK = 'scope.contextual_tuples[0].expires_at: ';
const DOORS: readonly [string, Send, string, (text: string) => object, string][] = [
  ['a write', unary, WRITE, updates, AT_WRITE],
  ['a write, gRPC', grpcJson, WRITE, updates, AT_WRITE],
  ['a write, gRPC-Web', webJson, WRITE, updates, AT_WRITE],
  ['a write of gatehouse.v1', unary, 'gatehouse.v1.TupleService/WriteTuples', updates, AT_WRITE],
  ['a Check', unary, CHECK, asked, AT_CHECK],
  ['a Check, gRPC', grpcJson, CHECK, asked, AT_CHECK],
  ['a Check, gRPC-Web', webJson, CHECK, asked, AT_CHECK],
  [
    'an import',
    stream,
    IMPORT,
    (expires_at) => ({ options: scope, tuples: [tuple('plain'), tuple('timed', { expires_at })] }),
    'tuples[1].expires_at: ',
  ],
  [
    'the time of a write in an import',
    stream,
    IMPORT,
    (text) => ({ ...import_, written_at: [text] }),
    'written_at[0]: ',
  ],
  [
    'lines',
    lines,
    'v1/tuples:import',
    (expires_at) => tuple('timed', { expires_at }),
    'line 2: expires_at: ',
  ],
  [
    'the time of a write in lines',
    lines,
    'v1/tuples:import',
    (written_at) => ({ tuple: tuple('timed'), written_at }),
    'line 2: written_at must',
  ],
];

describe.each(DOORS)('%s', (_name, send, path, body, at) => {
  test('takes times', async () => {
    for (const [text] of TIMES) {
      expect([text, await send(path, body(text))]).toEqual([text, { code: '', message: '' }]);
    }
  });

  test('refuses what is no time', async () => {
    for (const text of NO_TIMES) {
      const { code, message } = await send(path, body(text));
      expect([text, code, message.slice(0, at.length)]).toEqual([text, 'invalid_argument', at]);
    }
  });
});

test('what is stored is the time that was sent, to the microsecond', async () => {
  const isAhead = (time: (typeof TIMES)[number]): boolean => time[1] > Date.now() / 1000;
  for (const [text, seconds, nanos] of TIMES.filter(isAhead)) {
    expect((await unary(WRITE, updates(text))).code).toBe('');
    const found = await unaryAnswer('workspace.v1.AuthzService/ReadRelationTuples', {
      ...scope,
      namespace: 'resource',
      object_id: `timed-${count}`,
    });
    const [stored] = found['tuples'] as { expires_at: string }[];
    const kept = { seconds: BigInt(seconds), nanos: Math.floor(nanos / 1000) * 1000 };
    expect([text, fromJson(TimestampSchema, stored?.expires_at ?? '')]).toMatchObject([text, kept]);
  }
});

test.each([
  ['seconds beyond the year 9999', { seconds: 253_402_300_800n, nanos: 0 }],
  ['seconds before the year 1', { seconds: -62_135_596_801n, nanos: 0 }],
  ['the most seconds that there are', { seconds: 2n ** 63n - 1n, nanos: 0 }],
  ['nanoseconds of a whole second', { seconds: 4_000_000_000n, nanos: 1_000_000_000 }],
  ['nanoseconds below 0', { seconds: 4_000_000_000n, nanos: -1 }],
])('a Timestamp in binary with %s', async (_name, time) => {
  const timed = {
    namespace: 'resource',
    objectId: 'x',
    relation: 'viewer',
    subject: { kind: { case: 'userId' as const, value: 'ann' } },
  };
  const tuples = [{ ...timed, expiresAt: time }];
  const where = { projectId, tenantId: 'times' };
  const write = { ...where, updates: [{ op: Op.INSERT, tuple: tuples[0] }] };
  const check = { scope: { ...where, contextualTuples: tuples }, question: timed };
  const bodies: [string, string, Uint8Array][] = [
    [
      WRITE,
      'updates[0].tuple.expires_at',
      toBinary(WriteRelationTuplesRequestSchema, create(WriteRelationTuplesRequestSchema, write)),
    ],
    [
      CHECK,
      'contextual_tuples[0].expires_at',
      toBinary(CheckRequestSchema, create(CheckRequestSchema, check)),
    ],
    [
      IMPORT,
      'tuples[0].expires_at',
      toBinary(
        ImportTuplesRequestSchema,
        create(ImportTuplesRequestSchema, { options: where, tuples }),
      ),
    ],
    [
      IMPORT,
      'tuples[0].written_at',
      toBinary(
        ImportTuplesRequestSchema,
        create(ImportTuplesRequestSchema, { options: where, tuples: [timed], writtenAt: [time] }),
      ),
    ],
  ];
  for (const [path, field, bytes] of bodies) {
    for (const type of ['application/grpc', 'application/grpc-web']) {
      const { code, message } = await enveloped(path, type, bytes);
      expect([code, message]).toEqual([
        'invalid_argument',
        expect.stringContaining(`${field}: must lie between`),
      ]);
    }
  }
});
