import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { unpackChanges } from '../../model/packed-changes.ts';
import {
  type RelationTuple,
  type TupleChange,
  subjectToColumns,
} from '../../model/relation-tuple.ts';
import { IdSource } from '../../shared/ids.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { writeGroup } from '../../store/sql/writes/write-group.ts';
import { type ShardWrite, argumentsOfResend, planGroup, readGroupResults } from './write-group.ts';

const RUNS = 60 * Number(process.env['FUZZ_RUNS'] ?? 1);
const ids = new IdSource(systemClock);
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

type Step = { readonly tenant: number; readonly updates: readonly TupleChange[] };

const subject = fc.constantFrom(
  { kind: 'user', userId: 'a' } as const,
  { kind: 'user', userId: 'b"\\, {x}' } as const,
  { kind: 'wildcard' } as const,
  { kind: 'set', namespace: 'group', objectId: 'g', relation: 'member' } as const,
);
const payload = fc.constantFrom<Partial<RelationTuple>>(
  {},
  { expiresAtUs: 1_700_000_000_000_001n },
  { conditionName: 'scope_in', conditionParams: '{"scopes":["a\\"b","NULL"]}' },
);
const tuple = fc
  .tuple(fc.constantFrom('d1', 'd2'), fc.constantFrom('viewer', 'owner'), subject, payload)
  .map(([objectId, relation, who, rest]): RelationTuple => {
    return { namespace: 'doc', objectId, relation, subject: who, ...rest };
  });
const change = fc
  .tuple(fc.constantFrom('insert', 'insert', 'insert', 'delete'), tuple)
  .map(([op, one]): TupleChange =>
    op === 'insert' ? { op, tuple: one } : { op: 'delete', tuple: identity(one) },
  );
const step = fc.record({
  tenant: fc.integer({ min: 0, max: 2 }),
  updates: fc.uniqueArray(change, {
    minLength: 1,
    maxLength: 4,
    selector: ({ tuple: one }) => keyOf(one),
  }),
});
/** Steps cut into groups. */
const groups = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 5,
});

function identity({ namespace, objectId, relation, subject: who }: RelationTuple): RelationTuple {
  return { namespace, objectId, relation, subject: who };
}
function keyOf(one: RelationTuple): string {
  return JSON.stringify([one.namespace, one.objectId, one.relation, subjectToColumns(one.subject)]);
}
function payloadOf(one: RelationTuple): string[] {
  return [String(one.expiresAtUs), String(one.conditionName), String(one.conditionParams)];
}

/** The slow, obvious one: a map per tenant, one write after the other. */
class Reference {
  readonly revisions = [0, 0, 0];
  readonly tuples = [0, 1, 2].map(() => new Map<string, { payload: string[]; revision: number }>());
  readonly log = [0, 1, 2].map(() => [] as { revision: number; changes: string[] }[]);

  apply({ tenant, updates }: Step): { revision: number; changes: string[] | null } {
    const tuples = this.tuples[tenant] as Map<string, { payload: string[]; revision: number }>;
    const effective = updates.filter(
      ({ op, tuple: one }) => op === 'insert' || tuples.has(keyOf(one)),
    );
    if (effective.length === 0)
      return { revision: this.revisions[tenant] as number, changes: null };
    const revision = ((this.revisions[tenant] as number) += 1);
    for (const { op, tuple: one } of effective) {
      if (op === 'insert') tuples.set(keyOf(one), { payload: payloadOf(one), revision });
      else tuples.delete(keyOf(one));
    }
    const changes = effective.map(describe);
    this.log[tenant]?.push({ revision, changes });
    return { revision, changes };
  }
}

function describe({ op, tuple: one }: TupleChange): string {
  return JSON.stringify([op, keyOf(one), payloadOf(one)]);
}

