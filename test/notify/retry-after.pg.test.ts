/* `Retry-After` of a receiver, as it comes to the time of the next attempt. */
import { expect, test } from 'vitest';
import { mustCall, notify } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** What a busy machine may take between an answer and its settlement. */
const SLACK_MS = 2 * MINUTE_MS;
/** Of the service itself: 5 to 10 minutes before the second attempt, and never more than 30. */
const SETTINGS = { NOTIFY_RETRY_BASE_MS: '600000', NOTIFY_RETRY_MAX_MS: '1800000' };

const inHours = (hours: number): Date => new Date(Date.now() + hours * HOUR_MS);
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** `Sun, 06 Nov 1994 08:49:37 GMT` in the other forms of RFC 9110. */
function rfc850(date: Date): string {
  const [, day, month, year, time] = date.toUTCString().split(' ');
  return `${DAYS[date.getUTCDay()]}, ${day}-${month}-${year?.slice(2)} ${time} GMT`;
}
function asctime(date: Date): string {
  const [name, day, month, year, time] = date.toUTCString().split(' ');
  return `${name?.slice(0, 3)} ${month} ${day?.replace(/^0/, ' ')} ${time} ${year}`;
}

type Listed = readonly { endpoint_id: string; attempts: number; next_attempt_at: string }[];

/** By endpoint: the status, what `Retry-After` is answered, and the wait. A date is of whole seconds. */
const CASES: Readonly<Record<string, readonly [number, () => string, number, number]>> = {
  seconds: [429, () => '900', 15 * MINUTE_MS, 15 * MINUTE_MS],
  overloaded: [503, () => '7200', 2 * HOUR_MS, 2 * HOUR_MS],
  another: [500, () => '7200', 2 * HOUR_MS, 2 * HOUR_MS],
  redirect: [302, () => '7200', 2 * HOUR_MS, 2 * HOUR_MS],
  date: [503, () => inHours(3).toUTCString(), 3 * HOUR_MS - 1_000, 3 * HOUR_MS],
  rfc850: [429, () => rfc850(inHours(3)), 3 * HOUR_MS - 1_000, 3 * HOUR_MS],
  asctime: [429, () => asctime(inHours(3)), 3 * HOUR_MS - 1_000, 3 * HOUR_MS],
  long: [429, () => '604800', DAY_MS, DAY_MS],
  longest: [503, () => '9'.repeat(400), DAY_MS, DAY_MS],
  far: [503, () => inHours(24 * 400).toUTCString(), DAY_MS, DAY_MS],
  short: [429, () => '1', 5 * MINUTE_MS, 10 * MINUTE_MS],
  past: [429, () => inHours(-1).toUTCString(), 5 * MINUTE_MS, 10 * MINUTE_MS],
  nonsense: [429, () => 'not before 2030', 5 * MINUTE_MS, 10 * MINUTE_MS],
  negative: [429, () => '-7200', 5 * MINUTE_MS, 10 * MINUTE_MS],
};

test('a receiver is left alone for as long as it asks, up to a day, by seconds and by date', async () => {
  const service = await serveNotify(SETTINGS);
  const answeredAtMs = new Map<string, number>();
  const receiver = await startReceiver((response, _index, { path }) => {
    const id = path.slice('/hook/'.length);
    const [status, value] = CASES[id] ?? [500, () => ''];
    answeredAtMs.set(id, Date.now());
    response.writeHead(status, { 'retry-after': value() }).end();
  });
  const ids = Object.keys(CASES);
  for (const id of ids) {
    const endpoint = { id, tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK' };
    await mustCall(service, 'PutEndpoint', {
      endpoint: { ...endpoint, address: `${receiver.url}/${id}` },
      signing_secret: 'seventeen or more',
    });
  }
  await notify(service, { channels: ['CHANNEL_WEBHOOK'] });
  const list = async (): Promise<Listed> =>
    (await mustCall(service, 'DeliveryService/ListDeliveries', { tenant_id: 'acme' }))[
      'deliveries'
    ] as Listed;
  await poll(async () => (await list()).filter(({ attempts }) => attempts === 1).length).toBe(
    ids.length,
  );
  for (const { endpoint_id: id, next_attempt_at: next } of await list()) {
    const [, , leastMs, mostMs] = CASES[id] ?? [0, 0, 0, 0];
    const waitMs = Date.parse(next) - (answeredAtMs.get(id) ?? 0);
    const isRight = waitMs >= leastMs && waitMs <= mostMs + SLACK_MS;
    expect([id, waitMs, isRight]).toEqual([id, waitMs, true]);
  }
  expect(receiver.received).toHaveLength(ids.length);
});
