import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { byLength } from '../../../test/support/test-length.ts';
import { unpackChanges } from '../../model/packed-changes.ts';
import { type RelationTuple, tupleIdentity } from '../../model/relation-tuple.ts';
import { IdSource } from '../../shared/ids.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { writeGroup } from '../../store/sql/writes/write-group.ts';
import { ModeGuard, refusalOfModes, type UpdateMode } from './update-modes.ts';
import {
  argumentsOfResend,
  planGroup,
  readGroupResults,
  type ShardWrite,
  type WriteResult,
} from './write-group.ts';

/* What updates ask of stored tuples, in groups as they are written, beside a map that is asked one by one. */

const RUNS = byLength(25, 80) * Number(process.env['FUZZ_RUNS'] ?? 1);
const ids = new IdSource(systemClock);
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

type Update = { readonly mode: UpdateMode; readonly tuple: RelationTuple };
type Step = { readonly tenant: number; readonly updates: readonly Update[] };

const PAYLOADS: readonly Partial<RelationTuple>[] = [
  {},
  { expiresAtUs: 1_700_000_000_000_001n }, // has expired, and is stored
  { conditionName: 'scope_in' },
  { conditionName: 'scope_in', conditionParams: '{"scopes":["a\\"b"]}' },
];

const update: fc.Arbitrary<Update> = fc
  .tuple(
    fc.constantFrom<UpdateMode>('plain', 'absent', 'absent', 'identical', 'identical', 'present'),
    fc.boolean(),
    fc.constantFrom('d1', 'd2', 'd3'),
    fc.constantFrom('a', 'b\\"'),
    fc.constantFrom(...PAYLOADS),
  )
  .map(([mode, isDelete, objectId, userId, payload]) => {
    const subject = { kind: 'user', userId } as const;
    const key = { namespace: 'doc', objectId, relation: 'viewer', subject };
    const deletes = mode === 'present' || (mode === 'plain' && isDelete);
    return { mode, tuple: deletes ? key : { ...key, ...payload }, isDelete: deletes };
  });
const step: fc.Arbitrary<Step> = fc.record({
  tenant: fc.integer({ min: 0, max: 1 }),
  updates: fc.uniqueArray(update, {
    minLength: 1,
    maxLength: 4,
    size: 'max',
    selector: ({ tuple }) => tupleIdentity(tuple),
  }),
});

const isDelete = (one: Update): boolean => (one as unknown as { isDelete: boolean }).isDelete;
const payloadOf = (tuple: RelationTuple): string =>
  JSON.stringify([String(tuple.expiresAtUs), tuple.conditionName, tuple.conditionParams]);

/** One tenant, asked one request after the other. */
class Reference {
  readonly stored = new Map<string, string>();
  revision = 0;

  apply({ updates }: Step): { refusedAt?: number; changes: string[] | null } {
    const at = updates.findIndex((one) => this.#refuses(one));
    if (at !== -1) return { refusedAt: at + 1, changes: null };
    const effective = updates.filter((one) => this.#hasEffect(one));
    if (effective.length === 0) return { changes: null };
    this.revision += 1;
    for (const one of effective) {
      if (isDelete(one)) this.stored.delete(tupleIdentity(one.tuple));
      else this.stored.set(tupleIdentity(one.tuple), payloadOf(one.tuple));
    }
    return { changes: effective.map(({ tuple }) => tupleIdentity(tuple)) };
  }

  #refuses({ mode, tuple }: Update): boolean {
    const stored = this.stored.get(tupleIdentity(tuple));
    if (mode === 'absent') return stored !== undefined;
    if (mode === 'identical') return stored !== undefined && stored !== payloadOf(tuple);
    return mode === 'present' && stored === undefined;
  }

  #hasEffect(one: Update): boolean {
    const isStored = this.stored.has(tupleIdentity(one.tuple));
    return isDelete(one) ? isStored : one.mode !== 'identical' || !isStored;
  }
}

function toWrite(projectId: string, { tenant, updates }: Step): ShardWrite {
  const modes = updates.map(({ mode }) => mode);
  return {
    shard: { projectId, tenantId: `t${tenant}` },
    updates: updates.map((one) => ({ op: isDelete(one) ? 'delete' : 'insert', tuple: one.tuple })),
    modes: modes.every((mode) => mode === 'plain') ? undefined : modes,
    meta: { rpc: 'Test', actingUserId: null, requestId: 'r', deadlineMs: Infinity },
    commitId: ids.uuid(),
    forkId: ids.forkId(),
  };
}

/** The writes in groups as lanes make them, with the positions of their steps. */
function groupsOf(writes: readonly ShardWrite[]): readonly (readonly number[])[] {
  const groups: number[][] = [];
  let guards = new Map<string, ModeGuard>();
  for (const [at, write] of writes.entries()) {
    const guard = guards.get(write.shard.tenantId) ?? new ModeGuard([]);
    if (groups.length > 0 && guard.admits(write)) groups.at(-1)?.push(at);
    else {
      groups.push([at]);
      guards = new Map();
      const fresh = new ModeGuard([]);
      fresh.admits(write);
      guards.set(write.shard.tenantId, fresh);
      continue;
    }
    guards.set(write.shard.tenantId, guard);
  }
  return groups;
}

