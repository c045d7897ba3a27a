import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { packChanges } from '../../src/model/packed-changes.ts';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import type { WorkerPoolEvent } from '../../src/workers/pool/worker-pool-options.ts';
import { createWorkerPool } from '../../src/workers/pool/worker-pool.ts';
import type { WorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { createPiscinaTransport } from '../../src/workers/slot/piscina-transport.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { writeChange } from '../support/write-change.ts';
import { askList, askRaw, checkViewer, reasonOf, scopeOf, viewer } from './pool-fixture.ts';

let database: TestDatabase;
let pool: WorkerPool;
let epoch: number;
const events: WorkerPoolEvent[] = [];

function startPool(filename?: string): WorkerPool {
  return createWorkerPool({
    workerCount: 2,
    createTransport: createPiscinaTransport({
      filename,
      settings: (slot) => ({
        ...WORKER_DEFAULTS,
        slot,
        database: database.target,
        poolMax: 2,
        indexBytesMax: 64 * 1024 * 1024,
        pollMs: 100,
      }),
    }),
    queueDepthMax: 1_000,
    shardQueueDepthMax: 1_000,
    queueBytesMax: 1e8,
    onFatal: (cause) => {
      throw cause;
    },
    onStats: () => undefined,
    onEvent: (event) => events.push(event),
  });
}

beforeAll(async () => {
  database = await createTestDatabase();
  const { rows } = await database.pool.query<{ epoch: string }>('select epoch from deployment');
  epoch = Number(rows[0]?.epoch);
  pool = startPool();
  await pool.start();
  await pool.setModel('p', 1, '');
});

afterAll(async () => {
  await pool.stop();
  await database.drop();
});

/** Stores or removes doc:<id>#viewer@user:u and its change row. */
async function write(shard: ShardKey, op: 'insert' | 'delete', id: string): Promise<number> {
  const { projectId, tenantId } = shard;
  const columns = [projectId, tenantId, 'doc', id, 'viewer', '', 'u', ''];
  await database.pool.query(
    op === 'insert'
      ? `insert into relation_tuple values ($1, $2, $3, $4, $5, $6, $7, $8, null, null, null, 0)`
      : `delete from relation_tuple where (project_id, tenant_id, namespace, object_id, relation,
           subject_namespace, subject_id, subject_relation) = ($1, $2, $3, $4, $5, $6, $7, $8)`,
    columns,
  );
  return writeChange(database.pool, shard, packChanges([viewer(op, id, 'u')]));
}

test('loads, catches up and polls from Postgres on threads', async () => {
  for (const tenantId of ['t0', 't1', 't2', 't3']) {
    const shard = { projectId: 'p', tenantId };
    const first = await write(shard, 'insert', 'a');
    expect(await checkViewer(pool, scopeOf(shard, first, { epoch }), 'a', 'u')).toBe(true);
    const second = await write(shard, 'delete', 'a');
    expect(await checkViewer(pool, scopeOf(shard, second, { epoch }), 'a', 'u')).toBe(false);
    await write(shard, 'insert', 'b');
    const old = scopeOf(shard, second, { epoch });
    await expect.poll(() => checkViewer(pool, old, 'b', 'u')).toBe(true);
  }
});

test('raw bodies, lists and expansions cross the thread', async () => {
  const shard = { projectId: 'p', tenantId: 'lists' };
  let revision = 0;
  for (const id of ['x', 'y', 'z']) revision = await write(shard, 'insert', id);
  const scope = scopeOf(shard, revision, { epoch });
  const raw = await askRaw(
    pool,
    scope,
    'listObjects',
    '{"namespace":"doc","relation":"viewer","subject_user_id":"u","tenant_id":"lists"}',
    { projectId: '', tenantId: 'lists', token: '' },
  );
  expect(raw.kind === 'body' && Buffer.from(raw.body).toString()).toBe(
    '{"object_ids":["x","y","z"]}',
  );
  const query = { namespace: 'doc', relation: 'viewer', userId: 'u' };
  expect(await askList(pool, scope, query)).toEqual(['x', 'y', 'z']);
  const target = { namespace: 'doc', objectId: 'x', relation: 'viewer' };
  const args = { ...target, contextual: [], context: '' };
  const { result } = await pool.query(scope, 'expand', args);
  expect(result).toMatchObject({ type: 'leaf', userIds: ['u'] });
  const misrouted = await askRaw(
    pool,
    scope,
    'listObjects',
    '{"namespace":"doc","relation":"viewer","subject_user_id":"u"}',
    {
      projectId: '',
      tenantId: 'lists',
      token: '',
    },
  );
  expect(misrouted).toEqual({
    kind: 'error',
    error: { reason: 'INTERNAL', message: 'internal error', metadata: {} },
  });
});

test('a list of many thousands comes in parts', async () => {
  const shard = { projectId: 'p', tenantId: 'many' };
  await database.pool.query(
    `insert into relation_tuple select 'p', 'many', 'doc', 'd' || lpad(i::text, 6, '0'), 'viewer',
       '', 'u', '', null, null, null, 1 from generate_series(1, 20000) i`,
  );
  const revision = await writeChange(database.pool, shard);
  const scope = scopeOf(shard, revision, { epoch, readBudget: 1_000_000 });
  const ids = await askList(pool, scope, { namespace: 'doc', relation: 'viewer', userId: 'u' });
  expect(ids.length).toBe(20_000);
  expect(ids).toEqual([...new Set(ids)].sort());
});

test('a killed thread fails what it held, restarts in its slot, and the killer is refused', async () => {
  const filename = new URL('./killer-worker.ts', import.meta.url).href;
  const killable = startPool(filename);
  onTestFinished(() => killable.stop());
  await killable.start();
  await killable.setModel('p', 1, '');
  const shards = Array.from({ length: 8 }, (_, i) => ({ projectId: 'p', tenantId: `t${i}` }));
  const ofSlot = (slot: number): ShardKey =>
    shards.find((shard) => slotOfShard(shard, 2) === slot) ?? { projectId: 'p', tenantId: '' };
  const [hit, other] = [ofSlot(0), ofSlot(1)];
  const ask = (shard: ShardKey, id: string): ReturnType<typeof askRaw> => {
    const { tenantId } = shard;
    const body = `{"namespace":"doc","object_id":"${id}","relation":"viewer","subject_user_id":"u","tenant_id":"${tenantId}"}`;
    const expected = { projectId: '', tenantId, token: '' };
    return askRaw(killable, scopeOf(shard, 1), 'check', body, expected);
  };
  expect(await ask(hit, 'a')).toEqual({ kind: 'allowed' });
  const [killed, elsewhere] = await Promise.all([ask(hit, 'killer'), ask(other, 'a')]);
  expect(killed.kind === 'error' && killed.error.reason).toBe('WORKER_LOST');
  expect(elsewhere).toEqual({ kind: 'allowed' });
  expect(await ask(hit, 'a')).toEqual({ kind: 'allowed' }); // waited for the restart
  const again = await ask(hit, 'killer');
  expect(again.kind === 'error' && again.error.reason).toBe('REQUEST_REFUSED');
  expect(await ask(hit, 'a')).toEqual({ kind: 'allowed' });
  const lost = events.filter((event) => event.kind === 'workerLost');
  expect(lost).toMatchObject([{ slot: 0, requestRemembered: true }]);
});

test('a worker that cannot start is fatal after two tries', async () => {
  const fatal: unknown[] = [];
  const broken = createWorkerPool({
    workerCount: 1,
    createTransport: createPiscinaTransport({
      filename: new URL('./no-such-worker.ts', import.meta.url).href,
      settings: (slot) => ({
        ...WORKER_DEFAULTS,
        slot,
        database: database.target,
        poolMax: 1,
        indexBytesMax: 1e6,
      }),
    }),
    queueDepthMax: 10,
    shardQueueDepthMax: 10,
    queueBytesMax: 1e6,
    onFatal: (cause) => fatal.push(cause),
    onStats: () => undefined,
    onEvent: () => undefined,
  });
  expect(await broken.start().catch(reasonOf)).toMatch(/no-such-worker|thread/);
  expect(fatal.length).toBe(1);
  await broken.stop();
});
