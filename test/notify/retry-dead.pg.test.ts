import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call, mustCall, notify } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { startReceiver, type WebhookReceiver } from './support/webhook-receiver.ts';

/** The nth notification of each tenant died so many minutes after this, with each of its deliveries. */
const FIRST_DEATH = Date.UTC(2026, 2, 9, 7);
const NOTIFICATIONS = 6;
const atMinute = (minute: number): string => new Date(FIRST_DEATH + minute * 60_000).toISOString();
/** The second to the fourth: the bounds are deaths themselves. */
const RANGE = { died_from: atMinute(1), died_until: atMinute(4) };

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

let database: TestDatabase;
let service: ServedNotify;
let receiver: WebhookReceiver;
let isWell: boolean;

type Listed = readonly Readonly<Record<string, unknown>>[];
async function keysOf(tenant_id: string, status: string): Promise<readonly string[]> {
  const query = { tenant_id, status: `DELIVERY_STATUS_${status}` };
  const answer = await mustCall(service, 'DeliveryService/ListDeliveries', query);
  const keys = (answer['deliveries'] as Listed).map(
    (one) => `${titles.get(String(one['notification_id']))}-${String(one['endpoint_id'])}`,
  );
  return keys.toSorted();
}
const titles = new Map<string, string>();

const retryDead = async (more: object = {}): Promise<Record<string, unknown>> =>
  mustCall(service, 'DeliveryService/RetryDeadDeliveries', {
    tenant_id: 'mill',
    ...RANGE,
    ...more,
  });

/** What has arrived since the receiver is well: title and path. */
function arrived(from: number): readonly string[] {
  const titleOf = (body: string): string =>
    (JSON.parse(body) as { data: { title: string } }).data.title;
  return receiver.received
    .slice(from)
    .map(({ body, path }) => `${titleOf(body)}-${path.slice(1)}`)
    .toSorted();
}

beforeEach(async () => {
  database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  service = await serveNotify({ DATABASE_URL: urlOf(database.target), NOTIFY_SEND_ATTEMPTS: '1' });
  isWell = false;
  receiver = await startReceiver((response) => response.writeHead(isWell ? 200 : 500).end());
  titles.clear();
  for (const [tenant_id, id] of [
    ['mill', 'gate'],
    ['mill', 'bell'],
    ['quay', 'gate'],
  ]) {
    const address = receiver.url.replace('/hook', `/${String(id)}`);
    const endpoint = { id, tenant_id, channel: 'CHANNEL_WEBHOOK', address };
    await mustCall(service, 'PutEndpoint', { endpoint, signing_secret: 'seventeen or more' });
  }
  for (let nth = 0; nth < NOTIFICATIONS; nth++) {
    for (const tenant_id of ['mill', 'quay']) {
      const title = `n${nth}`;
      const stored = await notify(service, { tenant_id, title, channels: ['CHANNEL_WEBHOOK'] });
      titles.set(String(stored['id']), title);
    }
  }
  await poll(() => keysOf('mill', 'DEAD')).toHaveLength(2 * NOTIFICATIONS);
  await poll(() => keysOf('quay', 'DEAD')).toHaveLength(NOTIFICATIONS);
  await database.pool.query(
    `update notify.delivery d set died_at = to_timestamp($1::double precision / 1000)
       + substr(n.title, 2)::int * interval '1 minute'
     from notify.notification n where n.id = d.notification_id`,
    [FIRST_DEATH],
  );
  isWell = true;
});

const ALL = ['n1-bell', 'n1-gate', 'n2-bell', 'n2-gate', 'n3-bell', 'n3-gate'];

