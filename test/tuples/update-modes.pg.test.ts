import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, test } from 'vitest';
import { UpdateMode as Mode } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op as Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { createCuttingProxy } from '../support/cutting-proxy.ts';
import { type Instance, startInstance } from '../support/instance.ts';
import { threeInstances } from '../support/three-instances.ts';
import { exported, tuplesOver } from './support.ts';

/* What updates of WriteTuples ask of the tuples that they are about, on three instances. */

const three = threeInstances();

let tenants = 0;
const newTenant = (): string => `m${String(++tenants)}`;

const insert = (objectId: string, more: object = {}) => ({
  op: Op.INSERT as Op,
  tuple: {
    namespace: 'doc',
    objectId,
    relation: 'owner',
    subject: { kind: { case: 'userId' as const, value: 'ann' } },
    ...more,
  },
});
const remove = (objectId: string) => ({ ...insert(objectId), op: Op.DELETE as Op });
const LONG_AGO = { expiresAt: { seconds: 1n, nanos: 0 } };
const OTHER = { conditionName: 'scope_in', conditionParams: { scopes: ['a'] } };

/** Code and message of a refusal, or undefined. */
async function refusalOf(promise: Promise<unknown>): Promise<[Code, string] | undefined> {
  return await promise.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ConnectError) return [error.code, error.rawMessage];
      throw error;
    },
  );
}

async function idsIn(tenantId: string): Promise<readonly string[]> {
  const stored = await exported(three.instances[1], `?tenant_id=${tenantId}`);
  return stored.map((tuple) => tuple.object_id);
}

describe('a mode of an update', () => {
  test('absent: nothing of the request is written where the key is stored, under whatever condition', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const write = (modes: readonly Mode[], ...updates: ReturnType<typeof insert>[]) =>
      client.writeTuples({ tenantId, updates, modes: [...modes] });
    await write([Mode.ABSENT, Mode.ABSENT], insert('a'), insert('b', LONG_AGO));
    const exists = [Code.AlreadyExists, 'updates[1].tuple: doc:a#owner@user:ann is stored already'];
    const modes = [Mode.UNSPECIFIED, Mode.ABSENT];
    expect(await refusalOf(write(modes, insert('c'), insert('a')))).toEqual(exists);
    expect(await refusalOf(write(modes, insert('c'), insert('a', OTHER)))).toEqual(exists);
    // What has expired is stored.
    expect(await refusalOf(write([Mode.ABSENT], insert('b')))).toEqual([
      Code.AlreadyExists,
      'updates[0].tuple: doc:b#owner@user:ann is stored already',
    ]);
    expect(await idsIn(tenantId)).toEqual(['a', 'b']);
    await write([Mode.PRESENT], remove('b'));
    await write(modes, insert('c'), insert('b'));
    expect(await idsIn(tenantId)).toEqual(['a', 'b', 'c']);
  });

  test('absent or identical: the same is left as it is, without a change; another condition, parameter or expiry is refused', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const write = (...updates: ReturnType<typeof insert>[]) =>
      client.writeTuples({
        tenantId,
        updates,
        modes: updates.map(() => Mode.ABSENT_OR_IDENTICAL),
      });
    const first = await write(insert('a', OTHER), insert('b', LONG_AGO), insert('c'));
    const again = await write(insert('c'), insert('a', OTHER), insert('b', LONG_AGO));
    expect(again.consistencyToken).toBe(first.consistencyToken);
    const other = [
      insert('a'),
      insert('a', { conditionName: 'scope_in' }),
      insert('a', { ...OTHER, conditionParams: { scopes: ['b'] } }),
      insert('a', { ...OTHER, ...LONG_AGO }),
      insert('b'),
      insert('c', OTHER),
    ];
    for (const one of other) {
      expect(await refusalOf(write(insert('new'), one))).toEqual([
        Code.AlreadyExists,
        `updates[1].tuple: doc:${one.tuple.objectId}#owner@user:ann is stored with another expiry or condition`,
      ]);
    }
    const { rows } = await three.database.pool.query(
      'select seq::int, changes from tuple_change where tenant_id = $1 order by seq',
      [tenantId],
    );
    expect(rows).toHaveLength(1);
    // Of several only what is new is a change.
    await write(insert('c'), insert('d'));
    const changed = await three.database.pool.query(
      'select changes from tuple_change where tenant_id = $1 and seq = 2',
      [tenantId],
    );
    expect(JSON.parse(changed.rows[0].changes)).toEqual([
      [1, 'doc', 'd', 'owner', '', 'ann', '', null, null, null],
    ]);
  });

  test('present: a delete of what is not stored writes nothing of its request', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    await client.writeTuples({ tenantId, updates: [insert('a'), insert('b', LONG_AGO)] });
    const both = { updates: [remove('a'), remove('none')], modes: [Mode.PRESENT, Mode.PRESENT] };
    expect(await refusalOf(client.writeTuples({ tenantId, ...both }))).toEqual([
      Code.FailedPrecondition,
      'updates[1].tuple: doc:none#owner@user:ann is not stored',
    ]);
    expect(await idsIn(tenantId)).toEqual(['a', 'b']);
    const modes = [Mode.PRESENT, Mode.UNSPECIFIED];
    await client.writeTuples({ tenantId, updates: [remove('b'), remove('none')], modes });
    expect(await idsIn(tenantId)).toEqual(['a']);
  });

  test('goes with a key and with preconditions, and the same write under the key is no second one', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const write = {
      tenantId,
      updates: [insert('a')],
      modes: [Mode.ABSENT],
      preconditions: [
        { kind: { case: 'mustNotExist' as const, value: { objectId: 'a', namespace: 'doc' } } },
      ],
      idempotencyKey: 'k',
    };
    const first = await client.writeTuples(write);
    const again = await tuplesOver(three.instances[1]).writeTuples(write);
    expect(again).toMatchObject({ consistencyToken: first.consistencyToken, replayed: true });
    const other = { ...write, modes: [Mode.ABSENT_OR_IDENTICAL] };
    expect(await refusalOf(client.writeTuples(other))).toEqual([
      Code.AlreadyExists,
      'idempotency_key: another write was sent under this key',
    ]);
    const refused = { ...write, preconditions: [], idempotencyKey: 'l' };
    expect(await refusalOf(client.writeTuples(refused))).toEqual([
      Code.AlreadyExists,
      'updates[0].tuple: doc:a#owner@user:ann is stored already',
    ]);
    // Refused it has not been used.
    await client.writeTuples({ ...refused, updates: [insert('b')] });
  });

  test.each([
    ['too few', [Mode.ABSENT], 'modes: must have one for each'],
    [
      'one of a delete for an insert',
      [Mode.PRESENT, Mode.UNSPECIFIED],
      'modes[0]: is a mode of deletes',
    ],
    ['one of an insert for a delete', [Mode.ABSENT, Mode.ABSENT], 'modes[1]: is a mode of inserts'],
    ['an unknown one', [9 as Mode, Mode.UNSPECIFIED], 'modes[0]: is no mode'],
    ['one below zero', [Mode.UNSPECIFIED, -1 as Mode], 'modes[1]: is no mode'],
  ])('that is wrong is refused by its name: %s', async (_name, modes, message) => {
    const updates = [insert('a'), remove('b')];
    const written = tuplesOver(three.instances[0], 'grpc').writeTuples({
      tenantId: 'bad',
      updates,
      modes,
    });
    const refusal = await refusalOf(written);
    expect(refusal?.[0]).toBe(Code.InvalidArgument);
    expect(refusal?.[1]).toContain(message);
  });
});

