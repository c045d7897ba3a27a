import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NotificationWriter } from '../../src/notify/core/notification-writer.ts';
import type { StoredListener } from '../../src/notify/model/notification-store.ts';
import { LIVE_CHANNEL } from '../../src/notify/model/notification.ts';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/postgres/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { ANN, newNotification, T0, WEBHOOK } from './store-contract.ts';
import { poll } from './support/poll.ts';
import { Device, pause, startProcess } from './support/stream-process.ts';

const USERS = ['ann', 'bob'] as const;
const DEVICES = 5;

let database: TestDatabase;
let opened: PostgresStore;
beforeAll(async () => {
  database = await createTestDatabase({ template: 'none' });
  const { target } = database;
  await migrateNotify(target, silentLog);
  opened = new PostgresStore({ target, poolMax: 8, secretKeys: [], log: silentLog });
  await opened.started;
});
afterAll(async () => {
  await opened.close();
  await database.drop();
});

/** The store without anything in it, told to nobody. */
async function emptyStore(): Promise<PostgresStore> {
  opened.onStored(() => undefined);
  await database.pool.query(
    'truncate notify.stream, notify.notification, notify.read_mark cascade',
  );
  return opened;
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      user: fc.constantFrom(...USERS),
      isLive: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('connect' as const),
      device: fc.nat(DEVICES - 1),
      process: fc.nat(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('disconnect' as const), device: fc.nat(DEVICES - 1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lose hints' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('mark' as const),
      user: fc.constantFrom(...USERS),
      upToSequence: fc.integer({ min: 1, max: 12 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.nat(4) }) },
);
const chance = fc.record({
  delaysMs: fc.array(fc.nat(3), { minLength: 1, maxLength: 7 }),
  // Mostly it works, so that attempts come to an end.
  fails: fc
    .array(fc.constantFrom(false, false, false, true), { minLength: 5, maxLength: 9 })
    .filter((all) => all.filter(Boolean).length <= 2),
});

test(
  'every device gets each live notification once and in order, and knows what is unread, whatever interleaves',
  { timeout: 120_000 },
  async () => {
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }),
      chance,
      async (steps, luck) => {
        const store = await emptyStore();
        const processes = [
          await startProcess(store, luck),
          await startProcess(store, luck),
        ] as const;
        let areHintsLost = false;
        const tell: StoredListener = (...hint) => {
          for (const { hints } of processes) if (!areHintsLost) hints.add(...hint);
        };
        store.onStored(tell);
        // Notifications are written by the first process; the second one hears of them.
        const writer = new NotificationWriter({
          store,
          queueMax: 1_000,
          onStored: ({ notification }) => processes[0].hub.deliver(notification),
        });
        const expected = new Map<string, number[]>(USERS.map((user) => [user, []]));
        const writing: Promise<unknown>[] = [];
        const put = (userId: string, isLive: boolean): void => {
          const channels = isLive ? [LIVE_CHANNEL] : [WEBHOOK];
          const request = newNotification({ tenantId: 'acme', userId }, { channels });
          writing.push(
            writer.write(request).then(({ notification }) => {
              if (isLive) expected.get(userId)?.push(notification.sequence);
            }),
          );
        };
        const devices = Array.from(
          { length: DEVICES },
          (_, i) => new Device(USERS[i % USERS.length] ?? ''),
        );
        try {
          for (const one of steps) {
            if (one.kind === 'put') put(one.user, one.isLive);
            else if (one.kind === 'connect')
              await devices[one.device]?.connect(processes[one.process === 0 ? 0 : 1]);
            else if (one.kind === 'disconnect') devices[one.device]?.disconnect();
            else if (one.kind === 'pause') await pause(one.ms);
            else if (one.kind === 'mark') {
              const user = { tenantId: 'acme', userId: one.user };
              writing.push(store.markRead(user, { upToSequence: one.upToSequence }, T0));
            } else areHintsLost = true;
          }
          for (const device of devices) await device.connect(processes[1]);
          // A stream without a place begins at what is there when the store is asked, which takes a while.
          await poll(() => devices.every((device) => device.hasBegun())).toBe(true);
          // Nothing but a look at the store finds these.
          for (const userId of USERS) {
            await store.markRead({ tenantId: 'acme', userId }, { upToSequence: 5 }, T0);
          }
          areHintsLost = false;
          for (const { hints } of processes) hints.add(null, 0, 0);
          // The last of each user: whatever came twice or late came before it.
          for (const user of USERS) put(user, true);
          await Promise.all(writing);
          const isDone = (): boolean =>
            devices.every((device) => device.look().at(-1) === expected.get(device.userId)?.at(-1));
          await poll(isDone).toBe(true);
          const states = await Promise.all(
            devices.map(({ userId }) => store.bounds({ tenantId: 'acme', userId })),
          );
          await poll(() => devices.map((device) => device.badge())).toEqual(
            states.map(({ unreadCount, reads }) => ({ unreadCount, reads })),
          );
          for (const device of devices) {
            const start = device.start ?? Number.NaN;
            expect(device.came).toEqual(
              expected.get(device.userId)?.filter((sequence) => sequence > start),
            );
          }
          for (const { lines, figures } of processes) {
            const failed = lines.filter(({ msg }) => msg === 'retry_failed');
            expect(failed.length).toBe(figures.failures);
            for (const line of failed) {
              expect(line).toEqual({
                level: 'warn',
                time: expect.any(String),
                msg: 'retry_failed',
                key: 'stream_catch_up',
                connection_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
                attempt: expect.any(Number),
                error: 'the database is not available',
                tenant_id: 'acme',
                user_id: expect.any(String),
              });
            }
          }
        } finally {
          for (const device of devices) device.disconnect();
          for (const process of processes) await process.stop();
        }
      },
    );
    await fc.assert(property, { numRuns: byLength(8, 60), endOnFailure: true });
  },
);

