import { beforeAll, describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';
import { sampledBodies } from './sampled-bodies.ts';

/*
 * Every field of every method of GroupService and SeatService with what it must not hold, and the
 * error that names it; nothing is written by any of it, and nothing ever answers 500.
 */
const { database, instance } = await instanceForFile();
let valid: Readonly<Record<string, Body>>;

type Body = Readonly<Record<string, unknown>>;

beforeAll(async () => {
  const made = await call(instance, 'GroupService/CreateGroup', {
    acting_user_id: 'ann',
    display_name: 'Readers',
  });
  const { id } = made.body['group'] as { id: string };
  const one = { acting_user_id: 'ann', group_id: id };
  const member = { ...one, member: { user_id: 'bob' } };
  const seat = { sku: 'pro', user_id: 'bob' };
  valid = {
    'GroupService/CreateGroup': { acting_user_id: 'ann', display_name: 'More' },
    'GroupService/GetGroup': one,
    'GroupService/ListGroups': { acting_user_id: 'ann' },
    'GroupService/DeleteGroup': { ...one, group_id: 'nothing' },
    'GroupService/AddGroupMember': member,
    'GroupService/RemoveGroupMember': member,
    'GroupService/ListGroupMembers': one,
    'GroupService/SetEnrollmentState': { ...member, state: 'ENROLLMENT_STATE_ACTIVE' },
    'GroupService/ListEnrollments': one,
    'SeatService/SetSeatLimit': { sku: 'pro', limit: 5 },
    'SeatService/GetSeatUsage': { sku: 'pro' },
    'SeatService/AssignSeat': seat,
    'SeatService/RevokeSeat': seat,
    'SeatService/ListSeats': { sku: 'pro' },
  };
});

const METHODS = [
  ...[
    'CreateGroup',
    'GetGroup',
    'ListGroups',
    'DeleteGroup',
    'AddGroupMember',
    'RemoveGroupMember',
    'ListGroupMembers',
    'SetEnrollmentState',
    'ListEnrollments',
  ].map((name) => `GroupService/${name}`),
  ...['SetSeatLimit', 'GetSeatUsage', 'AssignSeat', 'RevokeSeat', 'ListSeats'].map(
    (name) => `SeatService/${name}`,
  ),
];
const GROUP_METHODS = METHODS.filter((method) => method.startsWith('Group'));
const SEAT_METHODS = METHODS.filter((method) => method.startsWith('Seat'));
const ON_A_GROUP = GROUP_METHODS.filter((method) => !/Create|ListGroups$/.test(method));
const ON_A_MEMBER = ['Add', 'Remove'].map((verb) => `GroupService/${verb}GroupMember`);
ON_A_MEMBER.push('GroupService/SetEnrollmentState');

const BAD_TEXT = ['\u0000', 'a\u0000b', '\ud800', 'x\udc00y'];
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
const BAD_SKU = ['', '-a', '.a', 'a b', 'é', 'a/b', 'x'.repeat(64), ...BAD_TEXT];
const WRONG_TYPES: readonly unknown[] = [1.5, true, [1], { a: 1 }];

type Row = {
  readonly method: string;
  readonly field: string;
  readonly values: readonly unknown[];
  /** The body's part that holds the value. */
  readonly part: (value: unknown) => Body;
};
const row = (
  method: string,
  field: string,
  values: readonly unknown[],
  part?: Row['part'],
): Row => ({
  method,
  field,
  values,
  part: part ?? ((value) => ({ [field]: value })),
});

const ROWS: readonly Row[] = [
  ...METHODS.flatMap((method) => [
    row(method, 'project_id', [...BAD_PROJECT, ...WRONG_TYPES]),
    row(method, 'tenant_id', [...BAD_TENANT, ...WRONG_TYPES]),
  ]),
  ...GROUP_METHODS.map((method) =>
    row(method, 'acting_user_id', [undefined, null, ...BAD_ID, ...WRONG_TYPES]),
  ),
  ...ON_A_GROUP.map((method) =>
    row(method, 'group_id', [undefined, null, ...BAD_ID, ...WRONG_TYPES]),
  ),
  ...ON_A_MEMBER.flatMap((method) => [
    row(method, 'member', [undefined, null, {}, 1, 'x', [], { user_id: null }]),
    row(method, 'member', [{ user_id: 'a', group_id: 'b' }, { nobody: 'a' }]),
    row(method, 'member.user_id', BAD_ID, (id) => ({ member: { user_id: id } })),
    row(method, 'member.group_id', BAD_ID, (id) => ({ member: { group_id: id } })),
  ]),
  row('GroupService/SetEnrollmentState', 'state', [
    undefined,
    null,
    'ENROLLMENT_STATE_UNSPECIFIED',
    0,
    6,
    -1,
    'ACTIVE',
    1.5,
    true,
    {},
  ]),
  row('GroupService/CreateGroup', 'display_name', [
    undefined,
    '',
    ' \t ',
    'x'.repeat(201),
    '😀'.repeat(201),
    ...BAD_TEXT,
    ...WRONG_TYPES,
  ]),
  row('GroupService/CreateGroup', 'slug', [
    'Upper',
    'a b',
    '-a',
    'a-',
    'a--b',
    'é',
    'x'.repeat(64),
    ...BAD_TEXT,
    ...WRONG_TYPES,
  ]),
  ...['CreateGroup', 'ListGroups'].map((name) =>
    row(`GroupService/${name}`, 'workspace_id', [...BAD_ID.slice(1), ...WRONG_TYPES]),
  ),
  ...SEAT_METHODS.map((method) =>
    row(method, 'sku', [undefined, null, ...BAD_SKU, ...WRONG_TYPES]),
  ),
  ...['AssignSeat', 'RevokeSeat'].map((name) =>
    row(`SeatService/${name}`, 'user_id', [undefined, null, ...BAD_ID, ...WRONG_TYPES]),
  ),
  row('SeatService/SetSeatLimit', 'limit', [
    -1,
    2 ** 31,
    -(2 ** 31),
    1e300,
    1.5,
    'many',
    '9'.repeat(400),
    true,
    {},
    [],
  ]),
];

async function everything(): Promise<string> {
  const { rows } = await database.pool.query<{ all: string }>(
    `select concat_ws(' ', (select count(*) from user_group), (select count(*) from enrollment),
       (select count(*) from seat_limit), (select count(*) from seat_assignment),
       (select count(*) from relation_tuple), (select sum(seq) from shard)) as all`,
  );
  return rows[0]?.all ?? '';
}

describe('each field names itself, and nothing is written', () => {
  test.each(ROWS.map((one) => [one.method, one.field, one] as const))(
    '%s %s',
    async (_method, _field, one) => {
      const before = await everything();
      for (const value of one.values) {
        const answer = await call(instance, one.method, {
          ...valid[one.method],
          ...one.part(value),
        });
        const shown = `${JSON.stringify(value)} → ${answer.status} ${JSON.stringify(answer.body)}`;
        expect(answer.status, shown).toBe(400);
        expect(answer.body['code'], shown).toBe('invalid_argument');
        const message = String(answer.body['message']);
        // An integer in a text is read here, and not by the library.
        const isRead = message.startsWith(`${one.field}: must be a whole number from `);
        const isLibrarys = shown.includes('BODY_MALFORMED') && !isRead;
        expect(message, shown).toContain(isLibrarys ? 'cannot decode' : one.field);
      }
      expect(await everything()).toBe(before);
    },
  );
});

test('unknown fields are refused by name, in members, too', async () => {
  for (const method of METHODS) {
    const answer = await call(instance, method, { ...valid[method], no_such_field: 1 });
    expect([method, answer.status]).toEqual([method, 400]);
    expect(String(answer.body['message'])).toContain('no_such_field');
  }
});

test('unknown projects are not found by any method', async () => {
  for (const method of METHODS) {
    const answer = await call(instance, method, { ...valid[method], project_id: 'unknown' });
    expect([method, answer.status, answer.body['code']]).toEqual([method, 404, 'not_found']);
  }
});

test('an id that reads like trouble of the database is unknown like any other', async () => {
  const id = 'Connection terminated unexpectedly';
  for (const method of ON_A_GROUP) {
    const answer = await call(instance, method, { ...valid[method], group_id: id });
    expect([method, answer.status]).toEqual([method, 404]);
  }
  const member = { ...valid['GroupService/AddGroupMember'], member: { group_id: id } };
  const answer = await call(instance, 'GroupService/AddGroupMember', member);
  expect([answer.status, answer.body['code']]).toEqual([404, 'not_found']);
});

test('camelCase is understood, and numbers of states', async () => {
  const member = valid['GroupService/SetEnrollmentState'] ?? {};
  const answer = await call(instance, 'GroupService/SetEnrollmentState', {
    actingUserId: 'ann',
    groupId: member['group_id'],
    member: { userId: 'camel' },
    state: 1,
  });
  expect(answer.body['enrollment']).toMatchObject({
    member: { user_id: 'camel' },
    state: 'ENROLLMENT_STATE_WAITLISTED',
  });
});

describe('whatever a body holds, no method answers 500', () => {
  const FIELDS = [
    'acting_user_id',
    'project_id',
    'tenant_id',
    'display_name',
    'slug',
    'workspace_id',
    'group_id',
    'member',
    'state',
    'sku',
    'user_id',
    'limit',
    'unknown_field',
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
    { user_id: 1 },
    { group_id: 'x' },
    [{ member: {} }],
  ];
  test.each(METHODS)('%s', async (method) => {
    const bodies = ['', '{', 'null', '[]', '"x"', '[['.repeat(20_000)];
    for (const field of FIELDS) {
      for (const value of VALUES) {
        bodies.push(`{"${field}":${JSON.stringify(value)}}`);
        bodies.push(JSON.stringify({ ...valid[method], [field]: value }));
      }
    }
    for (const body of sampledBodies(bodies, METHODS.indexOf(method), 7)) {
      const answer = await call(instance, method, body);
      expect(answer.status, `${body.slice(0, 200)}: ${JSON.stringify(answer.body)}`).toBeLessThan(
        500,
      );
    }
  });
});