describe('at once', () => {
  test('of all that ask for an absent key exactly one is written, and the others of their groups are', async () => {
    for (let round = 0; round < 5; round++) {
      const tenantId = newTenant();
      const outcomes = await Promise.all(
        Array.from({ length: 30 }, (_, n) => {
          const client = tuplesOver(three.instances[n % 3] as Instance);
          const asks = refusalOf(
            client.writeTuples({
              tenantId,
              updates: [insert('won'), insert(`by-${n}`)],
              modes: [Mode.ABSENT, Mode.ABSENT],
            }),
          );
          const other = client.writeTuples({ tenantId, updates: [insert(`other-${n}`)] });
          return Promise.all([asks, other]);
        }),
      );
      expect(outcomes.filter(([refusal]) => refusal === undefined)).toHaveLength(1);
      const winner = outcomes.findIndex(([refusal]) => refusal === undefined);
      const stored = await idsIn(tenantId);
      expect(stored.filter((id) => id.startsWith('by-'))).toEqual([`by-${winner}`]);
      expect(stored.filter((id) => id.startsWith('other-'))).toHaveLength(30);
    }
  }, 60_000);

  test('a lost answer repeats nothing: what was written is answered so, once', async () => {
    const proxy = await createCuttingProxy(three.database.target);
    const behind = await startInstance({ ...three.database, target: proxy.target });
    try {
      const tenantId = newTenant();
      for (let n = 0; n < 4; n++) {
        proxy.loseAnswers('gatehouse_write_if', 1);
        const before = proxy.lost;
        const write = { tenantId, updates: [insert(`o${n}`)], modes: [Mode.ABSENT] };
        expect(await refusalOf(tuplesOver(behind).writeTuples(write))).toBeUndefined();
        expect(proxy.lost).toBeGreaterThan(before);
        expect(await refusalOf(tuplesOver(behind).writeTuples(write))).toEqual([
          Code.AlreadyExists,
          `updates[0].tuple: doc:o${n}#owner@user:ann is stored already`,
        ]);
      }
      expect(await idsIn(tenantId)).toEqual(['o0', 'o1', 'o2', 'o3']);
    } finally {
      await behind.stop();
      await proxy.close();
    }
  }, 60_000);
});
