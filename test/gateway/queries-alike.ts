import http2 from 'node:http2';
import { type DescMessage, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUERY_METHODS } from '../../src/requests/query-methods.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import type { Instance } from '../support/instance.ts';
import { isOutOfReach, NARROW_TOKEN } from '../support/narrow-caller.ts';
import { call } from '../support/service.ts';
import { byLength, inLong } from '../support/test-length.ts';

const METHODS = {
  Check: QUERY_METHODS.queryCheck.request,
  BatchCheck: QUERY_METHODS.queryBatchCheck.request,
  ListRelations: QUERY_METHODS.listRelations.request,
  FilterObjects: QUERY_METHODS.filterObjects.request,
  Explain: QUERY_METHODS.explain.request,
} as const satisfies Record<string, DescMessage>;
type Method = keyof typeof METHODS;
const NAMES = Object.keys(METHODS) as Method[];
const CARRIERS = ['Connect', 'Connect over HTTP/2', 'gRPC', 'gRPC-Web'] as const;
export type Carrier = (typeof CARRIERS)[number];
const RUNS = byLength(14, 400) * Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const WHERE = ['hot', 'general'] as const;

type Sent = { readonly method: Method; readonly isJson: boolean; readonly body: Uint8Array };

/** Fifteen times of sixteen what is valid by itself. */
function mostly<T>(valid: readonly T[], invalid: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 15, arbitrary: fc.constantFrom(...valid) },
    fc.constantFrom(...invalid),
  );
}

const id = mostly(
  ['d1', 'd2', 'd3', 'd4', 'alice', 'zoë', '漢字', ']}', '\\"'],
  ['', '#', 'x'.repeat(257)],
);
const name = mostly(['resource', 'viewer', 'viewer', 'editor', 'group', 'member'], ['', 'Viewer']);
const subject = fc.oneof(
  { weight: 4, arbitrary: id.map((userId) => ({ user_id: userId })) },
  id.map((objectId) => ({ set: { namespace: 'group', object_id: objectId, relation: 'member' } })),
  { weight: 1, arbitrary: fc.constantFrom({ wildcard: true }, {}, undefined) },
);
const question = fc.record(
  {
    namespace: mostly(['resource'], ['']),
    object_id: id,
    relation: name,
    subject,
  },
  { requiredKeys: ['namespace', 'object_id', 'relation'] },
);
const context = fc.constantFrom<object | undefined>(
  undefined,
  {},
  { age: 30 },
  { age: 17, b: [{}] },
  { age: '30' },
  { scope: { tenant_id: 't1' }, tenant_id: 't1' },
);
const tuple = fc.record(
  {
    project_id: mostly(['', 'default'], ['other']),
    tenant_id: mostly([''], ['t1']),
    namespace: mostly(['resource', 'group'], ['seat']),
    object_id: fc.constantFrom('d1', 'd9', 'eng'),
    relation: fc.constantFrom('viewer', 'member'),
    subject,
    expires_at: mostly(['2999-01-01T00:00:00Z', '2001-01-01T00:00:00Z'], ['2001-02-30T00:00:00Z']),
  },
  { requiredKeys: ['namespace', 'object_id', 'relation', 'subject'] },
);

function scopes(tokens: () => readonly string[]): fc.Arbitrary<object> {
  return fc.record(
    {
      project_id: mostly(['', 'default'], ['nobody', 'sleeping', 'BAD ID']),
      tenant_id: mostly(['', 't1', 'unknown'], ['bad tenant']),
      at_least_consistency_token: fc
        .constantFrom(0, 0, 0, 1, 2, 3)
        .map((i) => ['', 'garbage', ...tokens()][i]),
      context,
      contextual_tuples: fc.array(tuple, { maxLength: 3 }),
      model_version: mostly<unknown>([0, '0', null], [1, '7', -1, 'x']),
      userset_mode: mostly<unknown>(
        ['USERSET_MODE_EXACT', 'USERSET_MODE_MEMBERS_TOO', 0, 2, null],
        [9],
      ),
    },
    { requiredKeys: [] },
  );
}

