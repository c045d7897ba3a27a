import { Code, ConnectError } from '@connectrpc/connect';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleUpdate_Op as Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { createCuttingProxy } from '../support/cutting-proxy.ts';
import { type Instance, startInstance } from '../support/instance.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { threeInstances } from '../support/three-instances.ts';
import {
  anyTuple,
  authzOver,
  exported,
  linesOf,
  plainTuples,
  postLines,
  setOf,
  textOf,
  tuplesOver,
} from './support.ts';

/* Writes that depend on what is stored, writes that are sent again, and deletes by filter, on three instances. */

const three = threeInstances();

let tenants = 0;
const newTenant = (): string => `g${String(++tenants)}`;

const insert = (objectId: string, userId: string, relation = 'owner') => ({
  op: Op.INSERT as Op,
  tuple: {
    namespace: 'doc',
    objectId,
    relation,
    subject: { kind: { case: 'userId' as const, value: userId } },
  },
});
const remove = (objectId: string, userId: string) => ({
  ...insert(objectId, userId),
  op: Op.DELETE,
});
const mustExist = (value: object) => ({ kind: { case: 'mustExist' as const, value } });
const mustNotExist = (value: object) => ({ kind: { case: 'mustNotExist' as const, value } });
const unchangedSince = (value: string) => ({ kind: { case: 'unchangedSince' as const, value } });

async function codeOf(promise: Promise<unknown>): Promise<Code | undefined> {
  return await promise.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ConnectError) return error.code;
      throw error;
    },
  );
}

describe('preconditions', () => {
  test('hold or nothing is written', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const write = (preconditions: object[], ...updates: object[]) =>
      client.writeTuples({ tenantId, updates, preconditions });
    const any = { namespace: 'doc', objectId: 'a' };
    expect(await codeOf(write([mustExist(any)], insert('b', 'x')))).toBe(Code.FailedPrecondition);
    await write([mustNotExist(any)], insert('a', 'x'));
    expect(await codeOf(write([mustNotExist(any)], insert('b', 'x')))).toBe(
      Code.FailedPrecondition,
    );
    const { consistencyToken } = await write([mustExist(any)], insert('b', 'x'));
    await write(
      [unchangedSince(consistencyToken), mustExist({ relation: 'owner' })],
      insert('c', 'x'),
    );
    const old = write([unchangedSince(consistencyToken)], insert('d', 'x'));
    expect(await codeOf(old)).toBe(Code.FailedPrecondition);
    const stored = await exported(three.instances[1], `?tenant_id=${tenantId}`);
    expect(stored.map((tuple) => tuple.object_id)).toEqual(['a', 'b', 'c']);
    for (const one of three.instances) {
      const { allowed } = await authzOver(one).check({
        tenantId,
        namespace: 'doc',
        objectId: 'c',
        relation: 'owner',
        subjectUserId: 'x',
      });
      expect(allowed).toBe(true);
    }
  });

  test('do not see what has expired', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const expired = { ...insert('a', 'x').tuple, expiresAt: { seconds: 1n, nanos: 0 } };
    await client.writeTuples({ tenantId, updates: [{ op: Op.INSERT, tuple: expired }] });
    const any = { namespace: 'doc' };
    const updates = [insert('b', 'x')];
    const must = client.writeTuples({ tenantId, updates, preconditions: [mustExist(any)] });
    expect(await codeOf(must)).toBe(Code.FailedPrecondition);
    await client.writeTuples({ tenantId, updates, preconditions: [mustNotExist(any)] });
  });

  test('a token of another tenant is refused under the name of its field', async () => {
    const client = tuplesOver(three.instances[0]);
    const [tenantId, other] = [newTenant(), newTenant()];
    const { consistencyToken } = await client.writeTuples({
      tenantId: other,
      updates: [insert('a', 'x')],
    });
    const updates = [insert('b', 'x')];
    const preconditions = [mustExist({ namespace: 'doc' }), unchangedSince(consistencyToken)];
    await expect(client.writeTuples({ tenantId, updates, preconditions })).rejects.toThrow(
      'preconditions[1].unchanged_since: is not a token',
    );
    const filter = { namespace: 'doc', objectId: 'b' };
    await expect(
      client.deleteTuples({ tenantId, filter, unchangedSince: consistencyToken }),
    ).rejects.toThrow('] unchanged_since: is not a token');
  });

  test.each([
    ['that nobody owns it yet', () => mustNotExist({ namespace: 'doc', objectId: 'won' })],
    ['a token', (token: string) => unchangedSince(token)],
  ])(
    'of writers that all depend on %s exactly one wins',
    async (_name, condition) => {
      for (let round = 0; round < byLength(3, 8); round++) {
        const tenantId = newTenant();
        const first = await tuplesOver(three.instances[0]).writeTuples({
          tenantId,
          updates: [insert('z', 'z')],
        });
        const attempts = Array.from({ length: 12 }, (_, n) =>
          codeOf(
            tuplesOver(
              three.instances[n % 3] as Instance,
              n % 2 === 0 ? 'grpc' : 'connect',
            ).writeTuples({
              tenantId,
              updates: [insert('won', `user-${n}`)],
              preconditions: [condition(first.consistencyToken)],
            }),
          ),
        );
        const codes = await Promise.all(attempts);
        expect(codes.filter((code) => code === undefined)).toHaveLength(1);
        expect(codes.filter((code) => code === Code.FailedPrecondition)).toHaveLength(11);
        const owners = await exported(
          three.instances[1],
          `?tenant_id=${tenantId}&namespace=doc&object_id=won`,
        );
        expect(owners).toHaveLength(1);
        expect(owners[0]?.subject).toEqual({ user_id: `user-${codes.indexOf(undefined)}` });
      }
    },
    60_000,
  );
});

