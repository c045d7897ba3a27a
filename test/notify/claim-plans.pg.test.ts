import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { silentLog } from '../../src/store/postgres/store-log.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { mustCall, notify } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { startReceiver } from './support/webhook-receiver.ts';

/*
 * A claim takes what it is asked for by whichever plan. With fresh statistics of few deliveries, one an endpoint, a nested loop
 * may go round the deliveries of an endpoint, and read anew for each what to claim. The function switches most plans off for
 * itself: so it is called with other settings, too, and its statements run by themselves.
 */
const SIZES = [5, 40, 400];
/** Ready ones to an endpoint that no statistics know, and as many that are to be made ready. */
const BURST = 12;
const CLAIM =
  'notify.claim(smallint, timestamptz, timestamptz, integer, integer, integer, integer, jsonb, text)';
/** Of eight places a tenant gets the half. */
const PLACES = 8;
const ALLOWED = 4;
/** What is off of the planner's methods. */
const PLANS: readonly string[] = [
  '',
  'seqscan bitmapscan sort hashjoin mergejoin',
  'hashjoin mergejoin',
  'hashjoin mergejoin material indexscan',
  'nestloop mergejoin',
  'nestloop hashjoin',
];
/** In place of what the function's statements ask for, and of its variables. */
const LIMIT = 3;
const LITERALS: readonly (readonly [RegExp, string])[] = [
  [/\blimit \d+/g, `limit ${LIMIT}`],
  [/\binto [\w, ]+;/g, ';'],
  [/\bclaim_channel\b/g, '2'],
  [/\bnow_at\b/g, 'now()'],
  [/\blease_end\b/g, `now() + interval '1 minute'`],
  [/\bthe_tenant\b/g, `'dune'`],
  [/\bthe_endpoint\b/g, `'bell-dune'`],
];

/** So many sent deliveries, each to an endpoint of its own; after ANALYZE the burst. */
async function fill({ pool }: TestDatabase, count: number): Promise<void> {
  const put = async (first: number, last: number, tenant: string, rest: string): Promise<void> => {
    await pool.query(
      `with made as (
         insert into notify.notification (tenant_id, user_id, sequence, id, title, body, channels, created_at)
         select ${tenant}, 'cora', i, gen_random_uuid(), 'x', '', 2, now()
         from generate_series($1::int, $2::int) i returning id, tenant_id
       )
       insert into notify.delivery (
         notification_id, tenant_id, endpoint_id, channel, next_attempt_at, status, is_ready)
       select m.id, m.tenant_id, 'bell-' || m.tenant_id, 2, now() - interval '1 second', ${rest} from made m`,
      [first, last],
    );
  };
  await put(1, count, `'brook-' || i`, '2, false');
  await pool.query('analyze notify.notification, notify.delivery, notify.endpoint');
  await put(1, BURST, `'dune'`, '1, true');
  await put(BURST + 1, 2 * BURST, `'dune'`, '1, false');
}

describe.each(SIZES)('with fresh statistics of %i deliveries', (count) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase({ template: 'none' });
    await migrateNotify(database.target, silentLog);
    await fill(database, count);
  });
  afterAll(async () => await database.drop());

  /** Leaves nothing behind, settings neither. */
  async function undone(work: (client: PoolClient) => Promise<void>): Promise<void> {
    const client = await database.pool.connect();
    try {
      await client.query('begin');
      await work(client);
    } finally {
      await client.query('rollback');
      client.release();
    }
  }

  async function claims(client: PoolClient): Promise<void> {
    const { rows } = await client.query<{ notification_id: string | null }>(
      `select c.notification_id from notify.claim(2::smallint, now(), now() + interval '1 minute', ${PLACES},
         32, 8, 4, '{}', '') c`,
    );
    expect(rows.filter((row) => row.notification_id !== null)).toHaveLength(ALLOWED);
    const left = await client.query(
      `select count(*) filter (where d.claimed_until is not null)::int as claimed,
         count(*) filter (where d.is_ready)::int as ready
       from notify.delivery d where d.status = 1`,
    );
    expect(left.rows).toEqual([{ claimed: ALLOWED, ready: 2 * BURST - ALLOWED }]);
  }

  test('a claim takes what it may, by its own settings', async () => {
    await undone(claims);
  });

  test.each(PLANS)('a claim takes what it may, without %s', async (off) => {
    await undone(async (client) => {
      await client.query(`alter function ${CLAIM} reset all`);
      for (const method of off.split(' ').filter(Boolean)) {
        await client.query(`alter function ${CLAIM} set enable_${method} = off`);
      }
      await claims(client);
    });
  });

  test.each(PLANS)('its statements update no more than their limits, without %s', async (off) => {
    const { rows } = await database.pool.query<{ prosrc: string }>(
      'select p.prosrc from pg_proc p where p.oid = $1::text::regprocedure',
      [CLAIM],
    );
    const found = rows[0]?.prosrc.match(/(?:with due as|update notify\.delivery)[^;]+;/g) ?? [];
    expect(found).toHaveLength(2);
    for (const text of found) {
      const statement = LITERALS.reduce((sum, [name, value]) => sum.replace(name, value), text);
      await undone(async (client) => {
        for (const method of off.split(' ').filter(Boolean)) {
          await client.query(`set local enable_${method} = off`);
        }
        const { rowCount } = await client.query(statement);
        expect([text, rowCount]).toEqual([text, LIMIT]);
      });
    }
  });
});

test('webhooks of all tenants arrive after statistics of one delivery an endpoint', async () => {
  const database = await createTestDatabase({ template: 'none' });
  try {
    const service = await serveNotify({ DATABASE_URL: urlOf(database.target) });
    const receiver = await startReceiver((response) => response.writeHead(204).end());
    const put = async (tenant_id: string): Promise<void> => {
      const address = receiver.url.replace('/hook', `/${tenant_id}`);
      const endpoint = { id: `bell-${tenant_id}`, tenant_id, channel: 'CHANNEL_WEBHOOK', address };
      await mustCall(service, 'PutEndpoint', { endpoint, signing_secret: 'seventeen or more' });
    };
    const ring = async (tenant_id: string): Promise<unknown> =>
      notify(service, { tenant_id, channels: ['CHANNEL_WEBHOOK'] });
    for (let nth = 0; nth < 9; nth++) {
      await put(`brook-${nth}`);
      await ring(`brook-${nth}`);
    }
    const pending = async (): Promise<unknown> =>
      (await database.pool.query('select from notify.delivery d where d.status = 1')).rowCount;
    await poll(pending).toBe(0);
    await database.pool.query('analyze notify.delivery');
    await put('dune');
    await put('heath');
    await Promise.all([...Array.from({ length: BURST }, async () => ring('dune')), ring('heath')]);
    await poll(pending).toBe(0);
    const paths = receiver.received.map(({ path }) => path);
    expect(paths.filter((path) => path === '/dune')).toHaveLength(BURST);
    expect(paths.filter((path) => path === '/heath')).toHaveLength(1);
    await service.stop();
  } finally {
    await database.drop();
  }
});