/** What a method asks, besides its scope. */
const asked: Readonly<Record<Method, fc.Arbitrary<object>>> = {
  Check: fc.record({ question }),
  BatchCheck: fc.record({ items: fc.array(fc.record({ question, context }), { maxLength: 4 }) }),
  ListRelations: fc.record(
    { namespace: name, object_id: id, subject, relations: fc.array(name, { maxLength: 3 }) },
    { requiredKeys: ['namespace', 'object_id', 'subject'] },
  ),
  FilterObjects: fc.record({
    namespace: mostly(['resource'], ['']),
    relation: name,
    subject,
    object_ids: fc.array(id, { maxLength: 5 }),
  }),
  Explain: fc.record(
    { question, remedies_max: mostly([0, 1, 100], [101, -1]) },
    { requiredKeys: ['question'] },
  ),
};

/**
 * The hot path of QueryService never differs from the general one: the same requests, valid and broken, go down both, over the carriers
 * and by a caller of one tenant as well, and what comes back is compared to the byte. `instance` has NARROW_CALLERS.
 */
export function compareQueries(
  instance: Instance,
  some: readonly Carrier[],
  isWhole: boolean,
): void {
  const carriers = byLength(some, CARRIERS);
  // Who else is there makes no difference to these.
  const once = isWhole ? test : inLong(test);
  const sessions = new Map<string, http2.ClientHttp2Session>();
  let tokens: readonly string[] = [];

  beforeAll(async () => {
    tokens = [await write(''), await write('t1')];
    await call(instance, 'AdminService/CreateProject', { id: 'sleeping', name: 'sleeping' });
    const suspended = { id: 'sleeping', status: 'PROJECT_STATUS_SUSPENDED' };
    await call(instance, 'AdminService/UpdateProject', suspended);
  });
  afterAll(() => {
    for (const session of sessions.values()) session.close();
  });

  async function write(tenantId: string): Promise<string> {
    const tupleOf = (objectId: string, of: object, more: object = {}) => ({
      op: 'OP_INSERT',
      tuple: {
        namespace: 'resource',
        object_id: objectId,
        relation: 'viewer',
        subject: of,
        ...more,
      },
    });
    const adults = {
      condition_name: 'age_at_least',
      condition_params: { min_age: 18, consistency_token: 'x' },
    };
    const updates = [
      tupleOf('d1', { user_id: 'alice' }),
      tupleOf('d2', { set: { namespace: 'group', object_id: 'd1', relation: 'member' } }),
      tupleOf('d3', { wildcard: true }),
      tupleOf('d4', { user_id: 'alice' }, adults),
    ];
    const body = { updates, tenant_id: tenantId };
    const answer = await call(instance, 'AuthzService/WriteRelationTuples', body);
    return String(answer.body['consistency_token']);
  }

  function sessionTo(url: string): http2.ClientHttp2Session {
    let session = sessions.get(url);
    if (session === undefined || session.closed || session.destroyed) {
      session = http2.connect(url);
      sessions.set(url, session);
    }
    return session;
  }

  async function send(
    where: (typeof WHERE)[number],
    carrier: Carrier,
    { method, isJson, body }: Sent,
    token: string,
  ): Promise<object> {
    const url = where === 'hot' ? instance.baseUrl : instance.generalUrl;
    const path = `/gatehouse.v1.QueryService/${method}`;
    const format = isJson ? 'json' : 'proto';
    const prefix = {
      gRPC: 'grpc+',
      'gRPC-Web': 'grpc-web+',
      Connect: '',
      'Connect over HTTP/2': '',
    };
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': `application/${prefix[carrier]}${format}`,
      'x-request-id': 'the-same',
    };
    const framed = carrier.startsWith('gRPC') ? envelope(0, body) : Buffer.from(body);
    if (carrier.endsWith('2') || carrier === 'gRPC') {
      const { body: given, ...rest } = await callHttp2(sessionTo(url), path, headers, [framed]);
      return { ...rest, body: given.toString('latin1') };
    }
    const response = await fetch(url + path, {
      method: 'POST',
      headers,
      body: new Uint8Array(framed),
    });
    const fields = Object.fromEntries(response.headers);
    delete fields['date'];
    const given = Buffer.from(await response.arrayBuffer()).toString('latin1');
    return { status: response.status, fields, body: given };
  }

  /** Whether it was answered. Both paths say the same, and to a caller that reaches one tenant alone nothing of others. */
  async function expectSame(carrier: Carrier, sent: Sent): Promise<boolean> {
    const answers = await Promise.all(
      [instance.token, NARROW_TOKEN].flatMap((token) =>
        WHERE.map((where) => send(where, carrier, sent, token)),
      ),
    );
    const [hot, general, hotNarrow, generalNarrow] = answers;
    const what = `${carrier} ${sent.method} ${Buffer.from(sent.body).toString('latin1')}`;
    expect(hot, what).toEqual(general);
    expect(hotNarrow, what).toEqual(generalNarrow);
    expect(JSON.stringify(answers), what).not.toContain('INTERNAL');
    if (isOutOfReach(METHODS[sent.method], sent.isJson, sent.body)) {
      expect(isAnswered(hotNarrow), what).toBe(false);
    } else expect(hotNarrow, what).toEqual(hot);
    return isAnswered(hot);
  }

  function isAnswered(answer: object | undefined): boolean {
    const { status, fields, body } = answer as {
      status: number;
      fields: Record<string, string>;
      body: string;
    };
    const code = fields['grpc-status'] ?? /grpc-status: (\d+)/.exec(body)?.[1];
    return code === undefined ? status === 200 : code === '0';
  }

  test.each(NAMES)(`%s, generated (SEED=${seed})`, async (method) => {
    let answered = 0;
    const request = fc.tuple(
      fc.option(
        scopes(() => tokens),
        { nil: undefined },
      ),
      asked[method],
    );
    await fc.assert(
      fc.asyncProperty(
        request,
        fc.constantFrom(...CARRIERS),
        fc.record({ isScopeLast: fc.boolean(), isCamel: fc.boolean(), isJson: fc.boolean() }),
        async ([scope, rest], carrier, how) => {
          const members = how.isScopeLast ? { ...rest, scope } : { scope, ...rest };
          const text = JSON.stringify(members);
          const spelled = how.isCamel ? camelCase(text) : text;
          const json = { method, isJson: true, body: Buffer.from(spelled) };
          if (await expectSame(carrier, json)) answered += 1;
          const message = how.isJson ? undefined : messageOf(METHODS[method], spelled);
          if (message !== undefined)
            await expectSame(carrier, { method, isJson: false, body: message });
        },
      ),
      { numRuns: RUNS, seed },
    );
    expect(answered, 'some are valid').toBeGreaterThan(byLength(0, RUNS / 4));
  });

  const VALID: Readonly<Record<Method, string>> = {
    Check:
      '"question":{"namespace":"resource","object_id":"d1","relation":"viewer","subject":{"user_id":"alice"}}',
    BatchCheck:
      '"items":[{"question":{"namespace":"resource","object_id":"d4","relation":"viewer","subject":{"user_id":"alice"}},"context":{"age":30}},{}]',
    ListRelations: '"namespace":"resource","object_id":"d1","subject":{"user_id":"alice"}',
    FilterObjects:
      '"namespace":"resource","relation":"viewer","subject":{"user_id":"alice"},"object_ids":["d1","d3","]}"]',
    Explain:
      '"question":{"namespace":"resource","object_id":"d4","relation":"viewer","subject":{"user_id":"alice"}},"remedies_max":1',
  };
  /** Scopes as members: odd ones, and such as hide another one. */
  const SCOPES = [
    '"scope":null',
    '"scope":{}',
    '"scope":{"tenant_id":"t1"}',
    '"sc\\u006fpe":{"tenant\\u005fid":"\\u0074\\u0031"}',
    '"scope":{"tenant_id":"t1"},"scope":{"tenant_id":""}',
    '"scope":{"tenant_id":"t1","tenantId":""}',
    '"scope":{"context":{"a":[1],"scope":{"tenant_id":"t1"}},"contextual_tuples":[]}',
    '"scope":{"context":{"tenant_id":"t1"}},"items":[]',
    '"scope":{"tenant_id":7}',
    '"scope":[]',
    '"scope":{"tenant_id":"t1"',
    '"scope":{"nobody":1}',
    '"scope":{"model_version":null,"userset_mode":null,"context":null,"contextual_tuples":null}',
    '"scope":{"model_version":"4294967296"}',
    '"tenant_id":"t1"',
    '"tenant_id":"t1","scope":{}',
    `"scope":{"tenant_id":"${'x'.repeat(600)}"}`,
    `"scope":{"context":{"a":"${'x'.repeat(70_000)}"},"tenant_id":"t1"}`,
  ];

  /** Both over one carrier; over the others one of two in turn, and none, since a scan is the same over all. */
  const ordersOf = <T>(carrier: Carrier, orders: readonly T[], turn: number): readonly T[] =>
    carrier === 'Connect' ? orders : orders.filter((_order, i) => turn % 4 === i * 2);

  test.each(carriers)('odd scopes over %s', async (carrier) => {
    for (const [m, method] of NAMES.entries()) {
      for (const [i, scope] of SCOPES.entries()) {
        const orders = [`{${scope},${VALID[method]}}`, `{${VALID[method]},${scope}}`];
        const inShort = ordersOf(carrier, orders, i + m);
        for (const text of byLength(inShort, [...orders, `{${scope}}`])) {
          await expectSame(carrier, { method, isJson: true, body: Buffer.from(text) });
        }
      }
    }
  });

  /** Scopes in binary: as bytes of the field `scope`, several of which are one. */
  const within = (...bytes: readonly number[]): number[] => [0x0a, bytes.length, ...bytes];
  const T1 = [0x12, 2, 0x74, 0x31];
  const BINARY_SCOPES = [
    within(...T1),
    [...within(...T1), ...within(0x12, 0)],
    [...within(0x12, 0), ...within(...T1)],
    [...within(...T1), ...within()],
    within(...T1, 0x30, 0),
    within(...T1, 0x30, 0x80, 0x80, 0x80, 0x80, 0x10),
    within(...T1, 0x38, 2),
    within(...T1, 0x38, 9),
    within(...T1, 0x38, 0x80),
    within(0x12, 9, 0x74),
    within(...T1, 0x42, 1, 0x70),
    within(0x10, 2, 0x74, 0x31),
    within(0x13, 2, 0x74, 0x31),
    within(0x12, 2, 0xc3, 0x28),
    [0x0a, 9, ...T1],
    [0x08, 4, ...T1],
    [...within(...T1), 0x52, 0],
  ];

  once.each(carriers)('odd scopes in binary over %s', async (carrier) => {
    for (const [m, method] of NAMES.entries()) {
      const rest = messageOf(METHODS[method], `{${VALID[method]}}`) ?? [];
      expect(rest.length).toBeGreaterThan(0);
      for (const [i, scope] of BINARY_SCOPES.entries()) {
        const orders = [
          [...scope, ...rest],
          [...rest, ...scope],
        ];
        const inShort = ordersOf(carrier, orders, i + m);
        for (const bytes of byLength(inShort, [...orders, scope])) {
          await expectSame(carrier, { method, isJson: false, body: Uint8Array.from(bytes) });
        }
      }
    }
  });

  once('long lists, whose answers are encoded in parts', async () => {
    const many = (text: string) => Array.from({ length: 700 }, () => text).join(',');
    const item =
      '{"question":{"namespace":"resource","object_id":"d1","relation":"viewer","subject":{"user_id":"alice"}}},{}';
    for (const carrier of carriers) {
      for (const [method, text] of [
        ['BatchCheck', `{"items":[${many(item)}]}`],
        ['FilterObjects', `{${VALID.FilterObjects.replace('"d3"', many('"d3"'))}}`],
      ] as const) {
        expect(await expectSame(carrier, { method, isJson: true, body: Buffer.from(text) })).toBe(
          true,
        );
        const body = messageOf(METHODS[method], text) ?? new Uint8Array(0);
        expect(await expectSame(carrier, { method, isJson: false, body })).toBe(true);
      }
    }
  });
}

function camelCase(text: string): string {
  return text.replaceAll(/"([a-z]+_[a-z_]+)":/g, (_all, key: string) => {
    return `"${key.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase())}":`;
  });
}

/** The binary form of a request that is valid JSON; undefined of any other. */
function messageOf(desc: DescMessage, text: string): Uint8Array | undefined {
  try {
    return toBinary(desc, fromJson(desc, JSON.parse(text) as JsonObject));
  } catch {
    return undefined;
  }
}
