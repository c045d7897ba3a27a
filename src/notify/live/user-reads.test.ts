import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ANN, newNotification, WEBHOOK } from '../../../test/notify/store-contract.ts';
import type { NotificationStore, StreamBounds } from '../model/notification-store.ts';
import { LIVE_CHANNEL, type NewNotification, type Notification } from '../model/notification.ts';
import { UserReads } from './user-reads.ts';

const PAGE = 4;

/** What one user has, for the two reads that streams make of a store. */
class UserLog implements Pick<NotificationStore, 'bounds' | 'liveAfter'> {
  readonly #all: Notification[] = [];

  add(request: NewNotification): void {
    const sequence = this.#all.length + 1;
    this.#all.push({ ...request, sequence, readAtMs: null, deliveries: [] });
  }

  bounds(): Promise<StreamBounds> {
    const head = this.#all.length;
    return Promise.resolve({ head, oldest: 1, unreadCount: head, reads: 0 });
  }

  liveAfter(_user: object, after: number, limit: number): Promise<readonly Notification[]> {
    const isMissed = (one: Notification): boolean =>
      one.sequence > after && one.channels.includes(LIVE_CHANNEL);
    return Promise.resolve(this.#all.filter(isMissed).slice(0, limit));
  }
}

/** Reads of a store whose answers are as old as the test decides: each waits for two turns. */
function held(store: UserLog) {
  const waiting: (() => void)[] = [];
  const figures = { bounds: 0, pages: 0 };
  const turn = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
  const slowly = async <T>(read: () => Promise<T>): Promise<T> => {
    await turn();
    const value = await read();
    await turn();
    return value;
  };
  const reads = new UserReads({
    store: {
      bounds: () => {
        figures.bounds += 1;
        return slowly(() => store.bounds());
      },
      liveAfter: (user, sequence, limit) => {
        figures.pages += 1;
        return slowly(() => store.liveAfter(user, sequence, limit));
      },
    },
    user: ANN,
    pageSize: PAGE,
    retried: (read) => read(),
  });
  /** Lets one of the reads in flight go on; false when there is none. */
  const goOn = async (which = 0): Promise<boolean> => {
    const [resolve] = waiting.splice(which % Math.max(1, waiting.length), 1);
    resolve?.();
    await new Promise((settled) => setImmediate(settled));
    return resolve !== undefined;
  };
  const finish = async (): Promise<void> => {
    while (await goOn());
  };
  return { reads, figures, goOn, finish };
}

const put = (store: UserLog, isLive = true) =>
  store.add(newNotification(ANN, { channels: isLive ? [LIVE_CHANNEL] : [WEBHOOK] }));

test('a page in flight serves every position that it is certain to bring further, and no other', async () => {
  const store = new UserLog();
  for (let i = 0; i < 9; i++) put(store);
  const { reads, figures, finish } = held(store);
  const first = reads.pageAfter(2, 9);
  expect([reads.pageAfter(2, 9), reads.pageAfter(5, 9)]).toEqual([first, first]);
  expect(figures.pages).toBe(1);
  // A full page may end at 6; what is below 3 is not in it.
  const higher = reads.pageAfter(6, 9);
  const lower = reads.pageAfter(1, 9);
  expect(figures.pages).toBe(3);
  await finish();
  const shown = (await Promise.all([first, higher, lower])).map((page) => [
    page?.events.map(({ sequence }) => sequence),
    page?.upTo,
  ]);
  expect(shown).toEqual([
    [[3, 4, 5, 6], 6],
    [[7, 8, 9], 9],
    [[2, 3, 4, 5], 5],
  ]);
  void reads.pageAfter(2, 9);
  expect(figures.pages).toBe(4);
});

test('a page that was asked for before a notification was heard of is not trusted with it', async () => {
  const store = new UserLog();
  put(store);
  const { reads, figures, goOn, finish } = held(store);
  const early = reads.pageAfter(0, 1);
  await goOn();
  // The first has read and is on its way back.
  put(store);
  const late = reads.pageAfter(1, 2);
  expect(figures.pages).toBe(2);
  await finish();
  expect((await early)?.upTo).toBe(1);
  expect((await late)?.events.map(({ sequence }) => sequence)).toEqual([2]);
});

test('bounds are read after they were asked for, once for all who asked meanwhile', async () => {
  const store = new UserLog();
  const { reads, figures, goOn, finish } = held(store);
  const first = [reads.bounds(), reads.bounds()];
  await goOn();
  await goOn();
  put(store);
  const later = [reads.bounds(), reads.bounds(), reads.bounds()];
  await finish();
  expect((await Promise.all(first)).map((bounds) => bounds?.head)).toEqual([0, 0]);
  expect((await Promise.all(later)).map((bounds) => bounds?.head)).toEqual([1, 1, 1]);
  expect(figures.bounds).toBe(2);
});

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('put' as const), isLive: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('open' as const), back: fc.nat(12) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('go on' as const), which: fc.nat(9) }) },
);

test('every stream sees every id after its cursor once and in order, whoever reads for it', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 60, size: 'max' }),
    async (steps) => {
      const store = new UserLog();
      const { reads, goOn, finish } = held(store);
      const live: number[] = [];
      let head = 0;
      const follow = async (start: number) => {
        const came: number[] = [];
        let position = start;
        while (position < head) {
          const page = await reads.pageAfter(position, head);
          if (page === undefined) throw new Error('a page was given up');
          expect(page.upTo).toBeGreaterThan(position);
          for (const { sequence } of page.events) if (sequence > position) came.push(sequence);
          position = page.upTo;
        }
        return { start, came, end: position };
      };
      const streams: ReturnType<typeof follow>[] = [];
      for (const one of steps) {
        if (one.kind === 'put') {
          put(store, one.isLive);
          head += 1;
          if (one.isLive) live.push(head);
        } else if (one.kind === 'open') {
          streams.push(follow(Math.max(0, head - one.back)));
        } else {
          await goOn(one.which);
        }
      }
      await finish();
      for (const { start, came, end } of await Promise.all(streams)) {
        expect(came).toEqual(live.filter((sequence) => sequence > start && sequence <= end));
      }
    },
  );
  await fc.assert(property, { numRuns: 300 });
});
