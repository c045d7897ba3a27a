import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHttpServer } from '../../src/http/http-server.ts';
import { createNotifyLog } from '../../src/notify/event-log.ts';
import { addClientRoutes } from '../../src/notify/live/client-routes.ts';
import { DelayedHints } from '../../src/notify/live/delayed-hints.ts';
import { LiveHub } from '../../src/notify/live/live-hub.ts';
import { StreamTokens } from '../../src/notify/live/stream-token.ts';
import { createNotifyMetrics } from '../../src/notify/metrics.ts';
import type {
  NotificationStore,
  StoredListener,
} from '../../src/notify/model/notification-store.ts';
import { NotificationWriter } from '../../src/notify/service/notification-writer.ts';
import { MemoryStore } from '../../src/notify/store/memory-store.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { IdSource } from '../../src/shared/ids.ts';
import { EventClient } from '../support/event-client.ts';
import { newNotification } from './store-contract.ts';
import { poll } from './support/poll.ts';

const USERS = ['ann', 'bob'] as const;
const DEVICES = 5;

/** What chance decides about the store: how long each read takes, and whether it fails. */
type Chance = { readonly delaysMs: readonly number[]; readonly fails: readonly boolean[] };

/** `store` with reads that take their time and sometimes fail; `failures` counts those. */
function unreliable(store: NotificationStore, { delaysMs, fails }: Chance) {
  let index = 0;
  const figures = { failures: 0 };
  const slowly = async <T>(read: () => Promise<T>): Promise<T> => {
    const turn = index++;
    // Before as well as after: an answer may be old news when it comes.
    await pause(delaysMs[turn % delaysMs.length] ?? 0);
    if (fails[turn % fails.length] === true) {
      figures.failures += 1;
      throw new AppError('STORE_UNAVAILABLE', 'the database is not available');
    }
    const value = await read();
    await pause(delaysMs[(turn + 1) % delaysMs.length] ?? 0);
    return value;
  };
  const reads: Pick<NotificationStore, 'bounds' | 'liveAfter'> = {
    bounds: (user) => slowly(() => store.bounds(user)),
    liveAfter: (user, sequence, limit) => slowly(() => store.liveAfter(user, sequence, limit)),
  };
  return { reads, figures };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One process' part for streams, on a store that it shares. */
async function startProcess(store: NotificationStore, chance: Chance) {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger('info', {
    write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>),
  });
  const log = createNotifyLog(logger);
  const metrics = createNotifyMetrics('1', 'test');
  const { reads, figures } = unreliable(store, chance);
  const hub = new LiveHub({
    store: reads,
    metrics,
    log,
    connectionsMax: 100,
    connectionsPerUserMax: 100,
    heartbeatMs: 600_000,
    bufferEventsMax: 8,
  });
  const hints = new DelayedHints(1, (user, sequence) => hub.hint(user, sequence));
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  const tokens = new StreamTokens('a secret of the test');
  addClientRoutes({
    server,
    hub,
    tokens,
    clock: systemClock,
    ids: new IdSource(systemClock),
    metrics,
    log,
    allowedOrigins: ['*'],
    bufferEventsMax: 8,
    isLive: true,
    isClosing: () => false,
  });
  const { port } = await server.listen();
  const urlOf = (userId: string): string => {
    const grant = { tenantId: 'acme', userId, deviceType: 'web' as const };
    const token = tokens.create({ ...grant, expiresAtMs: systemClock.nowMs() + 600_000 });
    return `http://127.0.0.1:${port}/v1/stream?access_token=${token}`;
  };
  const stop = async (): Promise<void> => {
    hub.close();
    hints.close();
    await server.stop(1_000);
  };
  return { hub, hints, lines, figures, urlOf, stop };
}

type Process = Awaited<ReturnType<typeof startProcess>>;

/** A device that reconnects with the last id it saw, to whichever process. */
class Device {
  readonly userId: string;
  readonly came: number[] = [];
  start: number | undefined;
  #lastId = '';
  #client: EventClient | undefined;
  #seen = 0;

  constructor(userId: string) {
    this.userId = userId;
  }

  async connect(process: Process): Promise<void> {
    this.disconnect();
    const headers: Record<string, string> =
      this.#lastId === '' ? {} : { 'last-event-id': this.#lastId };
    this.#client = await EventClient.open(process.urlOf(this.userId), headers);
    this.#seen = 0;
  }

  disconnect(): void {
    this.look();
    this.#client?.close();
    this.#client = undefined;
  }

  hasBegun(): boolean {
    this.look();
    return this.start !== undefined;
  }

  /** Takes over what has come. */
  look(): readonly number[] {
    const events = this.#client?.events ?? [];
    for (; this.#seen < events.length; this.#seen++) {
      const { id, event } = events[this.#seen] as (typeof events)[number];
      if (id !== '') this.#lastId = id;
      if (event === 'open') this.start ??= Number(id);
      else this.came.push(event === 'notification' ? Number(id) : Number.NaN);
    }
    return this.came;
  }
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
  'every device gets each live notification once and in order, whatever interleaves',
  { timeout: 120_000 },
  async () => {
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      chance,
      async (steps, luck) => {
        const store = new MemoryStore();
        const processes = [
          await startProcess(store, luck),
          await startProcess(store, luck),
        ] as const;
        let areHintsLost = false;
        const tell: StoredListener = (user, sequence) => {
          for (const { hints } of processes) if (!areHintsLost) hints.add(user, sequence);
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
          const channels = isLive ? (['live'] as const) : (['webhook'] as const);
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
            else areHintsLost = true;
          }
          for (const device of devices) await device.connect(processes[1]);
          // A stream without a place begins at what is there when the store is asked, which takes a while.
          await poll(() => devices.every((device) => device.hasBegun())).toBe(true);
          areHintsLost = false;
          for (const { hints } of processes) hints.add(null, 0);
          // The last of each user: whatever came twice or late came before it.
          for (const user of USERS) put(user, true);
          await Promise.all(writing);
          const isDone = (): boolean =>
            devices.every((device) => device.look().at(-1) === expected.get(device.userId)?.at(-1));
          await poll(isDone).toBe(true);
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
              });
            }
          }
        } finally {
          for (const device of devices) device.disconnect();
          for (const process of processes) await process.stop();
        }
      },
    );
    await fc.assert(property, { numRuns: 30, endOnFailure: true });
  },
);

test('what a new stream finds in the store reaches the other streams of the user, without any hint', async () => {
  const store = new MemoryStore();
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
});
