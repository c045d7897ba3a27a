import { gzipSync } from 'node:zlib';
import { create, type DescMessage, type JsonObject, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
  ListObjectsRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { isOutOfReach, NARROW_CALLERS, NARROW_TOKEN } from '../support/narrow-caller.ts';
import { call } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

/*
 * The hot path never differs in behaviour from the general path: the same requests, valid and
 * broken, go down both, and status, body and headers are compared.
 */
const instances = {
  alone: (await instanceForFile(NARROW_CALLERS)).instance,
  'beside others': (await instanceForFile(NARROW_CALLERS, () => false)).instance,
};
let instance = instances.alone;
/** Tokens of the default tenant: one valid, one of another tenant. */
let tokens: readonly string[];

async function fill(): Promise<void> {
  const admin = { id: 'sleeping', name: 'sleeping' };
  await call(instance, 'AdminService/CreateProject', admin);
  await call(instance, 'AdminService/CreateProject', { id: 'far', name: 'x', data_region: 'mars' });
  await call(instance, 'AdminService/CreateProject', {
    id: 'poor',
    name: 'poor',
    max_check_reads: 100,
  });
  const suspended = { id: 'sleeping', status: 'PROJECT_STATUS_SUSPENDED' };
  await call(instance, 'AdminService/UpdateProject', suspended);
  tokens = [await write(''), await write('t1')];
  await writeChain();
}

const ADULT = { condition_name: 'age_at_least', condition_params: { min_age: 18 } };

async function write(tenantId: string): Promise<string> {
  const tuple = (objectId: string, userId: string): object => ({
    namespace: 'resource',
    object_id: objectId,
    relation: 'viewer',
    subject: { user_id: userId },
  });
  const updates = [
    { op: 'OP_INSERT', tuple: tuple('d1', 'alice') },
    { op: 'OP_INSERT', tuple: tuple('d2', 'zoë') },
    { op: 'OP_INSERT', tuple: { ...tuple('d3', ''), subject: { wildcard: true } } },
    { op: 'OP_INSERT', tuple: { ...tuple('d4', 'alice'), ...ADULT } },
    { op: 'OP_INSERT', tuple: { ...tuple('d4', 'zoë'), condition_name: 'unheard_of' } },
  ];
  const body = { updates, tenant_id: tenantId };
  const answer = await call(instance, 'AuthzService/WriteRelationTuples', body);
  return String(answer.body['consistency_token']);
}

/** More nested groups than the budget of project `poor` can read. */
async function writeChain(): Promise<void> {
  const updates = Array.from({ length: 200 }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'group',
      object_id: `g${i}`,
      relation: 'member',
      subject: { set: { namespace: 'group', object_id: `g${i + 1}`, relation: 'member' } },
    },
  }));
  await call(instance, 'AuthzService/WriteRelationTuples', { updates, project_id: 'poor' });
}

type Sent = {
  readonly method: 'Check' | 'BatchCheck' | 'ListObjects';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
};

