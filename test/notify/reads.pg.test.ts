/* What a user marks as read, as the user's other devices hear of it, and what is counted as unread. */
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { type ClientEvent, EventClient } from '../support/event-client.ts';
import {
  call,
  freshDatabase,
  mustCall,
  notify,
  series,
  streamUrl,
} from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';

const USER = { tenant_id: 'acme', user_id: 'ann' };
const WEBHOOK = 'CHANNEL_WEBHOOK';
const LIVE = 'CHANNEL_LIVE';
const EMAIL = 'CHANNEL_EMAIL';

async function opened(service: ServedNotify, lastId = ''): Promise<EventClient> {
  const headers: Record<string, string> = lastId === '' ? {} : { 'last-event-id': lastId };
  const client = await EventClient.open(await streamUrl(service), headers);
  await client.untilType('open');
  return client;
}

const readsOf = (events: readonly ClientEvent[]): readonly unknown[] =>
  events.filter(({ event }) => event === 'read').map(({ data }) => data);

/** The data of the first `count` events `read`. */
async function reads(client: EventClient, count: number): Promise<readonly unknown[]> {
  return readsOf(await client.until((events) => readsOf(events).length >= count));
}

async function mark(service: ServedNotify, which: object): Promise<Record<string, unknown>> {
  return mustCall(service, 'MarkRead', { ...USER, ...which });
}

test('a mark reaches every open stream of the user, of every process, and nobody else', async () => {
  const database = await freshDatabase();
  const first = await serveNotify(database);
  const second = await serveNotify(database);
  const sent = await Promise.all([1, 2, 3].map(async () => notify(first)));
  const devices = [await opened(first), await opened(first), await opened(second)];
  const bob = await EventClient.open(await streamUrl(first, { user_id: 'bob' }));
  await bob.untilType('open');
  expect(devices.map(({ events }) => events[0]?.data)).toMatchObject(
    devices.map(() => ({ head: 3, unread_count: 3, reads: 0 })),
  );
  const ids = [String(sent[0]?.['id'])];
  expect(await mark(second, { ids })).toEqual({ marked_count: '1', unread_count: '2' });
  for (const device of devices) await reads(device, 1);
  // Nothing that was unread: nobody hears of it.
  await mark(second, { ids });
  await mark(first, { up_to_sequence: '900' });
  const expected = [
    { ids, unread_count: 2, head: 3, reads: 1 },
    { up_to_sequence: 3, unread_count: 0, head: 3, reads: 2 },
  ];
  for (const device of devices) expect(await reads(device, 2)).toEqual(expected);
  // A mark is no place to go on from.
  const id = devices[0]?.events.find(({ event }) => event === 'read')?.id;
  expect([id, readsOf(bob.events)]).toEqual(['', []]);
  expect(await series(first, 'notify_stream_events_total{kind="read"}')).toBe(4);
});

test('as many ids as a call may have reach the streams of another process', async () => {
  const database = await freshDatabase();
  const [first, second] = [await serveNotify(database), await serveNotify(database)];
  const sent = await Promise.all(Array.from({ length: 500 }, async () => notify(first)));
  const ids = sent.map(({ id }) => String(id)).sort();
  const device = await opened(second);
  await mark(first, { ids });
  const [data] = (await reads(device, 1)) as { ids: string[]; unread_count: number }[];
  expect([data?.ids.toSorted(), data?.unread_count]).toEqual([ids, 0]);
});

test('a stream that comes back is told what is unread, and that there were marks', async () => {
  const service = await serveNotify();
  await notify(service);
  await notify(service);
  const before = await opened(service);
  before.close();
  await mark(service, { up_to_sequence: '1' });
  await notify(service);
  const after = await opened(service, before.events[0]?.id);
  expect(after.events[0]).toMatchObject({ id: '2', data: { head: 3, unread_count: 2, reads: 1 } });
  await mark(service, { up_to_sequence: '2' });
  expect(await reads(after, 1)).toMatchObject([{ unread_count: 1, head: 3, reads: 2 }]);
  // What the mark is about came before it.
  expect(after.events.map(({ event }) => event)).toEqual(['open', 'notification', 'read']);
});