function toWrite(projectId: string, { tenant, updates }: Step): ShardWrite {
  return {
    shard: { projectId, tenantId: `t${tenant}` },
    updates,
    meta: { rpc: 'Test', actingUserId: null, requestId: 'r', deadlineMs: Infinity },
    commitId: ids.uuid(),
    forkId: ids.forkId(),
  };
}

async function storedTuples(projectId: string, tenant: number): Promise<unknown> {
  const { rows } = await database.pool.query(
    `select namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
       expires_at_us::text, condition_name, condition_params, seq::int
     from relation_tuple where project_id = $1 and tenant_id = $2`,
    [projectId, `t${tenant}`],
  );
  return Object.fromEntries(
    rows.map((row) => [
      JSON.stringify([
        row.namespace,
        row.object_id,
        row.relation,
        [row.subject_namespace, row.subject_id, row.subject_relation],
      ]),
      {
        payload: [row.expires_at_us, row.condition_name, row.condition_params].map((v) =>
          String(v ?? undefined),
        ),
        revision: row.seq,
      },
    ]),
  );
}

test('any grouping leaves what writing one by one leaves', async () => {
  let run = 0;
  const client = await database.pool.connect();
  try {
    await fc.assert(
      fc.asyncProperty(groups, async (grouped) => {
        const projectId = `p${run++}`;
        const reference = new Reference();
        const forkIds = new Map<string, string>();
        for (const group of grouped) {
          const writes = group.map((one) => toWrite(projectId, one));
          const plan = planGroup(writes);
          const results = readGroupResults(
            plan,
            await writeGroup(client, null, plan.values, 10_000),
          );
          results.forEach((result, index) => {
            const expected = reference.apply(group[index] as Step);
            const changes =
              result.changes === null ? null : unpackChanges(result.changes).map(describe);
            expect({ revision: result.revision, changes }).toEqual(expected);
            const write = writes[index] as ShardWrite;
            if (changes !== null) forkIds.set(write.shard.tenantId, write.forkId);
          });
          const again = await writeGroup(client, null, argumentsOfResend(plan), 10_000);
          expect(again.was_applied).toBe(results.some(({ changes }) => changes !== null));
        }
        for (const tenant of [0, 1, 2]) {
          const expected = Object.fromEntries(reference.tuples[tenant] ?? []);
          expect(await storedTuples(projectId, tenant)).toEqual(expected);
          const log = await client.query(
            `select seq::int, changes, stamp::text from tuple_change
             where project_id = $1 and tenant_id = $2 order by seq`,
            [projectId, `t${tenant}`],
          );
          expect(
            log.rows.map(({ seq: revision, changes }) => ({
              revision,
              changes: unpackChanges(changes).map(describe),
            })),
          ).toEqual(reference.log[tenant]);
          const headRevision = await client.query(
            'select seq::int, stamp::text from shard where project_id = $1 and tenant_id = $2',
            [projectId, `t${tenant}`],
          );
          expect(headRevision.rows[0]?.seq ?? 0).toBe(reference.revisions[tenant]);
          expect(headRevision.rows[0]?.stamp ?? '0').toBe(forkIds.get(`t${tenant}`) ?? '0');
        }
      }),
      { numRuns: RUNS },
    );
  } finally {
    client.release();
  }
});

test('an empty group of deletes leaves no record and no shard seq', async () => {
  const client = await database.pool.connect();
  try {
    const write = toWrite('nothing', {
      tenant: 0,
      updates: [
        {
          op: 'delete',
          tuple: identity({
            namespace: 'doc',
            objectId: 'x',
            relation: 'r',
            subject: { kind: 'wildcard' },
          }),
        },
      ],
    });
    const plan = planGroup([write]);
    const [result] = readGroupResults(plan, await writeGroup(client, null, plan.values, 10_000));
    expect(result).toMatchObject({ revision: 0, changes: null });
    const { rows } = await client.query(`select 1 from tuple_change where project_id = 'nothing'`);
    expect(rows).toEqual([]);
  } finally {
    client.release();
  }
});
