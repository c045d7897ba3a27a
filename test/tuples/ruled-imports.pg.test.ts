import { afterAll, beforeAll, expect, test } from 'vitest';
import { pruneChanges } from '../../src/store/feed/retention.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';
import { exported, linesOf, plainTuples, postLines, tuplesOver } from './support.ts';

/* Imports are held to what the project's model admits, also when that changes while they run; and what they leave is pruned. */

let database: TestDatabase;
let instances: readonly [Instance, Instance];

beforeAll(async () => {
  database = await createTestDatabase();
  instances = [await startInstance(database), await startInstance(database)];
}, 120_000);
afterAll(async () => {
  for (const instance of instances) {
    await instance.stop();
    expect(instance.failures).toEqual([]);
  }
  await database.drop();
});

const UNTYPED = '{"namespaces":{"doc":{"relations":{"viewer":{}}}}}';
const TYPED = '{"namespaces":{"doc":{"relations":{"viewer":{"subjects":["user"]}}}}}';
const BAD = {
  namespace: 'doc',
  object_id: 'a',
  relation: 'viewer',
  subject: { wildcard: true },
} as const;

async function putModel(id: string, method: string, json: string): Promise<void> {
  const answer = await call(instances[1], `AdminService/${method}`, {
    id,
    name: id,
    model_json: json,
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
}

test('a tuple that the model does not admit is named, and nothing is written', async () => {
  await putModel('typed', 'CreateProject', TYPED);
  const query = '?project_id=typed&tenant_id=t';
  const tuples = [...plainTuples(9_000), BAD];
  const refused = await postLines(instances[0], query, linesOf(tuples));
  expect(refused.status, JSON.stringify(refused.body)).toBe(400);
  expect(refused.body['message']).toContain('tuples[9000].subject');
  expect(await exported(instances[1], query)).toEqual([]);
  const taken = await postLines(instances[0], query, linesOf(plainTuples(9_000)));
  expect(taken.status, JSON.stringify(taken.body)).toBe(200);
});

test.each([
  ['an empty tenant', []],
  ['a tenant that holds tuples', plainTuples(1, 5_000_000)],
])(
  'a model that comes into force while an import into %s runs holds for it',
  async (name, before) => {
    const id = `turns-${before.length}`;
    const tenantId = 't';
    const query = `?project_id=${id}&tenant_id=${tenantId}`;
    await putModel(id, 'CreateProject', UNTYPED);
    if (before.length > 0) await postLines(instances[0], query, linesOf(before));
    // Known to the instance that imports.
    expect(await exported(instances[0], query), name).toHaveLength(before.length);
    const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
    const { promise: hasBegun, resolve: began } = Promise.withResolvers<void>();
    const importing = tuplesOver(instances[0], 'grpc').importTuples(
      (async function* slow() {
        yield { options: { projectId: id, tenantId } };
        yield {
          tuples: [
            {
              namespace: 'doc',
              objectId: 'a',
              relation: 'viewer',
              subject: { kind: { case: 'wildcard' as const, value: true } },
            },
          ],
        };
        began();
        await mayGoOn;
      })(),
    );
    const outcome = importing.then(
      () => '',
      (error: unknown) => (error as Error).message,
    );
    await hasBegun;
    await putModel(id, 'UpdateProject', TYPED);
    goOn();
    expect(await outcome).toContain('tuples[0].subject');
    expect(await exported(instances[1], query)).toHaveLength(before.length);
  },
);

test('changes before an import into an empty tenant are pruned like others', async () => {
  const tenantId = 'pruned';
  const client = tuplesOver(instances[0]);
  for (let n = 0; n < 3; n++) {
    await postLines(instances[0], `?tenant_id=${tenantId}`, linesOf(plainTuples(2)));
    await client.deleteTuples({ tenantId, filter: { namespace: 'doc' }, wholeNamespace: true });
  }
  const { pool } = database;
  const kept = async (): Promise<readonly string[]> => {
    const { rows } = await pool.query<{ seq: string }>(
      `select seq::text as seq from tuple_change where tenant_id = $1 order by tuple_change.seq`,
      [tenantId],
    );
    return rows.map((row) => row.seq);
  };
  expect(await kept()).toEqual(['2', '3', '5', '6', '8', '9']);
  // All but the last two are old: below the border that the last import has raised.
  await pool.query(
    `update tuple_change set created_at = now() - interval '2 hours' where tenant_id = $1 and seq < 8`,
    [tenantId],
  );
  const rule = { ageMaxMs: 3_600_000, countMax: 1_000, ageMinMs: 60_000 };
  expect(await pruneChanges(pool, rule)).toBe(4);
  expect(await kept()).toEqual(['8', '9']);
});
