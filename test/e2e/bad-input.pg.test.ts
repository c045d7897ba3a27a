import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';
import { sampledBodies } from './sampled-bodies.ts';

/*
 * Every field of every method with what it must not hold, and the error that names it. Each row also
 * goes in with nothing else valid around it: nothing ever answers 500.
 */
const { database, instance } = await instanceForFile({ GATEWAY_MAX_BATCH_ITEMS: '5' });

type Body = Readonly<Record<string, unknown>>;

const TUPLE: Body = {
  namespace: 'doc',
  object_id: 'd1',
  relation: 'viewer',
  subject: { user_id: 'alice' },
};
const VALID: Readonly<Record<string, Body>> = {
  'AuthzService/WriteRelationTuples': { updates: [{ op: 'OP_INSERT', tuple: TUPLE }] },
  'AuthzService/ReadRelationTuples': {},
  'AuthzService/Check': {
    namespace: 'doc',
    object_id: 'd1',
    relation: 'viewer',
    subject_user_id: 'alice',
  },
  'AuthzService/BatchCheck': { items: [] },
  'AuthzService/Expand': { namespace: 'doc', object_id: 'd1', relation: 'viewer' },
  'AuthzService/ListObjects': { namespace: 'doc', relation: 'viewer', subject_user_id: 'alice' },
  'AuthzService/DeprovisionUser': { user_id: 'nobody-yet' },
  'AuthzService/ExportSubjectGrants': { user_id: 'alice' },
  'AdminService/CreateProject': { id: 'fresh', name: 'fresh' },
  'AdminService/GetProject': { id: 'default' },
  'AdminService/UpdateProject': { id: 'default' },
  'AdminService/ListProjects': {},
};
const METHODS = Object.keys(VALID);

/** Values that are never a string, number or object of the right kind. */
const WRONG_TYPES: readonly unknown[] = [1.5, true, [1], { a: { b: 1 } }, [[]]];
const BAD_TEXT = ['\u0000', 'a\u0000b', '\ud800', 'x\udc00y'];
const BAD_NAME = ['', 'Upper', '1digit', '_x', 'a b', 'é', 'a'.repeat(65), ...BAD_TEXT];
const BAD_ID = [
  '',
  '#',
  'a#b',
  'a\nb',
  '\u0085',
  '\u007f',
  'x'.repeat(257),
  'é'.repeat(129),
  ...BAD_TEXT,
];
const BAD_TENANT = ['a b', 'é', '/', 'x'.repeat(129), ...BAD_TEXT];
const BAD_PROJECT = ['Upper', '_x', 'a b', 'é', 'x'.repeat(64), ...BAD_TEXT];
const BAD_TOKEN = ['x', 'A'.repeat(40), 'é', 'A'.repeat(10_000), ...BAD_TEXT];

type Row = {
  readonly method: string;
  /** As the message names it. */
  readonly field: string;
  readonly values: readonly unknown[];
  readonly set: (value: unknown) => Body;
};

function row(method: string, field: string, values: readonly unknown[], set?: Row['set']): Row {
  return { method, field, values, set: set ?? ((value) => ({ ...VALID[method], [field]: value })) };
}

function tupleRow(field: string, values: readonly unknown[], set: (value: unknown) => Body): Row {
  return row('AuthzService/WriteRelationTuples', `updates[0].tuple.${field}`, values, (value) => ({
    updates: [{ op: 'OP_INSERT', tuple: { ...TUPLE, ...set(value) } }],
  }));
}

const notEmpty = (values: readonly unknown[]): readonly unknown[] => values.filter((v) => v !== '');
const SCOPED = METHODS.filter((method) => method.startsWith('AuthzService/'));
const WITH_TENANT = SCOPED.filter((method) => !/Deprovision|Export/.test(method));
const WITH_TOKEN = ['ReadRelationTuples', 'Check', 'BatchCheck', 'Expand', 'ListObjects'].map(
  (name) => `AuthzService/${name}`,
);
const OBJECT_METHODS = ['AuthzService/Check', 'AuthzService/Expand'];
const check = 'AuthzService/Check';
const list = 'AuthzService/ListObjects';
const read = 'AuthzService/ReadRelationTuples';
const write = 'AuthzService/WriteRelationTuples';
const create = 'AdminService/CreateProject';
const update = 'AdminService/UpdateProject';
const withoutUser = (set: unknown): Body => {
  const { subject_user_id: _left, ...rest } = VALID[check] ?? {};
  return { ...rest, subject_set: set };
};