inShort(test)(
  'what a new stream finds in the store reaches the other streams of the user, without any hint',
  async () => {
    const store = await emptyStore();
    const process = await startProcess(store, { delaysMs: [0], fails: [false] });
    const first = new Device('ann');
    const second = new Device('ann');
    await first.connect(process);
    await poll(() => first.hasBegun()).toBe(true);
    // As another process does whose hint is late.
    await store.put([newNotification({ tenantId: 'acme', userId: 'ann' })]);
    await second.connect(process);
    await poll(() => first.look()).toEqual([1]);
    await poll(() => second.hasBegun()).toBe(true);
    expect([second.start, second.came]).toEqual([1, []]);
    first.disconnect();
    second.disconnect();
    await process.stop();
  },
);

inShort(test)(
  'many streams of one user cost one read when another process stored something',
  async () => {
    const store = await emptyStore();
    const process = await startProcess(store, { delaysMs: [5], fails: [false] });
    const devices = Array.from({ length: 20 }, () => new Device('ann'));
    for (const device of devices) await device.connect(process);
    await poll(() => devices.every((device) => device.hasBegun())).toBe(true);
    await store.put([newNotification(ANN), newNotification(ANN)]);
    process.hub.hint(ANN, 2, 0);
    await poll(() => devices.map((device) => device.look())).toEqual(devices.map(() => [1, 2]));
    expect(process.figures.pages).toBe(1);
    for (const device of devices) device.disconnect();
    await process.stop();
  },
);

inShort(test)('many streams that come back at once share what each of them missed', async () => {
  const store = await emptyStore();
  const process = await startProcess(store, { delaysMs: [50], fails: [false] });
  await store.put(Array.from({ length: 20 }, () => newNotification(ANN)));
  const places = Array.from({ length: 20 }, (_, i) => (i < 10 ? 3 : 5));
  const devices = places.map((place) => new Device('ann', place));
  await Promise.all(devices.map((device) => device.connect(process)));
  const all = Array.from({ length: 20 }, (_, i) => i + 1);
  const missed = places.map((place) => all.slice(place));
  await poll(() => devices.map((device) => device.look())).toEqual(missed);
  // Bounds: the first stream's, and those of all that came meanwhile. Pages: three of eight for the first
  // stream, for the others, and for those of them at 5 when they come before any at 3.
  expect(process.figures.bounds).toBeLessThanOrEqual(4);
  expect(process.figures.pages).toBeLessThanOrEqual(9);
  for (const device of devices) device.disconnect();
  await process.stop();
});