async function written(writes: readonly ShardWrite[], areNew: boolean): Promise<WriteResult[]> {
  const client = await database.pool.connect();
  try {
    const plan = planGroup(writes, undefined, areNew);
    const run = async (values: typeof plan.values) =>
      await writeGroup(client, null, values, 10_000, plan.hints, plan.modeValues);
    const results = readGroupResults(plan, await run(plan.values));
    const again = await run(argumentsOfResend(plan) as typeof plan.values);
    expect(again.was_applied).toBe(results.some(({ changes }) => changes !== null));
    return results;
  } finally {
    client.release();
  }
}

async function storedIn(projectId: string, tenant: number): Promise<Map<string, string>> {
  const { rows } = await database.pool.query(
    `select object_id, subject_id, expires_at_us::text, condition_name, condition_params
     from relation_tuple where project_id = $1 and tenant_id = $2`,
    [projectId, `t${tenant}`],
  );
  return new Map(
    rows.map((row) => {
      const tuple: RelationTuple = {
        namespace: 'doc',
        objectId: row.object_id,
        relation: 'viewer',
        subject: { kind: 'user', userId: row.subject_id },
        expiresAtUs: row.expires_at_us === null ? undefined : BigInt(row.expires_at_us),
        conditionName: row.condition_name ?? undefined,
        conditionParams: row.condition_params ?? undefined,
      };
      return [tupleIdentity(tuple), payloadOf(tuple)];
    }),
  );
}

describe('updates with modes', () => {
  test('leave what asking one by one leaves, in whatever groups', async () => {
    let run = 0;
    const seen = { refused: 0, kept: 0, shared: 0 };
    const steps = fc.array(step, { minLength: 1, maxLength: 20, size: 'max' });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (asked, areNew) => {
        const projectId = `modes${run++}`;
        const references = [new Reference(), new Reference()];
        const writes = asked.map((one) => toWrite(projectId, one));
        for (const group of groupsOf(writes)) {
          const results = await written(
            group.map((at) => writes[at] as ShardWrite),
            areNew,
          );
          if (group.length > 1) seen.shared += 1;
          for (const [index, at] of group.entries()) {
            const { tenant } = asked[at] as Step;
            const reference = references[tenant] as Reference;
            const expected = reference.apply(asked[at] as Step);
            const { refusedAt, changes, revision } = results[index] as WriteResult;
            if (refusedAt !== undefined) seen.refused += 1;
            if (refusedAt === undefined && changes === null) seen.kept += 1;
            const identities =
              changes === null
                ? null
                : unpackChanges(changes).map(({ tuple }) => tupleIdentity(tuple));
            expect({ refusedAt, changes: identities }).toEqual({
              refusedAt: undefined,
              ...expected,
            });
            expect(revision).toBe(reference.revision);
            // What is published is what was asked for, whoever made the text.
            for (const { op, tuple } of changes === null ? [] : unpackChanges(changes)) {
              const { updates } = writes[at] as ShardWrite;
              const same = updates.find((one) => tupleIdentity(one.tuple) === tupleIdentity(tuple));
              expect([op, payloadOf(tuple)]).toEqual([same?.op, payloadOf(same?.tuple ?? tuple)]);
            }
          }
        }
        for (const [tenant, { stored }] of references.entries()) {
          expect(await storedIn(projectId, tenant)).toEqual(stored);
        }
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(seen.refused, seen.kept, seen.shared)).toBeGreaterThan(3);
  });

  test('are refused by name: the update, the tuple and why', () => {
    const tuple = (objectId: string): RelationTuple => ({
      namespace: 'doc',
      objectId,
      relation: 'viewer',
      subject: { kind: 'set', namespace: 'group', objectId: 'g', relation: 'member' },
    });
    const write = {
      updates: [
        { op: 'insert', tuple: tuple('a') },
        { op: 'insert', tuple: tuple('b') },
        { op: 'delete', tuple: tuple('c') },
      ],
      modes: ['absent', 'identical', 'present'],
    } as const;
    const refusals = [1, 2, 3].map((at) => refusalOfModes(write, at));
    expect(refusals.map(({ reason }) => reason)).toEqual([
      'TUPLE_EXISTS',
      'TUPLE_DIFFERS',
      'TUPLE_MISSING',
    ]);
    expect(refusals[1]?.message).toBe(
      'updates[1].tuple: doc:b#viewer@group:g#member is stored with another expiry or condition',
    );
    expect(refusals[2]?.metadata).toEqual({
      field: 'updates[2].tuple',
      tuple: 'doc:c#viewer@group:g#member',
    });
    expect(refusalOfModes(write, 0).reason).toBe('STORE_UNAVAILABLE');
  });
});