const ROWS: readonly Row[] = [
  ...SCOPED.map((method) => row(method, 'project_id', BAD_PROJECT)),
  ...WITH_TENANT.map((method) => row(method, 'tenant_id', BAD_TENANT)),
  ...WITH_TOKEN.map((method) => row(method, 'at_least_consistency_token', BAD_TOKEN)),
  ...OBJECT_METHODS.flatMap((method) => [
    row(method, 'namespace', BAD_NAME),
    row(method, 'object_id', BAD_ID),
    row(method, 'relation', BAD_NAME),
  ]),
  row(check, 'subject_user_id', BAD_ID),
  row(check, 'subject_set', [{ namespace: 'group', object_id: 'g', relation: 'member' }]),
  row(check, 'subject_set.namespace', BAD_NAME, (namespace) =>
    withoutUser({ namespace, object_id: 'g', relation: 'member' }),
  ),
  row(check, 'subject_set.object_id', BAD_ID, (object_id) =>
    withoutUser({ namespace: 'group', object_id, relation: 'member' }),
  ),
  row(check, 'subject_set.relation', notEmpty(BAD_NAME), (relation) =>
    withoutUser({ namespace: 'group', object_id: 'g', relation }),
  ),
  row(
    check,
    'context',
    BAD_TEXT.flatMap((text) => [
      { a: text },
      { a: [text] },
      { [text]: 1 },
      { a: { b: { [text]: 1 } } },
    ]),
  ),
  row(list, 'namespace', BAD_NAME),
  row(list, 'relation', BAD_NAME),
  row(list, 'subject_user_id', BAD_ID),
  row(read, 'namespace', notEmpty(BAD_NAME)),
  row(read, 'object_id', notEmpty(BAD_ID)),
  row(read, 'relation', notEmpty(BAD_NAME)),
  row(read, 'subject_user_id', notEmpty(BAD_ID)),
  row('AuthzService/DeprovisionUser', 'user_id', BAD_ID),
  row('AuthzService/ExportSubjectGrants', 'user_id', BAD_ID),
  row(write, 'updates', [[], null]),
  row(write, 'updates[0].op', ['OP_UNSPECIFIED', 7, null], (op) => ({
    updates: [{ op, tuple: TUPLE }],
  })),
  row(write, 'updates[0].tuple', [undefined, null], (tuple) => ({
    updates: [{ op: 'OP_DELETE', tuple }],
  })),
  row(write, 'updates[1]', [0], () => ({
    updates: [
      { op: 'OP_INSERT', tuple: TUPLE },
      { op: 'OP_DELETE', tuple: TUPLE },
    ],
  })),
  tupleRow('namespace', [...BAD_NAME, 'seat'], (namespace) => ({ namespace })),
  tupleRow('object_id', BAD_ID, (object_id) => ({ object_id })),
  tupleRow('relation', BAD_NAME, (relation) => ({ relation })),
  tupleRow('project_id', ['other'], (project_id) => ({ project_id })),
  tupleRow('tenant_id', ['other'], (tenant_id) => ({ tenant_id })),
  tupleRow('subject', [undefined, null, {}], (subject) => ({ subject })),
  tupleRow('subject', BAD_ID, (user_id) => ({ subject: { user_id } })),
  tupleRow('subject', [false], (wildcard) => ({ subject: { wildcard } })),
  tupleRow('subject', BAD_NAME, (namespace) => ({
    subject: { set: { namespace, object_id: 'x' } },
  })),
  tupleRow('subject', BAD_ID, (object_id) => ({ subject: { set: { namespace: 'x', object_id } } })),
  tupleRow('subject', notEmpty(BAD_NAME), (relation) => ({
    subject: { set: { namespace: 'x', object_id: 'x', relation } },
  })),
  tupleRow('condition_name', [...BAD_TEXT, 'x'.repeat(257)], (condition_name) => ({
    condition_name,
  })),
  tupleRow('condition_params', [{}, { a: 1 }], (condition_params) => ({ condition_params })),
  tupleRow(
    'condition_params',
    BAD_TEXT.map((text) => ({ a: [{ [text]: text }] })),
    (condition_params) => ({ condition_name: 'not_after', condition_params }),
  ),
  ...[create, update, 'AdminService/GetProject'].map((method) =>
    row(method, 'id', ['', ...BAD_PROJECT]),
  ),
  row(create, 'name', ['', ' \t', 'x'.repeat(201), ...BAD_TEXT]),
  row(update, 'name', [' \t', 'x'.repeat(201), ...BAD_TEXT]),
  ...[create, update].flatMap((method) => [
    row(method, 'model_json', [
      '{',
      '[]',
      '{"namespaces":1}',
      '{"namespaces":{"seat":{"relations":{}}}}',
      '{"schema_version":2,"namespaces":{}}',
      '{"namespaces":{"doc":{"relations":{}},"doc":{"relations":{}}}}',
      ...BAD_TEXT,
    ]),
    row(method, 'data_region', ['Upper', 'a b', 'x'.repeat(64), ...BAD_TEXT]),
    row(method, 'max_check_reads', [-1, 1, 99]),
  ]),
  row(update, 'status', [7]),
  row(update, 'clear_data_region', [true], (clear) => ({
    id: 'default',
    data_region: 'eu',
    clear_data_region: clear,
  })),
  row(update, 'clear_max_check_reads', [true], (clear) => ({
    id: 'default',
    max_check_reads: 500,
    clear_max_check_reads: clear,
  })),
];