test('a mark that is no longer kept is told without saying what it was', async () => {
  const database = await freshDatabase();
  const service = await serveNotify(database);
  await notify(service);
  await notify(service);
  const device = await opened(service);
  const client = new Client(database['DATABASE_URL']);
  await client.connect();
  try {
    // As after hours without the database: two marks, of which the older one is gone.
    await client.query(
      `begin; update notify.stream set reads = 2;
       update notify.notification set read_at = now() where sequence = 1;
       insert into notify.read_mark (tenant_id, user_id, revision, up_to) values ('acme', 'ann', 2, 1);
       select pg_notify('notify_stored', 'acme ann 2 2'); commit`,
    );
    expect(await reads(device, 2)).toEqual([
      { unread_count: 1, head: 2, reads: 1 },
      { up_to_sequence: 1, unread_count: 1, head: 2, reads: 2 },
    ]);
  } finally {
    await client.end();
  }
});

test('lists and counts are of what devices get, or of the channels that are asked for', async () => {
  const service = await serveNotify({ NOTIFY_SMTP_URL: 'smtp://127.0.0.1:9' });
  const given = [[LIVE], [WEBHOOK], [EMAIL], [WEBHOOK, LIVE], [EMAIL, WEBHOOK]];
  for (const channels of given) await notify(service, { channels });
  const list = async (query: object): Promise<readonly unknown[]> => {
    const answer = await mustCall(service, 'ListNotifications', { ...USER, ...query });
    const { notifications, unread_count: unread = '0' } = answer;
    return [(notifications as { sequence: string }[]).map((one) => Number(one.sequence)), unread];
  };
  expect(await list({})).toEqual([[4, 1], '2']);
  expect(await list({ channels: [LIVE] })).toEqual([[4, 1], '2']);
  expect(await list({ channels: [WEBHOOK] })).toEqual([[5, 4, 2], '3']);
  expect(await list({ channels: [EMAIL, EMAIL] })).toEqual([[5, 3], '2']);
  expect(await list({ channels: [LIVE, WEBHOOK, EMAIL] })).toEqual([[5, 4, 3, 2, 1], '5']);
  const page = { channels: [WEBHOOK], page_size: 2 };
  expect(await list(page)).toEqual([[5, 4], '3']);
  expect(await list({ ...page, page_token: '4' })).toEqual([[2], '3']);
  const device = await opened(service);
  expect(device.events[0]?.data).toMatchObject({ head: 5, unread_count: 2 });
  // Three of them, of which devices have got one.
  expect(await mark(service, { up_to_sequence: '3' })).toEqual({
    marked_count: '3',
    unread_count: '1',
  });
  expect(await reads(device, 1)).toMatchObject([{ unread_count: 1 }]);
  expect(await list({ unread_only: true })).toEqual([[4], '1']);
  expect(await list({ unread_only: true, channels: [EMAIL] })).toEqual([[5], '1']);
});

test.each([
  ['CHANNEL_UNSPECIFIED', 'channels: must be CHANNEL_LIVE, CHANNEL_WEBHOOK or CHANNEL_EMAIL'],
  [99, 'channels: must be CHANNEL_LIVE, CHANNEL_WEBHOOK or CHANNEL_EMAIL'],
  ['CHANNEL_MAIL', expect.stringMatching(/^channels\[1\]: must be CHANNEL_LIVE, CHANNEL_WEBHOOK/)],
])('a list of the channel %s is refused', async (channel, message) => {
  const service = await serveNotify();
  const query = { ...USER, channels: [LIVE, channel] };
  const { status, body } = await call(service, 'ListNotifications', query);
  expect([status, body['code'], body['message']]).toEqual([400, 'invalid_argument', message]);
  expect(JSON.stringify(body['details'])).toContain('"field":"channels');
});
