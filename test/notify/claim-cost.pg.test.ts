import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/postgres/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { claimRequest, hook, newNotification, T0, WEBHOOK } from './store-contract.ts';

const MILLION = 1_000_000;
const FEW = 1_000;
/** Pages that a claim may look at for each place, whatever waits. */
const PAGES_FOR_EACH = 60;
const PLACES = 32;

/** So many ready deliveries of one tenant to one endpoint, a part of them for later, and a handful of other tenants'. */
async function fill(database: TestDatabase, store: PostgresStore, count: number): Promise<void> {
  const tenants = ['flood', 'late', ...Array.from({ length: 8 }, (_, i) => `quiet-${i}`)];
  for (const tenantId of tenants) await store.putEndpoint(hook({ tenantId }), 's');
  const client = await database.pool.connect();
  await client.query('set statement_timeout = 0');
  await client.query(
    `with made as (
       insert into notify.notification (tenant_id, user_id, sequence, id, title, body, channels, created_at)
       select t.tenant, 'u', i, gen_random_uuid(), 'x', '', 2, to_timestamp($2::double precision / 1000)
       from (values ('flood'), ('late')) t (tenant), generate_series(1, $1::int / 2) i
       returning id, tenant_id, sequence, created_at
     )
     insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, next_attempt_at, is_ready)
     select m.id, m.tenant_id, 'hook', 2,
       m.created_at + case when m.tenant_id = 'late' then interval '1 hour' else interval '0' end,
       m.tenant_id = 'flood'
     from made m`,
    [count, T0],
  );
  client.release(true);
  for (const tenantId of tenants.slice(2)) {
    await store.put([newNotification({ tenantId, userId: 'u' }, { channels: [WEBHOOK] })]);
  }
}

type Plan = Record<string, unknown> & { readonly Plans?: readonly Plan[] };

/** The pages that a claim looks at: those of everything that the function runs are counted to it. */
async function pagesOfClaim(database: TestDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ 'QUERY PLAN': readonly { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json)
     select * from notify.claim(2::smallint, to_timestamp($1::double precision / 1000),
       to_timestamp($1::double precision / 1000 + 60), $2, 32, 8, 4, '{}', '')`,
    [T0, PLACES],
  );
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  const [hit, read] = ['Shared Hit Blocks', 'Shared Read Blocks'].map((name) => plan?.[name]);
  return Number(hit) + Number(read);
}

const WAITING = byLength<readonly (readonly [string, number])[]>(
  [
    ['a thousand', FEW],
    ['thirty thousand', 30_000],
  ],
  [['a million', MILLION]],
);

describe.each(WAITING)('with %s deliveries of one tenant waiting', (_name, count) => {
  let database: TestDatabase;
  let store: PostgresStore;
  beforeAll(async () => {
    database = await createTestDatabase({ template: 'none' });
    await migrateNotify(database.target, silentLog);
    const options = { poolMax: 4, secretKeys: [], log: silentLog };
    store = new PostgresStore({ target: database.target, ...options });
    await store.started;
    await fill(database, store, count);
  }, 600_000);
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  test('a claim looks at a bounded number of pages, without statistics and with them', async () => {
    // The first ones of a session also read the catalogue.
    for (let i = 0; i < 3; i++) await pagesOfClaim(database);
    expect(await pagesOfClaim(database)).toBeLessThan(PLACES * PAGES_FOR_EACH);
    await database.pool.query('analyze notify.delivery, notify.notification, notify.endpoint');
    for (let i = 0; i < 3; i++) await pagesOfClaim(database);
    expect(await pagesOfClaim(database)).toBeLessThan(PLACES * PAGES_FOR_EACH);
  });

  test('every tenant gets its turn in one claim', async () => {
    await store.put([
      newNotification({ tenantId: 'quiet-7', userId: 'u' }, { channels: [WEBHOOK] }),
    ]);
    const { deliveries } = await store.claimDue(claimRequest({ places: PLACES, perTenantMax: 8 }));
    const tenants = deliveries.map(({ endpoint }) => endpoint.tenantId);
    expect(tenants).toContain('quiet-7');
    expect(tenants.filter((tenant) => tenant === 'flood')).toHaveLength(8);
    expect(tenants).not.toContain('late');
  });
});

inShort(test)('no statement of a claim reads by scanning or sorting what waits', async () => {
  const database = await createTestDatabase({ template: 'none' });
  try {
    await migrateNotify(database.target, silentLog);
    const options = { poolMax: 2, secretKeys: [], log: silentLog };
    const store = new PostgresStore({ target: database.target, ...options });
    await store.started;
    await fill(database, store, FEW);
    await store.close();
    // As the function runs them.
    const statements = [
      `select d.tenant_id from notify.delivery d where d.status = 1 and d.is_ready and d.channel <= 2
         and (d.channel, d.tenant_id) > (2, 'a') order by d.channel, d.tenant_id limit 1`,
      `select d.endpoint_id, d.next_attempt_at from notify.delivery d where d.status = 1 and d.is_ready
         and d.channel <= 2 and (d.channel, d.tenant_id, d.endpoint_id) > (2, 'flood', '')
       order by d.channel, d.tenant_id, d.endpoint_id, d.next_attempt_at limit 1`,
      `select w.notification_id from notify.delivery w where w.status = 1 and not w.is_ready and w.channel = 2
         and w.next_attempt_at <= now() order by w.next_attempt_at limit 500`,
    ];
    const client = await database.pool.connect();
    await client.query(
      'set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off',
    );
    for (const statement of statements) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${statement}`);
      const text = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(text).toMatch(/Index (?:Only )?Scan using delivery_(?:ready|waiting)/);
      expect(text).not.toMatch(/Seq Scan|Sort/);
    }
    client.release();
  } finally {
    await database.drop();
  }
});
