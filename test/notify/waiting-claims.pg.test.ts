/* What many deliveries cost that wait for a later attempt, with whatever statistics the planner has of them. */
import type { ClientBase, PoolClient } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/postgres/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength } from '../support/test-length.ts';
import { claimRequest, hook, newNotification, T0, WEBHOOK } from './store-contract.ts';

const WAITING = byLength(20_000, 1_000_000);
/** Deliveries that one statement fills in. */
const BATCH = 20_000;
const TENANTS = 20;
const DUE = 5;
const PLACES = 32;
/** Pages for each due delivery, and of a look that finds none. All that waits is on a hundred of an index. */
const PAGES_FOR_EACH = 60;
const PAGES_OF_NONE = 40;

/** What the planner has been told, and what tells it so. */
const ALL = (was: string): readonly string[] => [
  `update notify.delivery set ${was}`,
  'analyze notify.delivery',
  'update notify.delivery set status = 1, is_ready = (attempts = 0)',
];
const STATISTICS: readonly (readonly [string, readonly string[]])[] = [
  ['of an empty table', []],
  ['of ready deliveries alone', ALL('is_ready = true')],
  ['of sent deliveries alone', ALL('status = 2')],
  ['of what there is', ['analyze notify.delivery']],
];

// A million rows are changed twice for each kind of statistics.
vi.setConfig({ testTimeout: byLength(60_000, 600_000), hookTimeout: byLength(60_000, 600_000) });

let database: TestDatabase;
let store: PostgresStore;

beforeAll(async () => {
  database = await createTestDatabase({ template: 'none' });
  await migrateNotify(database.target, silentLog);
  const options = { poolMax: 4, secretKeys: [], log: silentLog };
  store = new PostgresStore({ target: database.target, ...options });
  await store.started;
  await database.pool.query(
    `alter table notify.delivery set (autovacuum_enabled = off);
     analyze notify.delivery, notify.notification, notify.endpoint`,
  );
  for (let nth = 0; nth < TENANTS; nth++)
    await store.putEndpoint(hook({ tenantId: `t${nth}` }), 's');
  const client = await unhurried();
  for (let from = 1; from <= WAITING; from += BATCH) {
    await client.query(
      `with made as (
         insert into notify.notification (tenant_id, user_id, sequence, id, title, body, channels, created_at)
         select 't' || (i % $3::int), 'u', i, gen_random_uuid(), 'x', '', 2,
           to_timestamp($2::double precision / 1000)
         from generate_series($4::int, $4::int + $5::int - 1) i returning id, tenant_id, sequence, created_at
       )
       insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, next_attempt_at, is_ready, attempts)
       select m.id, m.tenant_id, 'hook', 2, m.created_at + interval '1 minute' + (m.sequence * 7919 % $1::int) * interval '1 second', false, 14
       from made m`,
      [WAITING, T0, TENANTS, from, BATCH],
    );
  }
  client.release();
  await store.put(
    Array.from({ length: DUE }, (_, nth) =>
      newNotification({ tenantId: `t${nth}`, userId: 'due' }, { channels: [WEBHOOK] }),
    ),
  );
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

/** A connection whose statements may take as long as they need. */
async function unhurried(): Promise<PoolClient> {
  const client = await database.pool.connect();
  await client.query('set statement_timeout = 0');
  return client;
}

type Plan = { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number };

/** The pages that a statement looks at, everything that its functions run among them. */
async function pagesOf(client: ClientBase, statement: string): Promise<number> {
  const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) ${statement}`,
  );
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  return (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0);
}

const CLAIM = `select * from notify.claim(2::smallint, to_timestamp(${T0} / 1000.0), to_timestamp(${T0} / 1000.0 + 60),
  ${PLACES}, 32, 8, 4, '{}', '')`;
const NEXT_DUE = 'select notify.next_due(2::smallint)';

/** Pages of a claim of what is due, of one that finds nothing, and of a look for what is due next; undone. */
async function costs(client: ClientBase): Promise<readonly [number, number, number]> {
  await client.query('begin');
  const [due, none] = [await pagesOf(client, CLAIM), await pagesOf(client, CLAIM)];
  const next = await pagesOf(client, NEXT_DUE);
  await client.query('rollback');
  return [due, none, next];
}

test.each(STATISTICS)('with statistics %s claims cost what is due', async (_of, prepare) => {
  const client = await unhurried();
  try {
    for (const statement of prepare) await client.query(statement);
    // So that nothing is looked at but what is there; it leaves the statistics of columns alone.
    await client.query('vacuum notify.delivery');
    // The first ones of a session also read the catalogue.
    for (let nth = 0; nth < 3; nth++) await costs(client);
    const [due, none, next] = await costs(client);
    expect(due).toBeLessThan(DUE * PAGES_FOR_EACH);
    expect(Math.max(none, next)).toBeLessThan(PAGES_OF_NONE);
  } finally {
    client.release();
  }
});

test('what is due is claimed, and what waits is due when it says so', async () => {
  expect(await store.nextDueMs(WEBHOOK)).toBe(T0 + 60_000);
  const { deliveries } = await store.claimDue(claimRequest({ places: PLACES, leaseMs: 3_600_000 }));
  expect(deliveries.map(({ endpoint }) => endpoint.tenantId).sort()).toEqual(
    Array.from({ length: DUE }, (_, nth) => `t${nth}`),
  );
  const later = claimRequest({ nowMs: T0 + 62_500, places: PLACES });
  const found = (await store.claimDue(later)).deliveries;
  expect(found.map(({ attempts }) => attempts)).toEqual([14, 14, 14]);
});