describe('each field names itself', () => {
  test.each(ROWS.map((one) => [one.method, one.field, one] as const))(
    '%s %s',
    async (_m, _f, one) => {
      for (const value of one.values) {
        const answer = await call(instance, one.method, one.set(value));
        const shown = `${JSON.stringify(value)} → ${answer.status} ${JSON.stringify(answer.body)}`;
        expect(answer.status, shown).toBe(400);
        expect(answer.body['code'], shown).toBe('invalid_argument');
        expect(String(answer.body['message']), shown).toContain(namedBy(one, answer.body));
      }
    },
  );
});

describe('whatever a body holds, no method answers 500', () => {
  const FIELDS = [
    'project_id',
    'tenant_id',
    'namespace',
    'object_id',
    'relation',
    'subject_user_id',
    'subject_set',
    'context',
    'updates',
    'items',
    'user_id',
    'id',
    'name',
    'status',
    'model_json',
    'data_region',
    'max_check_reads',
    'clear_data_region',
    'at_least_consistency_token',
    'unknown_field',
    'op',
    '__proto__',
    'constructor',
  ];
  const VALUES = [
    ...WRONG_TYPES,
    null,
    '',
    'x',
    '\u0000',
    1e300,
    -1,
    '9'.repeat(400),
    { user_id: 1 },
    [{ op: 'OP_INSERT' }],
    [{ tuple: null }],
    { set: {} },
  ];
  test.each(METHODS)('%s', async (method) => {
    const bodies: string[] = [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '[['.repeat(20_000),
      `{"context":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
    ];
    for (const field of FIELDS)
      for (const value of VALUES) bodies.push(`{"${field}":${JSON.stringify(value)}}`);
    for (const body of sampledBodies(bodies, METHODS.indexOf(method), METHODS.length)) {
      const answer = await call(instance, method, body);
      expect(answer.status, `${body.slice(0, 200)}: ${JSON.stringify(answer.body)}`).toBeLessThan(
        500,
      );
    }
  });
});

test('unknown fields and wrong types are refused by name', async () => {
  for (const method of METHODS) {
    const unknown = await call(instance, method, { ...VALID[method], no_such_field: 1 });
    expect(unknown.status, method).toBe(400);
    expect(String(unknown.body['message'])).toContain('no_such_field');
  }
});

test('a batch over its limit is refused, an item that is not valid is not', async () => {
  const item = VALID[check] ?? {};
  const tooMany = await call(instance, 'AuthzService/BatchCheck', {
    items: Array.from({ length: 6 }, () => item),
  });
  expect(tooMany.status).toBe(429);
  expect(tooMany.body['code']).toBe('resource_exhausted');
  const items = [
    { ...item, namespace: '' },
    { ...item, object_id: '#' },
    item,
    { ...item, subject_user_id: '' },
  ];
  const mixed = await call(instance, 'AuthzService/BatchCheck', { items });
  expect(mixed.status).toBe(200);
  const results = mixed.body['results'] as { allowed: boolean; error: string }[];
  expect(results.map((result) => result.error !== '')).toEqual([true, true, false, true]);
  for (const [index, one] of items.entries()) {
    if (index === 2) continue;
    const single = await call(instance, check, one);
    expect(results[index]?.error).toBe(single.body['message']);
  }
});

test('a model that names a relation twice is not taken any more; one that was still decides', async () => {
  const model_json = '{"namespaces":{"doc":{"relations":{"a":{},"b":{},"b":{"computed":"a"}}}}}';
  const text = 'insert into project (id, name, model_json) values ($1, $1, $2)';
  await database.pool.query(text, ['before', model_json]);
  const tuple = { ...TUPLE, relation: 'a' };
  const grant = { project_id: 'before', updates: [{ op: 'OP_INSERT', tuple }] };
  expect((await call(instance, 'AuthzService/WriteRelationTuples', grant)).status).toBe(200);
  const query = { ...VALID[check], project_id: 'before', relation: 'b' };
  expect((await call(instance, check, query)).body).toEqual({ allowed: true });
  const rename = { id: 'before', name: 'renamed' };
  expect((await call(instance, 'AdminService/UpdateProject', rename)).status).toBe(200);
  const again = await call(instance, 'AdminService/UpdateProject', { ...rename, model_json });
  expect(again).toMatchObject({
    status: 400,
    body: {
      code: 'invalid_argument',
      message: 'model_json: $.namespaces.doc.relations: duplicate key "b"',
    },
  });
});

/** Errors of decoding name the field by itself, later ones by its path; a model by its JSON path. */
function namedBy(one: Row, body: Readonly<Record<string, unknown>>): string {
  if (one.field === 'model_json') return '';
  if (JSON.stringify(body).includes('BODY_MALFORMED')) return 'cannot decode';
  return one.field.replace(/\[\d+\]$/, '');
}