describe('dead deliveries of a tenant', () => {
  test('are delivered that died within a time, once, and no other', async () => {
    const before = receiver.received.length;
    expect(await retryDead()).toEqual({ retried: 6, skipped: 0, next_page_token: '' });
    await poll(() => keysOf('mill', 'SENT')).toEqual(ALL);
    expect(arrived(before)).toEqual(ALL);
    const first = new Set(
      receiver.received.slice(0, before).map((one) => one.headers['webhook-id']),
    );
    for (const { headers } of receiver.received.slice(before)) {
      expect(first).toContain(headers['webhook-id']);
    }
    expect(await keysOf('mill', 'DEAD')).toHaveLength(6);
    expect(await keysOf('quay', 'DEAD')).toHaveLength(NOTIFICATIONS);
    expect(await retryDead()).toEqual({ retried: 0, skipped: 0, next_page_token: '' });
    expect(arrived(before)).toEqual(ALL);
  });

  test('are delivered to one endpoint, page by page', async () => {
    const before = receiver.received.length;
    const query = { endpoint_id: 'gate', page_size: 2 };
    const first = await retryDead(query);
    expect(first).toMatchObject({ retried: 2, skipped: 0, next_page_token: /./ });
    const page_token = first['next_page_token'];
    const second = await retryDead({ ...query, page_token });
    expect(second).toEqual({ retried: 1, skipped: 0, next_page_token: '' });
    await poll(() => keysOf('mill', 'SENT')).toEqual(['n1-gate', 'n2-gate', 'n3-gate']);
    expect(arrived(before)).toEqual(['n1-gate', 'n2-gate', 'n3-gate']);
  });

  test('are tried once by a loop over pages, also when they die again meanwhile', async () => {
    isWell = false;
    const before = receiver.received.length;
    let page_token: unknown = '';
    let retried = 0;
    do {
      const page = await retryDead({
        died_until: '2999-01-01T00:00:00Z',
        page_size: 3,
        page_token,
      });
      retried += Number(page['retried']);
      page_token = page['next_page_token'];
      await poll(() => receiver.received.length).toBe(before + retried);
      await poll(() => keysOf('mill', 'DEAD')).toHaveLength(2 * NOTIFICATIONS);
    } while (page_token !== '');
    expect(retried).toBe(2 * (NOTIFICATIONS - 1));
  });

  test('stay dead where their endpoint is disabled or was removed, and are counted', async () => {
    await database.pool.query(`update notify.endpoint set disabled_at = now() where id = 'bell'`);
    const before = receiver.received.length;
    expect(await retryDead()).toMatchObject({ retried: 3, skipped: 3 });
    await poll(() => keysOf('mill', 'SENT')).toEqual(['n1-gate', 'n2-gate', 'n3-gate']);
    expect(arrived(before)).toHaveLength(3);
    await mustCall(service, 'DeleteEndpoint', { tenant_id: 'mill', id: 'bell' });
    expect(await retryDead()).toEqual({ retried: 0, skipped: 3, next_page_token: '' });
  });

  test('are found behind more than one page looks at', async () => {
    await database.pool.query(
      `with made as (
         insert into notify.notification (tenant_id, user_id, sequence, id, title, body, channels, created_at)
         select 'mill', 'old', i, ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'x', '', 2, now()
         from generate_series(1, 5100) i returning id
       )
       insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, status, next_attempt_at, died_at)
       select m.id, 'mill', 'gate', 2, 3, now(), now() from made m`,
    );
    const first = await retryDead();
    expect(first).toMatchObject({ retried: 0, skipped: 0, next_page_token: /./ });
    const second = await retryDead({ page_token: first['next_page_token'] });
    expect(second).toEqual({ retried: 6, skipped: 0, next_page_token: '' });
    await poll(() => keysOf('mill', 'SENT')).toEqual(ALL);
  });

  test('are asked for by a time, within bounds; errors name the field', async () => {
    const bad: readonly (readonly [object, string, string])[] = [
      [{ tenant_id: '' }, 'FIELD_REQUIRED', 'tenant_id'],
      [{ endpoint_id: 'GATE' }, 'FIELD_INVALID', 'endpoint_id'],
      [{ died_from: null }, 'FIELD_REQUIRED', 'died_from'],
      [{ died_until: null }, 'FIELD_REQUIRED', 'died_until'],
      [{ died_until: RANGE.died_from }, 'FIELD_INVALID', 'died_until'],
      [{ died_until: atMinute(0) }, 'FIELD_INVALID', 'died_until'],
      [{ page_size: -1 }, 'FIELD_INVALID', 'page_size'],
      [{ page_size: 501 }, 'FIELD_INVALID', 'page_size'],
      [{ page_token: 'gate' }, 'FIELD_INVALID', 'page_token'],
    ];
    for (const [more, reason, field] of bad) {
      const request = { tenant_id: 'mill', ...RANGE, ...more };
      const answer = await call(service, 'DeliveryService/RetryDeadDeliveries', request);
      expect([answer.status, answer.body['details']]).toMatchObject([
        400,
        [{ debug: { reason, metadata: { field } } }],
      ]);
    }
    expect(await keysOf('mill', 'DEAD')).toHaveLength(2 * NOTIFICATIONS);
    const url = `${service.internalUrl}/notify.v1.DeliveryService/RetryDeadDeliveries`;
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ tenant_id: 'mill', ...RANGE });
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(401);
  });
});
