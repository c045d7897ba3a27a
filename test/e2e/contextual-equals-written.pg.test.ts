import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { ALL_REFS, identityOf, tuples as tupleArbitrary, worlds } from '../reference/worlds.ts';
import { instanceForFile, startInstance } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';

/*
 * Contextual tuples on one tenant must answer what Check answers on another one where the same tuples were written,
 * and what WhatIf foretells must be what Check says then: over HTTP, for random models and tuples.
 */
const { database, instance } = await instanceForFile();
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const ITEMS_MAX = 80;
let worldCount = 0;

function tupleJson(tuple: RelationTuple): object {
  const { namespace, objectId, relation, expiresAtUs, conditionName, conditionParams } = tuple;
  // Expiry moves from the generated clock to the real one.
  const expires_at = expiresAtUs === undefined ? undefined : expiryOf(expiresAtUs);
  return {
    namespace,
    object_id: objectId,
    relation,
    subject: subjectJson(tuple.subject),
    expires_at,
    condition_name: conditionName,
    condition_params: conditionParams === undefined ? undefined : JSON.parse(conditionParams),
  };
}

function expiryOf(expiresAtUs: bigint): string {
  return expiresAtUs % 2n === 0n ? '2001-01-01T00:00:00Z' : '2999-01-01T00:00:00Z';
}

function subjectJson(subject: Subject): object {
  if (subject.kind === 'wildcard') return { wildcard: true };
  if (subject.kind === 'wildcardOf') return { wildcard_of: subject.namespace };
  if (subject.kind === 'user') return { user_id: subject.userId };
  const { namespace, objectId, relation } = subject;
  return { set: { namespace, object_id: objectId, relation } };
}

async function ok(answer: Promise<{ status: number; body: Record<string, unknown> }>) {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}

async function write(project_id: string, tenant_id: string, tuples: readonly RelationTuple[]) {
  if (tuples.length === 0) return;
  const updates = tuples.map((tuple) => ({ op: 'OP_INSERT', tuple: tupleJson(tuple) }));
  const scope = { project_id, tenant_id };
  await ok(call(instance, 'AuthzService/WriteRelationTuples', { ...scope, updates }));
}

const cases = fc.record({
  world: worlds,
  removed: fc.array(fc.nat(), { maxLength: 6 }),
  added: fc
    .array(tupleArbitrary, { minLength: 1, maxLength: 12 })
    .map((list) => [...new Map(list.map((tuple) => [identityOf(tuple), tuple])).values()]),
  context: fc.constantFrom<object | undefined>(undefined, { age: 17 }, { age: 30 }),
  offset: fc.nat(ALL_REFS.length - 1),
});

