import { expect } from 'vitest';
import {
  brokenRows,
  enrolledMembers,
  replayedTuples,
  storedTuples,
  tuplesOfRows,
} from '../support/derived-tuples.ts';
import { Tenant } from '../support/management.ts';
import type { TestDatabase } from '../support/postgres.ts';
import type { Target } from './support.ts';

type Member = {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly role: number;
  readonly status: number;
};
type Question = readonly [namespace: string, id: string, relation: string, user: string];

const PROJECT = 'default';
/** Questions of one BatchCheck. */
const ITEMS_MAX = 500;
const RELATIONS = ['owner', 'admin', 'member', 'guest'];

/**
 * Holds what every instance says of a tenant against its rows, once nothing is under way: rows do not
 * contradict each other, tuples are those that rows ask for, the history makes them, and each instance
 * reads these tuples and decides by them for every one of `users`.
 */
export async function expectAgreement(
  { pool }: TestDatabase,
  services: readonly Target[],
  tenantId: string,
  users: readonly string[],
): Promise<void> {
  expect(await brokenRows(pool, PROJECT)).toEqual([]);
  const ofTenant = (texts: readonly string[]): string[] =>
    texts.filter((text) => text.startsWith(`${tenantId}|`));
  const stored = ofTenant(await storedTuples(pool, PROJECT));
  expect(ofTenant(await replayedTuples(pool, PROJECT))).toEqual(stored);
  const enrolled = new Set(await enrolledMembers(pool, PROJECT));
  const isPlain = (text: string): boolean => text.includes('|group:') && !enrolled.has(text);
  expect(stored.filter((text) => !isPlain(text))).toEqual(
    ofTenant(await tuplesOfRows(pool, PROJECT)),
  );
  const { rows: over } = await pool.query('select sku from seat_limit where used > seats_max');
  expect(over).toEqual([]);

  const texts = stored.map((text) => text.slice(tenantId.length + 1));
  const questions = await questionsOn(pool, tenantId, users);
  const items = questions.map(([namespace, id, relation, user]) => ({
    namespace,
    object_id: id,
    relation,
    subject_user_id: user,
  }));
  const expected = await expectedAnswers(pool, tenantId, questions, new Set(texts));
  for (const service of services) {
    const tenant = new Tenant(service, tenantId);
    expect(await tenant.tuples()).toEqual(texts);
    const answers: boolean[] = [];
    for (let at = 0; at < items.length; at += ITEMS_MAX) {
      const body = { items: items.slice(at, at + ITEMS_MAX) };
      const answer = await tenant.call('', 'AuthzService/BatchCheck', body);
      expect(answer.status).toBe(200);
      const results = answer.body['results'] as { allowed: boolean }[];
      answers.push(...results.map(({ allowed }) => allowed));
    }
    expect(answers).toEqual(expected);
  }
}

async function questionsOn(
  pool: TestDatabase['pool'],
  tenantId: string,
  users: readonly string[],
): Promise<Question[]> {
  const { rows } = await pool.query<{ kind: string; id: string }>(
    `select 'workspace' as kind, id from workspace where project_id = $1 and tenant_id = $2
     union all select 'group', id from user_group where project_id = $1 and tenant_id = $2
     union all select 'seat', sku from seat_limit where project_id = $1 and tenant_id = $2`,
    [PROJECT, tenantId],
  );
  const relationsOf: Readonly<Record<string, readonly string[]>> = {
    workspace: RELATIONS,
    group: ['member'],
    seat: ['holder'],
  };
  return rows.flatMap(({ kind, id }) =>
    (relationsOf[kind] ?? []).flatMap((relation) =>
      users.map((user) => [kind, id, relation, user] as const),
    ),
  );
}

/** Of workspaces by their rows; of seats, and of groups without groups in them, by the tuples. */
async function expectedAnswers(
  pool: TestDatabase['pool'],
  tenantId: string,
  questions: readonly Question[],
  tuples: ReadonlySet<string>,
): Promise<boolean[]> {
  const { rows } = await pool.query<Member>(
    `select workspace_id, user_id, role, status from membership
     where project_id = $1 and tenant_id = $2 and status = 1`,
    [PROJECT, tenantId],
  );
  const roles = new Map(rows.map((row) => [`${row.workspace_id} ${row.user_id}`, row.role]));
  return questions.map(([namespace, id, relation, user]) => {
    if (namespace !== 'workspace') return tuples.has(`${namespace}:${id}#${relation}@${user}`);
    const role = roles.get(`${id} ${user}`);
    return role !== undefined && role <= RELATIONS.indexOf(relation) + 1;
  });
}
