import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelCall } from '../support/model-calls.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { attempt, type Dice, ok, seededDice, until } from './support.ts';

/* Two processes (three in the long run) write while a typed model comes and goes: none may leave a tuple that does not fit. */

const INSTANCES = byLength(2, 3);
const WRITERS = byLength(4, 9);
const ROUNDS = byLength(3, 24);
/** At most between two writes that fit; writers of the long run have none. */
const PAUSE_MS = byLength(20, 0);
const TENANTS = ['t0', 't1', 't2'];
const WRITE = 'AuthzService/WriteRelationTuples';

let database: TestDatabase;
let pool: pg.Pool;
let services: Service[] = [];

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 3 });
  pool = database.pool;
  const env = {
    DATABASE_URL: urlOf(database.target),
    GATEWAY_WORKERS: '1',
    GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
    GATEWAY_PG_POOL_SIZE: '6',
    // Writers go by old settings for as long as they are let.
    GATEWAY_PROJECT_TTL_SECONDS: '600',
  };
  for (let n = 0; n < INSTANCES; n++) services = [...services, await startService({ env })];
}, 120_000);
afterAll(async () => {
  for (const service of services) await service.stop();
  await database.drop();
}, 120_000);

function modelOf(viewer: object): string {
  return JSON.stringify({ namespaces: { doc: { relations: { viewer } } } });
}
const TYPED = modelOf({ subjects: ['user'] });
const UNTYPED = modelOf({});

function updateOf(op: string, objectId: string, isMisfit: boolean): object {
  const set = { namespace: 'group', object_id: 'g', relation: 'member' };
  const subject = isMisfit ? { set } : { user_id: 'u' };
  return { op, tuple: { namespace: 'doc', object_id: objectId, relation: 'viewer', subject } };
}

/** Writes what fits, and now and then what does not, which it deletes again. */
async function runWriter(
  name: string,
  projectId: string,
  dice: Dice,
  isOver: () => boolean,
): Promise<{ readonly accepted: number; readonly refused: number }> {
  const counts = { accepted: 0, refused: 0 };
  for (let step = 0; !isOver(); step++) {
    const service = services[dice.below(services.length)] as Service;
    const scope = { project_id: projectId, tenant_id: TENANTS[dice.below(TENANTS.length)] ?? '' };
    const isMisfit = dice.below(6) === 0;
    const objectId = `${name}-${dice.below(20)}`;
    const updates = [updateOf('OP_INSERT', objectId, isMisfit)];
    const answer = await attempt(service, WRITE, { ...scope, updates });
    if (isMisfit && answer?.status === 400) {
      expect(answer.body['message']).toContain(
        'updates[0].tuple.subject: doc#viewer admits user, not',
      );
      counts.refused++;
      continue;
    }
    ok(answer);
    if (!isMisfit) {
      if (PAUSE_MS > 0) await sleep(dice.below(PAUSE_MS));
      continue;
    }
    counts.accepted++;
    ok(
      await attempt(service, WRITE, { ...scope, updates: [updateOf('OP_DELETE', objectId, true)] }),
    );
    await sleep(dice.below(40));
  }
  return counts;
}

async function update(service: Service, id: string, model: string): Promise<number | undefined> {
  return (await attempt(service, 'AdminService/UpdateProject', { id, model_json: model }))?.status;
}

/** Tuples that do not fit, where a typed model is in force: both in one snapshot. */
async function misfits(projectId: string): Promise<{ isTyped: boolean; count: number }> {
  const { rows } = await pool.query<{ typed: boolean; count: number }>(
    `select p.model_json like '%subjects%' as typed,
       (select count(*)::int from relation_tuple t
        where t.project_id = p.id and t.subject_namespace = 'group') as count
     from project p where p.id = $1`,
    [projectId],
  );
  return { isTyped: rows[0]?.typed === true, count: rows[0]?.count ?? -1 };
}

test('whoever writes through whichever process: no tuple that does not fit is there while the model is in force (R1)', async () => {
  const dice = seededDice('typed models');
  const id = 'typed';
  const project = { id, name: 'T', model_json: UNTYPED };
  ok(await attempt(services[0] as Service, 'AdminService/CreateProject', project));
  let isOver = false;
  const seen = { typed: 0, untyped: 0, wrong: 0 };
  const watching = (async (): Promise<void> => {
    while (!isOver) {
      const { isTyped, count } = await misfits(id);
      seen[isTyped ? 'typed' : 'untyped']++;
      if (isTyped && count > 0) seen.wrong++;
      await sleep(2);
    }
  })();
  const writing = Array.from({ length: WRITERS }, (_, n) =>
    runWriter(`w${n}`, id, dice, () => isOver),
  );
  const outcomes = new Map<number | undefined, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const status = await update(services[dice.below(INSTANCES)] as Service, id, TYPED);
    outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
    if (status !== 200) continue;
    // Whoever is asked from now on refuses, whatever it knew.
    for (const service of services) {
      const updates = [updateOf('OP_INSERT', 'late', true)];
      const late = await attempt(service, WRITE, { project_id: id, tenant_id: 't0', updates });
      expect(late?.status).toBe(400);
    }
    await sleep(dice.below(50));
    expect(await update(services[dice.below(INSTANCES)] as Service, id, UNTYPED)).toBe(200);
    await sleep(dice.below(50));
  }
  isOver = true;
  await watching;
  const counts = await Promise.all(writing);
  const sum = (key: 'accepted' | 'refused'): number =>
    counts.reduce((all, one) => all + one[key], 0);
  expect(seen.wrong).toBe(0);
  // All of it has happened.
  expect([...outcomes.keys()].filter((status) => status !== 200 && status !== 412)).toEqual([]);
  expect(outcomes.get(200)).toBeGreaterThan(0);
  expect(seen.typed).toBeGreaterThan(0);
  expect(sum('accepted')).toBeGreaterThan(0);
  expect(sum('refused')).toBeGreaterThan(0);
}, 120_000);

test('what a process that was killed had begun another one brings to its end', async () => {
  const id = 'killed';
  const [first, second] = services as [Service, Service];
  ok(await attempt(first, 'AdminService/CreateProject', { id, name: 'K', model_json: UNTYPED }));
  const updates = [updateOf('OP_INSERT', 'a', false)];
  ok(await attempt(first, WRITE, { project_id: id, updates }));
  const writer = await pool.connect();
  await writer.query('begin');
  await writer.query(`select 1 from shard where project_id = $1 for update`, [id]);
  const asked = modelCall(first, 'WriteModel', { project_id: id, model: { json: TYPED } }).catch(
    () => 'killed',
  );
  const stateAt = async (service: Service): Promise<unknown> => {
    const { body } = await modelCall(service, 'GetModelActivation', { project_id: id });
    return (body['activation'] as Record<string, unknown>)['state'];
  };
  await until(async () => (await stateAt(second)) === 'MODEL_ACTIVATION_STATE_PENDING');
  await first.kill();
  expect(await asked).toBe('killed');
  const misfit = { project_id: id, tenant_id: 'x', updates: [updateOf('OP_INSERT', 'b', true)] };
  expect((await attempt(second, WRITE, misfit))?.status).toBe(400);
  expect(await stateAt(second)).toBe('MODEL_ACTIVATION_STATE_PENDING');
  await writer.query('rollback');
  writer.release();
  await until(async () => (await stateAt(second)) === 'MODEL_ACTIVATION_STATE_ACTIVE');
  expect((await attempt(second, WRITE, misfit))?.status).toBe(400);
  expect(await misfits(id)).toEqual({ isTyped: true, count: 0 });
}, 120_000);