describe(`SEED=${seed}`, () => {
  const params = { numRuns: Math.ceil(byLength(8, 20) * FUZZ_RUNS), seed };

  test('contextual tuples == the same tuples written; WhatIf == Check before and after', async () => {
    const property = fc.asyncProperty(cases, async ({ world, removed, added, context, offset }) => {
      const project_id = `w${worldCount++}`;
      // Generated models name relations that they do not define, as only stored ones may.
      const sql = 'insert into project (id, name, model_json) values ($1, $1, $2)';
      await database.pool.query(sql, [project_id, world.modelJson]);
      await write(project_id, 'stored', world.tuples);
      const gone = new Set(
        removed.flatMap((at) => {
          const tuple = world.tuples[at % Math.max(1, world.tuples.length)];
          return tuple === undefined ? [] : [identityOf(tuple)];
        }),
      );
      const addedIds = new Set(added.map(identityOf));
      const kept = world.tuples.filter((tuple) => !addedIds.has(identityOf(tuple)));
      await write(project_id, 'added', [...kept, ...added]);
      const left = kept.filter((tuple) => !gone.has(identityOf(tuple)));
      await write(project_id, 'changed', [...left, ...added]);

      const subjects = [
        ...['u0', 'u1', 'nobody'].map((userId): Subject => ({ kind: 'user', userId })),
        ...added.map((tuple) => tuple.subject).filter((subject) => subject.kind === 'set'),
      ];
      const asked = ALL_REFS.flatMap((ref) => subjects.map((subject) => ({ ref, subject })));
      const some = [...asked.slice(offset), ...asked].slice(0, ITEMS_MAX);
      const questions = some.map(({ ref, subject }) => ({
        namespace: ref.namespace,
        object_id: ref.objectId,
        relation: ref.relation,
        subject: subjectJson(subject),
      }));
      const answersOf = async (scope: object): Promise<string[]> => {
        const items = questions.map((question) => ({ question }));
        const body = { scope: { project_id, context, ...scope }, items };
        const { results } = await ok(query(instance, 'BatchCheck', body));
        return (results as object[]).map((one) => JSON.stringify(one));
      };
      const before = await answersOf({ tenant_id: 'stored' });
      const contextual_tuples = added.map(tupleJson);
      const contextual = await answersOf({ tenant_id: 'stored', contextual_tuples });
      expect(contextual).toEqual(await answersOf({ tenant_id: 'added' }));
      // The service of the contract says the same of what was written.
      for (const [i, { ref, subject }] of some.slice(0, 12).entries()) {
        const plain = {
          project_id,
          tenant_id: 'added',
          namespace: ref.namespace,
          object_id: ref.objectId,
          relation: ref.relation,
          context,
          ...(subject.kind === 'user'
            ? { subject_user_id: subject.userId }
            : { subject_set: (subjectJson(subject) as { set: object }).set }),
        };
        const { allowed } = await ok(call(instance, 'AuthzService/Check', plain));
        expect(contextual[i]).toContain(`"allowed":${String(allowed)}`);
      }
      const updates = [
        ...[...gone].flatMap((identity) => {
          const tuple = kept.find((one) => identityOf(one) === identity);
          return tuple === undefined ? [] : [{ op: 'OP_DELETE', tuple: tupleJson(tuple) }];
        }),
        ...added.map((tuple) => ({ op: 'OP_INSERT', tuple: tupleJson(tuple) })),
      ];
      const scope = { project_id, tenant_id: 'stored', context };
      const foretold = await ok(query(instance, 'WhatIf', { scope, updates, questions }));
      const results = foretold['results'] as { allowed_before: boolean; allowed_after: boolean }[];
      const isAllowed = (text: string): boolean =>
        (JSON.parse(text) as { allowed: boolean }).allowed;
      expect(results.map((one) => one.allowed_before)).toEqual(before.map(isAllowed));
      const after = await answersOf({ tenant_id: 'changed' });
      expect(results.map((one) => one.allowed_after)).toEqual(after.map(isAllowed));
      // And the tenant that was asked is as it was.
      expect(await answersOf({ tenant_id: 'stored' })).toEqual(before);
    });
    await fc.assert(property, params);
    expect(worldCount).toBeGreaterThan(0);
  }, 120_000);
});

test('three instances: each answers with what any of them wrote, and its token holds on all', async () => {
  const others = [await startInstance(database), await startInstance(database)];
  const all = [instance, ...others];
  try {
    const tuple = (object_id: string, who: string) => ({
      namespace: 'doc',
      object_id,
      relation: 'viewer',
      subject: { user_id: who },
    });
    const scope = { tenant_id: 'three', contextual_tuples: [tuple('shared', 'guest')] };
    for (let round = 0; round < byLength(4, 12); round++) {
      const writer = all[round % 3] ?? instance;
      const updates = [{ op: 'OP_INSERT', tuple: tuple(`d${round}`, 'ann') }];
      const wrote = { tenant_id: 'three', updates };
      const written = await ok(call(writer, 'AuthzService/WriteRelationTuples', wrote));
      for (const reader of all) {
        const asked = [tuple(`d${round}`, 'ann'), tuple('shared', 'guest'), tuple('shared', 'ann')];
        const items = asked.map((question) => ({ question }));
        const batch = await ok(query(reader, 'BatchCheck', { scope, items }));
        const results = batch['results'] as { allowed: boolean }[];
        expect(results.map((one) => one.allowed)).toEqual([true, true, false]);
        expect(batch['consistency_token']).toBe(written['consistency_token']);
        for (const other of all) {
          const at_least_consistency_token = batch['consistency_token'];
          const again = { ...scope, at_least_consistency_token };
          const body = { scope: again, question: tuple(`d${round}`, 'ann') };
          expect(await ok(query(other, 'Check', body))).toMatchObject({ allowed: true });
        }
        const ban = [{ op: 'OP_DELETE', tuple: tuple(`d${round}`, 'ann') }];
        const body = { scope, updates: ban, questions: [tuple(`d${round}`, 'ann')] };
        expect(await ok(query(reader, 'WhatIf', body))).toMatchObject({ changed_count: 1 });
      }
    }
  } finally {
    for (const one of others) await one.stop();
  }
  expect(others.flatMap((one) => one.failures)).toEqual([]);
}, 120_000);