async function send(baseUrl: string, sent: Sent): Promise<object> {
  const response = await fetch(`${baseUrl}/workspace.v1.AuthzService/${sent.method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'accept-encoding': '',
      authorization: `Bearer ${instance.token}`,
      'x-request-id': 'the-same',
      ...sent.headers,
    },
    body: Buffer.from(sent.body),
  });
  const headers = Object.fromEntries(response.headers);
  delete headers['date'];
  // The two may compress at different times, never differently.
  const body = Buffer.from(await response.arrayBuffer()).toString('latin1');
  return { status: response.status, headers, body };
}

/** Both paths say the same, and the same to a caller that reaches one tenant alone, which learns nothing of others. */
async function expectSame(sent: Sent): Promise<number> {
  const authorization = `Bearer ${NARROW_TOKEN}`;
  const narrow = { ...sent, headers: { ...sent.headers, authorization } };
  const isNamed = sent.headers['authorization'] !== undefined;
  const [hot, general, hotNarrow, generalNarrow] = await Promise.all([
    send(instance.baseUrl, sent),
    send(instance.generalUrl, sent),
    send(instance.baseUrl, isNamed ? sent : narrow),
    send(instance.generalUrl, isNamed ? sent : narrow),
  ]);
  expect(hot, describeSent(sent)).toEqual(general);
  expect(hotNarrow, describeSent(narrow)).toEqual(generalNarrow);
  const isJson = !(sent.headers['content-type'] ?? 'json').includes('proto');
  if (!isNamed && isOutOfReach(SCHEMAS[sent.method], isJson, sent.body)) {
    expect((hotNarrow as { status: number }).status, describeSent(narrow)).not.toBe(200);
  } else expect(hotNarrow, describeSent(narrow)).toEqual(hot);
  return (general as { status: number }).status;
}

function describeSent(sent: Sent): string {
  return `${sent.method} ${JSON.stringify(sent.headers)} ${Buffer.from(sent.body).toString('latin1')}`;
}

const METHODS = ['Check', 'BatchCheck', 'ListObjects'] as const;
const SCHEMAS = {
  Check: CheckRequestSchema,
  BatchCheck: BatchCheckRequestSchema,
  ListObjects: ListObjectsRequestSchema,
} as const;

function jsonBody(method: (typeof METHODS)[number]): Record<string, unknown> {
  const object = { namespace: 'resource', object_id: 'd1', relation: 'viewer' };
  if (method === 'Check') return { ...object, subject_user_id: 'alice' };
  if (method === 'ListObjects') {
    return { namespace: 'resource', relation: 'viewer', subject_user_id: 'alice' };
  }
  return { items: [{ ...object, subject_user_id: 'alice' }] };
}

const name = fc.constantFrom(
  'resource',
  'viewer',
  'doc',
  'group',
  'member',
  '',
  'Resource',
  'x y',
  '\u0000',
);
const id = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('d1', 'd2', 'd3', 'd4', 'alice', 'zoë', 'g0') },
  fc.constantFrom(
    '',
    '#',
    'a\nb',
    'x'.repeat(256),
    'x'.repeat(257),
    'é'.repeat(128),
    'é'.repeat(129),
    '\u0085',
    '\ud800',
    ']}',
    '\\"',
    '漢字',
    '😀',
  ),
);
const scopeFields = (): fc.Arbitrary<Record<string, unknown>> =>
  fc.record(
    {
      project_id: fc.constantFrom(
        '',
        'default',
        'nobody',
        'sleeping',
        'far',
        'poor',
        'BAD ID',
        'a\u0000',
      ),
      tenant_id: fc.constantFrom('', 't1', 'unknown', 'bad tenant', 'é', 'x'.repeat(129)),
      at_least_consistency_token: fc
        .constantFrom(0, 1, 2, 3, 4)
        .map((i) => ['', 'garbage', tokens[0], tokens[1], `${tokens[0]}x`][i]),
    },
    { requiredKeys: [] },
  );
const item = fc.record(
  { namespace: name, object_id: id, relation: name, subject_user_id: id },
  { requiredKeys: ['namespace', 'object_id', 'relation'] },
);
const goodItem = fc.record({
  namespace: fc.constantFrom('resource', 'group'),
  object_id: fc.constantFrom('d1', 'd2', 'd3', 'd4', 'd4', 'g0', 'g199'),
  relation: fc.constantFrom('viewer', 'member', 'editor'),
  subject_user_id: fc.constantFrom('alice', 'bob', 'zoë'),
});
const anyItem = fc.oneof({ weight: 3, arbitrary: goodItem }, item);
/** Mostly what clients send; the rest is for one of the paths to refuse and for both to answer alike. */
const headers: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'connect-protocol-version': fc.oneof(
      { weight: 8, arbitrary: fc.constant('1') },
      fc.constantFrom('', '0', '2', '01', '1.0', ' 1 ', '1, 1', 'v1'),
    ),
  },
  { requiredKeys: [] },
);
/** The context of a Check, where it has one: mostly an object, and else what both paths refuse alike. */
const contexts = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  {
    weight: 6,
    arbitrary: fc.constantFrom<unknown>(
      {},
      { age: 30 },
      { age: 17, ip: '10.0.0.1' },
      { age: '30' },
      { age: 18.5, b: { z: 1, a: [null] } },
    ),
  },
  fc.constantFrom<unknown>(
    null,
    [],
    'x',
    1,
    { age: -0 },
    { age: 1e300 },
    { 'a"b': '\u0000' },
    { a: '\ud800' },
  ),
  fc.record({ age: fc.jsonValue() }),
);
const structural = fc.tuple(scopeFields(), anyItem, fc.array(anyItem, { maxLength: 5 }), contexts);

type Spelling = {
  readonly camel: boolean;
  readonly escapeKey: boolean;
  readonly scopeLast: boolean;
  readonly duplicate: number;
  readonly space: string;
};
const spelling: fc.Arbitrary<Spelling> = fc.record({
  camel: fc.boolean(),
  escapeKey: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  scopeLast: fc.boolean(),
  duplicate: fc.integer({ min: 0, max: 12 }),
  space: fc.constantFrom('', '', ' ', '\n\t '),
});

function camelCase(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

/** JSON text written by hand, so that keys can be spelled, escaped, repeated and ordered at will. */
function textOf(scope: object, rest: object, how: Spelling): string {
  const fields = how.scopeLast
    ? [...Object.entries(rest), ...Object.entries(scope)]
    : [...Object.entries(scope), ...Object.entries(rest)];
  const first = fields[how.duplicate];
  if (first !== undefined) fields.push(first);
  if (how.duplicate === 11 && first === undefined)
    fields.push(['projectId', 'default'], ['project_id', 'poor']);
  const { space } = how;
  const parts = fields.map(([key, value]) => {
    const spelled = how.camel ? camelCase(key) : key;
    const text = how.escapeKey ? spelled.replace('_', '\\u005f').replace('i', '\\u0069') : spelled;
    return `${space}"${text}"${space}:${space}${JSON.stringify(value)}`;
  });
  return `${space}{${parts.join(',')}${space}}${space}`;
}

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
/** Enough that some are valid. */
const RUNS = byLength(40, 400) * FUZZ_RUNS;
const BINARY_RUNS = byLength(20, 400) * FUZZ_RUNS;

describe.each(['alone', 'beside others'] as const)('hot path == general path, %s', (mode) => {
  beforeAll(async () => {
    instance = instances[mode];
    await fill();
  });

  test.each(METHODS)('%s in JSON, generated', async (method) => {
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(structural, spelling, headers, async (asked, how, sent) => {
        const [scope, single, items, context] = asked;
        const rest =
          method === 'BatchCheck'
            ? { items }
            : method === 'Check'
              ? { ...single, ...(context === undefined ? {} : { context }) }
              : {
                  namespace: single.namespace,
                  relation: single.relation,
                  subject_user_id: single.subject_user_id,
                };
        const status = await expectSame({
          method,
          headers: sent,
          body: Buffer.from(textOf(scope, rest, how)),
        });
        expect(status, 'no request is an internal error').not.toBe(500);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }),
      { numRuns: RUNS },
    );
    expect(statuses.get(200), 'some requests are valid').toBeGreaterThan(0);
    expect(statuses.get(400), 'some requests are not').toBeGreaterThan(0);
  });

  test.each(METHODS)('%s in binary, generated and damaged', async (method) => {
    const schema: DescMessage = SCHEMAS[method];
    const damage = fc.record({
      kind: fc.constantFrom('none', 'none', 'none', 'cut', 'append', 'flip'),
      at: fc.nat(),
      byte: fc.nat(255),
    });
    await fc.assert(
      fc.asyncProperty(structural, damage, headers, async (asked, how, sent) => {
        const [scope, single, items, context] = asked;
        const isStruct = typeof context === 'object' && context !== null && !Array.isArray(context);
        const ofCheck = method === 'Check' && isStruct ? { context: context as JsonObject } : {};
        const rest = method === 'BatchCheck' ? { items: items.map(camelKeys) } : camelKeys(single);
        const message = create(schema, { ...camelKeys(scope), ...rest, ...ofCheck });
        let body: Uint8Array;
        try {
          body = toBinary(schema, message);
        } catch {
          return; // Ill-formed UTF-16 cannot be written in binary.
        }
        if (how.kind === 'cut') body = body.subarray(0, how.at % (body.length + 1));
        if (how.kind === 'append')
          body = Buffer.concat([body, Uint8Array.of(how.byte, how.at % 256)]);
        if (how.kind === 'flip' && body.length > 0) body[how.at % body.length] = how.byte;
        const status = await expectSame({
          method,
          headers: { ...sent, 'content-type': 'application/proto' },
          body,
        });
        expect(status, 'no request is an internal error').not.toBe(500);
      }),
      { numRuns: BINARY_RUNS },
    );
  });

  inShort(test).each(METHODS)(
    '%s in another version of the protocol is refused',
    async (method) => {
      const sent = { 'connect-protocol-version': '2' };
      const body = Buffer.from(JSON.stringify(jsonBody(method)));
      expect(await expectSame({ method, headers: sent, body })).toBe(400);
      const binary = { ...sent, 'content-type': 'application/proto' };
      expect(await expectSame({ method, headers: binary, body: Buffer.alloc(0) })).toBe(400);
    },
  );

  // Where instances are alone or not makes no difference to these.
  const once = mode === 'alone' ? inShort(test) : inLong(test);
  once('headers, encodings and broken bodies', async () => {
    const bodies: (string | Uint8Array)[] = [
      '',
      '{',
      '[]',
      'null',
      '"x"',
      '{}',
      '{"unknown":1}',
      '\ufeff{}',
      '{"namespace":1}',
      '{"namespace":null}',
      '{"namespace":"resource","object_id":"d1","relation":"viewer","subject_user_id":"alice","max":1e400}',
      '{"namespace":"resource","object_id":12345678901234567890,"relation":"viewer"}',
      '{"items":null}',
      '{"items":{}}',
      '{"items":[null]}',
      '{"items":[[]]}',
      '{"items":[{}]}',
      '{"items":[]}',
      '{"items":[],"items":[]}',
      '{"subject_set":{"namespace":"group","object_id":"g","relation":"member"},"namespace":"resource","object_id":"d1","relation":"viewer"}',
      '{"context":{"a":[1,{"b":null}]},"namespace":"resource","object_id":"d1","relation":"viewer","subject_user_id":"alice"}',
      '{"context":{"age":30},"namespace":"resource","object_id":"d4","relation":"viewer","subject_user_id":"alice"}',
      '{"context":{"age":17,"age":30},"namespace":"resource","object_id":"d4","relation":"viewer","subject_user_id":"alice"}',
      '{"context":{"__proto__":{"age":30}},"namespace":"resource","object_id":"d4","relation":"viewer","subject_user_id":"alice"}',
      '{"context":{"age":30,},"namespace":"resource","object_id":"d4","relation":"viewer","subject_user_id":"alice"}',
      `{"context":${'['.repeat(500)}${']'.repeat(500)}}`,
      Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d),
      Uint8Array.of(0xff, 0xfe, 0x7b, 0x00),
      '{"project_id":"default","tenant_id":"t1"}}',
      '{"a":"\\ud800"}',
      '{"namespace":"resource"} x',
    ];
    for (const method of METHODS) {
      const valid = JSON.stringify(jsonBody(method));
      const many = JSON.stringify({
        items: Array.from({ length: 300 }, () => (jsonBody('BatchCheck')['items'] as object[])[0]),
      });
      const variants: Record<string, string>[] = [
        {},
        { 'connect-timeout-ms': '1000' },
        { 'connect-timeout-ms': '0' },
        { 'connect-timeout-ms': '-1' },
        { 'connect-timeout-ms': 'abc' },
        { 'connect-timeout-ms': '99999999999' },
        { 'connect-timeout-ms': '9999999999' },
        { 'connect-protocol-version': '1' },
        { 'connect-protocol-version': '2' },
        { 'content-type': 'application/json; charset=utf-8' },
        { 'content-type': 'application/json;charset=UTF8' },
        { 'content-type': 'Application/JSON' },
        { 'content-type': 'text/plain' },
        { 'content-type': '' },
        { 'content-type': 'application/grpc' },
        { 'content-type': 'application/grpc-web+proto' },
        { 'content-encoding': 'identity' },
        { 'content-encoding': 'br' },
        { 'content-encoding': 'gzip' },
        { 'accept-encoding': 'gzip' },
        { 'accept-encoding': 'br, gzip;q=0.5' },
        { 'accept-encoding': ' gzip , br' },
        { 'accept-encoding': 'identity' },
        { authorization: '' },
        { authorization: 'Bearer wrong' },
        { authorization: `bearer ${instance.token}` },
        { 'x-request-id': 'bad id with spaces' + 'x'.repeat(200) },
      ];
      for (const header of variants) {
        // A made-up request id differs between the two.
        if (header['x-request-id'] !== undefined) continue;
        await expectSame({ method, headers: header, body: Buffer.from(valid) });
        if (method === 'BatchCheck')
          await expectSame({ method, headers: header, body: Buffer.from(many) });
      }
      await expectSame({ method, headers: { 'content-encoding': 'gzip' }, body: gzipSync(valid) });
      for (const body of bodies) {
        const status = await expectSame({ method, headers: {}, body: Buffer.from(body) });
        expect(status).not.toBe(500);
        await expectSame({
          method,
          headers: { 'content-type': 'application/proto' },
          body: Buffer.from(body),
        });
      }
    }
  });

  inShort(test)('a body beyond the limit', async () => {
    const body = Buffer.alloc(8 * 1024 * 1024 + 1, 0x20);
    expect(await expectSame({ method: 'Check', headers: {}, body })).toBe(429);
  });
});

function camelKeys(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [camelCase(key), entry as unknown]),
  );
}