inShort(describe)('an idempotency key', () => {
  test('has a write applied once, whoever is asked and however often at once', async () => {
    const tenantId = newTenant();
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        Array.from({ length: 9 }, (_, n) =>
          tuplesOver(three.instances[n % 3] as Instance).writeTuples({
            tenantId,
            updates: [insert(`o${round}`, 'x'), remove(`o${round - 1}`, 'x')],
            idempotencyKey: `key-${round} ü`,
          }),
        ),
      );
      expect(new Set(answers.map((answer) => answer.consistencyToken)).size).toBe(1);
      expect(answers.filter((answer) => !answer.replayed)).toHaveLength(1);
    }
    const { rows } = await three.database.pool.query(
      'select seq::text from shard where tenant_id = $1',
      [tenantId],
    );
    expect(rows).toEqual([{ seq: '3' }]);
  });

  test('is refused for another write, and its preconditions are not asked again', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const write = {
      tenantId,
      updates: [insert('a', 'x')],
      preconditions: [mustNotExist({ namespace: 'doc' })],
      idempotencyKey: 'k',
    };
    const first = await client.writeTuples(write);
    expect(await tuplesOver(three.instances[1]).writeTuples(write)).toMatchObject({
      consistencyToken: first.consistencyToken,
      replayed: true,
    });
    const other = { ...write, updates: [insert('b', 'x')] };
    expect(await codeOf(client.writeTuples(other))).toBe(Code.AlreadyExists);
    expect(await codeOf(client.writeTuples({ ...write, preconditions: [] }))).toBe(
      Code.AlreadyExists,
    );
    // Refused by its preconditions it has not been used.
    const refused = { ...other, idempotencyKey: 'free' };
    expect(await codeOf(client.writeTuples(refused))).toBe(Code.FailedPrecondition);
    await client.writeTuples({ ...refused, preconditions: [] });
    // Without an effect, too.
    const nothing = { tenantId, updates: [remove('none', 'x')], idempotencyKey: 'nothing' };
    const { consistencyToken } = await client.writeTuples(nothing);
    expect(await client.writeTuples(nothing)).toMatchObject({ consistencyToken, replayed: true });
  });

  test('holds when the answer of the commit is lost', async () => {
    const proxy = await createCuttingProxy(three.database.target);
    const behind = await startInstance({
      ...three.database,
      target: proxy.target,
    });
    try {
      const tenantId = newTenant();
      for (let n = 0; n < 2; n++) {
        const write = { tenantId, updates: [insert(`o${n}`, 'x')], idempotencyKey: `lost-${n}` };
        proxy.loseAnswers('commit', 1);
        const before = proxy.lost;
        const first = await tuplesOver(behind)
          .writeTuples(write)
          .catch((error: unknown) => {
            expect((error as ConnectError).code).toBe(Code.Unavailable);
          });
        expect(proxy.lost).toBeGreaterThan(before);
        const again = await tuplesOver(three.instances[n % 3] as Instance).writeTuples(write);
        if (first !== undefined) expect(again.consistencyToken).toBe(first.consistencyToken);
        const { rows } = await three.database.pool.query(
          'select seq::text from shard where tenant_id = $1',
          [tenantId],
        );
        expect(rows).toEqual([{ seq: String(n + 1) }]);
      }
    } finally {
      await behind.stop();
      await proxy.close();
    }
  }, 120_000);
});

