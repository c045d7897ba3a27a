import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { byLength } from '../support/test-length.ts';
import { startMember } from './members.ts';
import { attempt, ok } from './support.ts';

const PROJECT = 'changing';
const TENANTS = ['t0', 't1', 't2'];
const CHANGES = byLength(12, 40);

/** All relations of both namespaces follow `source`, by chains of different length. */
function modelOf(source: 'red' | 'blue'): string {
  const relations = {
    red: {},
    blue: {},
    direct: { computed: source },
    one: { union: [{ computed: source }] },
    two: { union: [{ computed: 'one' }] },
    both: { intersection: [{ computed: 'two' }, { computed: 'direct' }] },
  };
  return JSON.stringify({
    schema_version: 1,
    namespaces: { doc: { relations }, file: { relations } },
  });
}

const ITEMS = Array.from({ length: 60 }, (_, index) => ({
  namespace: ['doc', 'file'][index % 2],
  object_id: 'o',
  relation: ['direct', 'one', 'two', 'both'][index % 4],
  // Only `red` is granted: everything is allowed under one model, nothing under the other.
  subject_user_id: 'alice',
}));

test('a changed model is never half there, and counts from its acknowledgement on', async () => {
  const database = await createTestDatabase();
  const service = await startMember(database, { GATEWAY_WORKERS: '2' });
  /** Whether the items are allowed, all alike; throws when they disagree. */
  const decide = async (tenantId: string): Promise<boolean> => {
    const body = { project_id: PROJECT, tenant_id: tenantId, items: ITEMS };
    const answer = ok(await attempt(service, 'AuthzService/BatchCheck', body));
    const results = answer['results'] as readonly { allowed: boolean; error?: string }[];
    const allowed = new Set(results.map((result) => result.allowed));
    if (results.length !== ITEMS.length || allowed.size !== 1) {
      throw new Error(`half of each model: ${JSON.stringify(results)}`);
    }
    return allowed.has(true);
  };
  try {
    const project = { id: PROJECT, name: 'P', model_json: modelOf('red') };
    ok(await attempt(service, 'AdminService/CreateProject', project));
    for (const tenantId of TENANTS) {
      const updates = ['doc', 'file'].map((namespace) => ({
        op: 'OP_INSERT',
        tuple: { namespace, object_id: 'o', relation: 'red', subject: { user_id: 'alice' } },
      }));
      const body = { project_id: PROJECT, tenant_id: tenantId, updates };
      ok(await attempt(service, 'AuthzService/WriteRelationTuples', body));
    }
    let isOver = false;
    const load = Array.from({ length: 9 }, async (_, index) => {
      let answers = 0;
      for (; !isOver; answers++) await decide(TENANTS[index % TENANTS.length] ?? '');
      return answers;
    });
    const change = async (): Promise<void> => {
      for (let round = 1; round <= CHANGES; round++) {
        const source = round % 2 === 0 ? 'red' : 'blue';
        const update = { id: PROJECT, model_json: modelOf(source) };
        ok(await attempt(service, 'AdminService/UpdateProject', update));
        const decided = await Promise.all(TENANTS.map(decide));
        expect(decided).toEqual(TENANTS.map(() => source === 'red'));
      }
    };
    await change().finally(() => (isOver = true));
    for (const answers of await Promise.all(load)) expect(answers).toBeGreaterThan(0);
  } finally {
    expect(await service.stop()).toBe(0);
    await database.drop();
  }
}, 120_000);
