/* What many deliveries cost that wait for a later attempt, with whatever statistics the planner has of them. */
import type { ClientBase } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateNotify } from '../../src/notify/store/migrate-notify.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { claimRequest, hook, newNotification, T0, WEBHOOK } from './store-contract.ts';

const WAITING = 20_000;
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
  await database.pool.query(
    `with made as (
       insert into notify.notification (tenant_id, user_id, sequence, id, title, body, channels, created_at)
       select 't' || (i % $3::int), 'u', i, gen_random_uuid(), 'x', '', 2,
         to_timestamp($2::double precision / 1000)
       from generate_series(1, $1::int) i returning id, tenant_id, sequence, created_at
     )
     insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, next_attempt_at, is_ready, attempts)
     select m.id, m.tenant_id, 'hook', 2, m.created_at + interval '1 minute' + (m.sequence * 7919 % $1::int) * interval '1 second', false, 14
     from made m`,
    [WAITING, T0, TENANTS],
  );
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
  const client = await database.pool.connect();
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