describe('DeleteTuples', () => {
  test('deletes what the filter takes and nothing else, counted before', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyTuple, { minLength: 1, maxLength: 60 }),
        fc.constantFrom('namespace', 'object', 'relation', 'subject'),
        fc.nat(2),
        async (tuples, by, at) => {
          const tenantId = newTenant();
          await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(tuples));
          const like = tuples[0] as (typeof tuples)[0];
          const kind =
            'user_id' in like.subject
              ? { case: 'userId' as const, value: like.subject.user_id }
              : 'wildcard' in like.subject
                ? { case: 'wildcard' as const, value: true }
                : 'wildcard_of' in like.subject
                  ? { case: 'wildcardOf' as const, value: like.subject.wildcard_of }
                  : {
                      case: 'set' as const,
                      value: {
                        namespace: like.subject.set.namespace,
                        objectId: like.subject.set.object_id,
                        relation: like.subject.set.relation,
                      },
                    };
          const filter = {
            namespace: { namespace: like.namespace },
            object: { namespace: like.namespace, objectId: like.object_id },
            relation: { relation: like.relation },
            subject: { subject: { kind } },
          }[by];
          const wholeNamespace = by === 'namespace';
          const wholeTenant = by === 'relation' || by === 'subject';
          const asked = { tenantId, filter, wholeNamespace, wholeTenant };
          const isTaken = (tuple: typeof like): boolean =>
            by === 'namespace'
              ? tuple.namespace === like.namespace
              : by === 'object'
                ? tuple.namespace === like.namespace && tuple.object_id === like.object_id
                : by === 'relation'
                  ? tuple.relation === like.relation
                  : JSON.stringify(tuple.subject) === JSON.stringify(like.subject);
          const before = await exported(three.instances[1], `?tenant_id=${tenantId}`);
          const count = BigInt(before.filter(isTaken).length);
          const client = tuplesOver(three.instances[at] as Instance);
          const dry = await client.deleteTuples({ ...asked, dryRun: true });
          expect(dry.count).toBe(count);
          const few = client.deleteTuples({ ...asked, countMax: count - 1n });
          if (count > 1n) expect(await codeOf(few)).toBe(Code.FailedPrecondition);
          else await few;
          if (count > 1n) {
            const done = await client.deleteTuples({
              ...asked,
              countMax: count,
              unchangedSince: dry.consistencyToken,
            });
            expect(done.count).toBe(count);
            const late = client.deleteTuples({
              ...asked,
              unchangedSince: dry.consistencyToken,
            });
            expect(await codeOf(late)).toBe(Code.FailedPrecondition);
          }
          const left = await exported(three.instances[2], `?tenant_id=${tenantId}`);
          expect(left.map(textOf).toSorted()).toEqual(
            setOf(before.filter((tuple) => !isTaken(tuple))),
          );
          for (const one of three.instances) {
            for (const tuple of before.slice(0, 3)) {
              if (!('user_id' in tuple.subject) || tuple.condition_name !== undefined) continue;
              if (!isTaken(tuple) || before.some((other) => 'wildcard' in other.subject)) continue;
              const { tuples: found } = await authzOver(one).readRelationTuples({
                tenantId,
                namespace: tuple.namespace,
                objectId: tuple.object_id,
                relation: tuple.relation,
                subjectUserId: tuple.subject.user_id,
              });
              expect(found).toEqual([]);
            }
          }
        },
      ),
      { numRuns: byLength(6, 25) },
    );
  }, 120_000);

  test('in many chunks, and every instance denies afterwards; what is written meanwhile stays', async () => {
    const tenantId = newTenant();
    const COUNT = byLength(1_300, 4_000);
    const tuples = plainTuples(COUNT);
    await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(tuples));
    const check = async (instance: Instance, n: number): Promise<boolean> => {
      const { allowed } = await authzOver(instance).check({
        tenantId,
        namespace: 'doc',
        objectId: `d${n % 997}`,
        relation: 'viewer',
        subjectUserId: `user-${n}`,
      });
      return allowed;
    };
    for (const one of three.instances) expect(await check(one, COUNT - 1)).toBe(true);
    const deleting = tuplesOver(three.instances[0]).deleteTuples({
      tenantId,
      filter: { relation: 'viewer' },
      wholeTenant: true,
    });
    const late = insert('late', 'x', 'viewer');
    await tuplesOver(three.instances[1]).writeTuples({ tenantId, updates: [late] });
    const { count } = await deleting;
    expect(count).toBeGreaterThanOrEqual(BigInt(COUNT));
    for (const one of three.instances) {
      for (const n of [0, 634, COUNT - 1]) expect(await check(one, n)).toBe(false);
    }
    const left = await exported(three.instances[2], `?tenant_id=${tenantId}`);
    expect(left.length).toBe(COUNT + 1 - Number(count));
  });
});
