import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimRequest, Settlement } from '../../src/notify/model/delivery.ts';
import type { NotificationStore } from '../../src/notify/model/notification-store.ts';
import {
  type DueDelivery,
  type Endpoint,
  type NewNotification,
  LIVE_CHANNEL,
  type UserKey,
} from '../../src/notify/model/notification.ts';
import { IdSource } from '../../src/shared/ids.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

/** Of notify.v1.Channel. */
export const WEBHOOK = 2;
const EMAIL = 3;

export const ANN: UserKey = { tenantId: 'acme', userId: 'ann' };
const OF_ANN = { ...ANN, channels: [LIVE_CHANNEL, WEBHOOK, EMAIL], unreadOnly: false };
const BOB: UserKey = { tenantId: 'acme', userId: 'bob' };
export const T0 = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

const idSource = new IdSource(systemClock);

export function newNotification(
  user: UserKey,
  given: Partial<NewNotification> = {},
): NewNotification {
  return {
    ...user,
    id: idSource.uuid(),
    title: 'Build passed',
    body: 'All of it.\nReally — ünïcode 🎉 "quoted" \\ back',
    data: { link: 'https://example.test/1', nested: { deep: [1, null, true, 'x'] } },
    channels: [LIVE_CHANNEL],
    dedupeKey: '',
    createdAtMs: T0,
    ...given,
  };
}

export const hook = (given: Partial<Endpoint> = {}): Endpoint => ({
  tenantId: 'acme',
  id: 'hook',
  userId: '',
  channel: WEBHOOK,
  address: 'https://example.test/hook',
  ...given,
});

/** A claim of one channel for whom nothing is in progress. One tenant gets half of the places. */
export const claimRequest = (given: Partial<ClaimRequest> = {}): ClaimRequest => ({
  channel: WEBHOOK,
  nowMs: T0,
  leaseMs: 60_000,
  places: 100,
  perTenantMax: 1_000,
  perEndpointMax: 1_000,
  visitMax: 4,
  busy: [],
  afterTenant: '',
  ...given,
});

/** How an attempt ended. */
export const settlementOf = (
  notificationId: string,
  endpointId: string,
  status: Settlement['status'],
  given: Partial<Settlement & { error: string }> = {},
): Settlement => {
  const { error = status === 'sent' ? '' : 'HTTP 503', ...rest } = given;
  const outcome = status === 'pending' ? 'failed' : status;
  return {
    notificationId,
    endpointId,
    tenantId: 'acme',
    status,
    attempts: 1,
    nextAttemptMs: status === 'pending' ? T0 + 500 : null,
    attempt: { atMs: T0, outcome, answerStatus: 503, tookMs: 7, error, answer: 'try later' },
    ...rest,
  };
};

/** What every driver of the store must do, whatever it keeps things in. */
export function describeStore(name: string, open: () => Promise<NotificationStore>): void {
  describe(`${name} store`, () => {
    let store: NotificationStore;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const put = async (...batch: NewNotification[]) => await store.put(batch);
    /** Of both channels, as many of one tenant as `limit`. */
    const claim = async (nowMs: number, leaseMs: number, limit: number): Promise<DueDelivery[]> => {
      const found: DueDelivery[] = [];
      for (const channel of [WEBHOOK, EMAIL]) {
        const places = 2 * (limit - found.length);
        const request = claimRequest({ channel, nowMs, leaseMs, places });
        found.push(...(await store.claimDue(request)).deliveries);
      }
      return found;
    };
    const sequencesOf = (found: readonly { sequence: number }[]) => found.map((n) => n.sequence);

    test('numbers the notifications of each user from 1, without gaps, in the order of the batch', async () => {
      const results = await put(
        newNotification(BOB),
        newNotification(ANN),
        newNotification(BOB),
        newNotification({ tenantId: 'other', userId: 'ann' }),
      );
      expect(results.map((r) => [r.notification.userId, r.notification.sequence])).toEqual([
        ['bob', 1],
        ['ann', 1],
        ['bob', 2],
        ['ann', 1],
      ]);
      const [again] = await put(newNotification(BOB));
      expect(again?.notification.sequence).toBe(3);
    });

    test('gives back exactly what was put', async () => {
      const request = newNotification(ANN, { channels: [LIVE_CHANNEL, WEBHOOK, EMAIL] });
      const [result] = await put(request);
      const { dedupeKey: _dedupeKey, ...rest } = request;
      const expected = { ...rest, sequence: 1, readAtMs: null, deliveries: [] };
      expect(result).toEqual({ notification: expected, isDuplicate: false });
      const query = { ...OF_ANN, limit: 10, beforeSequence: Infinity };
      expect(await store.list(query)).toEqual([expected]);
      const [bare] = await put(newNotification(ANN, { data: null, body: '' }));
      expect((await store.list(query))[0]).toEqual(bare?.notification);
    });

    test('stores a dedupe key once a user, also within a batch, and answers with the first', async () => {
      const first = newNotification(ANN, { dedupeKey: 'build-1' });
      const results = await put(
        first,
        newNotification(ANN, { dedupeKey: 'build-1', title: 'again' }),
        newNotification(BOB, { dedupeKey: 'build-1' }),
        newNotification(ANN, { dedupeKey: 'build-2' }),
      );
      expect(results.map((r) => [r.isDuplicate, r.notification.sequence])).toEqual([
        [false, 1],
        [true, 1],
        [false, 1],
        [false, 2],
      ]);
      expect(results[1]?.notification.id).toBe(first.id);
      const [late] = await put(newNotification(ANN, { dedupeKey: 'build-1' }));
      expect([late?.isDuplicate, late?.notification.title]).toEqual([true, 'Build passed']);
      expect(await store.unreadCount(ANN, [LIVE_CHANNEL])).toBe(2);
      expect(await store.bounds(ANN)).toMatchObject({ head: 2, oldest: 1 });
    });

    test('numbers what concurrent callers put without gaps or repeats', async () => {
      const calls = Array.from({ length: 40 }, (_, i) =>
        put(newNotification(i % 2 === 0 ? ANN : BOB), newNotification(i % 3 === 0 ? ANN : BOB)),
      );
      const results = (await Promise.all(calls)).flat();
      for (const user of [ANN, BOB]) {
        const own = results.filter((r) => r.notification.userId === user.userId);
        const sequences = sequencesOf(own.map((r) => r.notification)).sort((a, b) => a - b);
        expect(sequences).toEqual(own.map((_, i) => i + 1));
      }
    });

    test('lists newest first, in pages, and only the unread when asked', async () => {
      const results = await put(...Array.from({ length: 5 }, () => newNotification(ANN)));
      await put(newNotification(BOB));
      const page = (beforeSequence: number, unreadOnly = false) =>
        store.list({ ...OF_ANN, unreadOnly, limit: 2, beforeSequence }).then(sequencesOf);
      expect(await page(Infinity)).toEqual([5, 4]);
      expect(await page(4)).toEqual([3, 2]);
      expect(await page(2)).toEqual([1]);
      await store.markRead(ANN, { ids: [results[4]?.notification.id ?? ''] }, T0 + 5);
      expect(await page(Infinity, true)).toEqual([4, 3]);
      expect(await store.list({ ...OF_ANN, limit: 1, beforeSequence: 6 })).toMatchObject([
        { sequence: 5, readAtMs: T0 + 5 },
      ]);
    });

    test('replays what the live channel missed, and nothing of other channels', async () => {
      await put(
        newNotification(ANN),
        newNotification(ANN, { channels: [EMAIL] }),
        newNotification(ANN, { channels: [LIVE_CHANNEL, EMAIL] }),
        newNotification(ANN),
      );
      expect(sequencesOf(await store.liveAfter(ANN, 0, 10))).toEqual([1, 3, 4]);
      expect(sequencesOf(await store.liveAfter(ANN, 1, 1))).toEqual([3]);
      expect(await store.liveAfter(ANN, 4, 10)).toEqual([]);
      expect(await store.liveAfter({ tenantId: 'acme', userId: 'nobody' }, 0, 10)).toEqual([]);
    });

    test('marks as read once, by id or up to a sequence, all or nothing', async () => {
      const results = await put(...Array.from({ length: 4 }, () => newNotification(ANN)));
      const ids = results.map((r) => r.notification.id);
      const [foreign] = await put(newNotification(BOB));
      const unknown = [ids[0] ?? '', foreign?.notification.id ?? ''];
      await expect(store.markRead(ANN, { ids: unknown }, T0)).rejects.toMatchObject({
        reason: 'NOTIFICATION_UNKNOWN',
        metadata: { id: unknown[1] },
      });
      await expect(store.markRead(ANN, { ids: ['no uuid'] }, T0)).rejects.toMatchObject({
        reason: 'NOTIFICATION_UNKNOWN',
      });
      expect(await store.unreadCount(ANN, [LIVE_CHANNEL])).toBe(4);
      const twice = [ids[1] ?? '', ids[1] ?? ''];
      expect(await store.markRead(ANN, { ids: twice }, T0 + 1)).toEqual({
        head: 4,
        reads: 1,
        markedCount: 1,
        unreadCount: 3,
      });
      expect(await store.markRead(ANN, { upToSequence: 3 }, T0 + 2)).toEqual({
        head: 4,
        reads: 2,
        markedCount: 2,
        unreadCount: 1,
      });
      const all = await store.list({ ...OF_ANN, limit: 9, beforeSequence: 99 });
      expect(all.map((n) => n.readAtMs)).toEqual([null, T0 + 2, T0 + 1, T0 + 2]);
      expect(await store.markRead({ tenantId: 'x', userId: 'y' }, { upToSequence: 9 }, T0)).toEqual(
        { head: 0, reads: 0, markedCount: 0, unreadCount: 0 },
      );
    });

    test('makes a delivery for each endpoint that a notification reaches', async () => {
      await store.putEndpoint(hook(), 'secret of the tenant');
      await store.putEndpoint(hook({ id: 'ann-hook', userId: 'ann' }), 'secret of ann');
      await store.putEndpoint(hook({ id: 'bob-hook', userId: 'bob' }), 's');
      await store.putEndpoint(
        hook({ id: 'mail', userId: 'ann', channel: EMAIL, address: 'ann@example.test' }),
        undefined,
      );
      await store.putEndpoint(hook({ tenantId: 'other' }), 's');
      const [both] = await put(newNotification(ANN, { channels: [WEBHOOK, EMAIL] }));
      const pending = { status: 'pending', attempts: 0, lastError: '' };
      expect(both?.notification.deliveries).toEqual([
        { ...pending, channel: WEBHOOK, endpointId: 'ann-hook' },
        { ...pending, channel: WEBHOOK, endpointId: 'hook' },
        { ...pending, channel: EMAIL, endpointId: 'mail' },
      ]);
      const [live] = await put(newNotification(ANN));
      expect(live?.notification.deliveries).toEqual([]);
      const due = await claim(T0, 1_000, 10);
      const told = due.map((d) => `${d.endpoint.id}: ${d.signingSecrets.join()}, ${d.attempts}`);
      expect(told.sort()).toEqual([
        'ann-hook: secret of ann, 0',
        'hook: secret of the tenant, 0',
        'mail: , 0',
      ]);
      const { deliveries: _deliveries, ...notification } = both?.notification ?? { deliveries: [] };
      expect(due[0]?.notification).toEqual(notification);
    });

    test('leases what it hands out, and hands it out again when the lease is over', async () => {
      await store.putEndpoint(hook(), 's');
      await put(newNotification(ANN, { channels: [WEBHOOK] }));
      expect(await claim(T0 - 1, 1_000, 10)).toEqual([]);
      expect(await claim(T0, 1_000, 10)).toHaveLength(1);
      expect(await claim(T0 + 999, 1_000, 10)).toEqual([]);
      expect(await store.nextDueMs(WEBHOOK)).toBe(T0 + 1_000);
      expect(await claim(T0 + 1_000, 1_000, 10)).toHaveLength(1);
    });

    test('hands each delivery to one of several claimers', async () => {
      await store.putEndpoint(hook(), 's');
      await put(...Array.from({ length: 30 }, () => newNotification(ANN, { channels: [WEBHOOK] })));
      const claims = await Promise.all(Array.from({ length: 6 }, () => claim(T0, 60_000, 8)));
      const ids = claims.flat().map((d) => d.notification.id);
      expect(new Set(ids).size).toBe(ids.length);
      const rest = await claim(T0, 60_000, 100);
      expect(ids.length + rest.length).toBe(30);
    });

    test('claims of one channel, within the bounds of tenants and endpoints', async () => {
      for (const id of ['a', 'b', 'c']) await store.putEndpoint(hook({ id }), 's');
      const mail = { channel: EMAIL, userId: 'ann', address: 'ann@example.test' } as const;
      await store.putEndpoint(hook({ id: 'mail', ...mail }), undefined);
      const channels = [WEBHOOK, EMAIL] as const;
      await put(...Array.from({ length: 5 }, () => newNotification(ANN, { channels })));
      const busy = [
        { tenantId: 'acme', count: 2, afterEndpoint: 'b', endpoints: new Map([['b', 2]]) },
      ];
      const claimed = async (given: Partial<ClaimRequest>) =>
        (await store.claimDue(claimRequest(given))).deliveries.map(({ endpoint }) => endpoint.id);
      expect((await claimed({ perEndpointMax: 2, busy })).sort()).toEqual(['a', 'a', 'c', 'c']);
      expect(await claimed({ perTenantMax: 5, busy })).toHaveLength(3);
      // No more than half of what is left.
      expect(await claimed({ places: 4 })).toHaveLength(2);
      const rest = [...(await claimed({})), ...(await claimed({ channel: EMAIL }))];
      expect(rest.filter((id) => id === 'mail')).toHaveLength(5);
      expect(rest).toHaveLength(15 - 9 + 5);
      expect(await store.nextDueMs(EMAIL)).toBe(T0 + 60_000);
    });

    test('goes round tenants, and round the endpoints of each', async () => {
      for (const tenantId of ['busy', 'loud', 'quiet']) {
        for (const id of ['a', 'b']) await store.putEndpoint(hook({ tenantId, id }), 's');
      }
      const of = (tenantId: string, count: number) =>
        Array.from({ length: count }, () =>
          newNotification({ tenantId, userId: 'u' }, { channels: [WEBHOOK] }),
        );
      await put(...of('busy', 50), ...of('loud', 50), ...of('quiet', 1));
      const first = await store.claimDue(claimRequest({ places: 12, visitMax: 2 }));
      const countOf = (text: string): number =>
        first.deliveries.filter(({ endpoint }) =>
          `${endpoint.tenantId}/${endpoint.id}`.includes(text),
        ).length;
      // All of the quiet one; of the others as much as is left, in turns.
      expect(countOf('quiet')).toBe(2);
      expect(countOf('busy') + countOf('loud')).toBe(7);
      expect(Math.abs(countOf('busy') - countOf('loud'))).toBe(1);
      for (const tenantId of ['busy', 'loud']) {
        expect(Math.abs(countOf(`${tenantId}/a`) - countOf(`${tenantId}/b`))).toBeLessThan(2);
      }
    });

    test('goes on with the tenant after the one that was served last', async () => {
      const tenants = ['a', 'b', 'c', 'd'];
      for (const tenantId of tenants) await store.putEndpoint(hook({ tenantId }), 's');
      for (const tenantId of tenants) {
        const user = { tenantId, userId: 'u' };
        await put(
          ...Array.from({ length: 9 }, () => newNotification(user, { channels: [WEBHOOK] })),
        );
      }
      const turns: string[] = [];
      let afterTenant = '';
      for (let i = 0; i < 8; i++) {
        const claimed = await store.claimDue(claimRequest({ places: 1, visitMax: 1, afterTenant }));
        ({ afterTenant } = claimed);
        turns.push(...claimed.deliveries.map(({ endpoint }) => endpoint.tenantId));
      }
      expect(turns).toHaveLength(8);
      expect(turns.slice(0, 4).sort()).toEqual(tenants);
      expect(turns.slice(4)).toEqual(turns.slice(0, 4));
    });

    test('keeps how a delivery went, and does not try a settled one again', async () => {
      await store.putEndpoint(hook({ id: 'a' }), 's');
      await store.putEndpoint(hook({ id: 'b' }), 's');
      const [result] = await put(newNotification(ANN, { channels: [WEBHOOK] }));
      const id = result?.notification.id ?? '';
      await claim(T0, 60_000, 10);
      await store.settle(
        [settlementOf(id, 'a', 'pending'), settlementOf(id, 'b', 'sent')],
        T0,
        null,
      );
      expect(await store.backlog(T0 + 700)).toEqual({ pending: 1, oldestDueMs: 200 });
      const [again] = await claim(T0 + 500, 1_000, 10);
      expect([again?.endpoint.id, again?.attempts]).toEqual(['a', 1]);
      const dead = settlementOf(id, 'a', 'dead', { attempts: 2, error: 'HTTP 410' });
      await store.settle([dead], T0 + 600, null);
      await store.settle([settlementOf(id, 'a', 'sent', { attempts: 3 })], T0 + 600, null);
      expect(await claim(T0 + 9_999, 1, 10)).toEqual([]);
      expect(await store.backlog(T0 + 700)).toEqual({ pending: 0, oldestDueMs: 0 });
      const [stored] = await store.list({ ...OF_ANN, limit: 1, beforeSequence: 9 });
      expect(stored?.deliveries).toEqual([
        { channel: WEBHOOK, endpointId: 'a', status: 'dead', attempts: 2, lastError: 'HTTP 410' },
        { channel: WEBHOOK, endpointId: 'b', status: 'sent', attempts: 1, lastError: '' },
      ]);
    });

    test('loses nothing that is stored while it claims', async () => {
      await store.putEndpoint(hook(), 's');
      let count = 0;
      for (let i = 0; i < 60; i++) {
        const [found] = await Promise.all([
          claim(T0, 600_000, 10),
          put(newNotification(ANN, { channels: [WEBHOOK] })),
        ]);
        count += found.length;
      }
      count += (await claim(T0, 600_000, 100)).length;
      expect(count).toBe(60);
    });

    test('what was claimed in vain is due again at once', async () => {
      await store.putEndpoint(hook(), 's');
      await put(newNotification(ANN, { channels: [WEBHOOK] }));
      const claimed = await claim(T0, 60_000, 10);
      const keys = claimed.map(({ notification, endpoint }) => ({
        notificationId: notification.id,
        endpointId: endpoint.id,
      }));
      expect(await claim(T0 + 1, 1, 10)).toEqual([]);
      await store.release(keys, T0 + 1);
      expect(await claim(T0 + 1, 1, 10)).toHaveLength(1);
    });

    test('replaces endpoints, keeps the secret unless given a new one, and never lists it', async () => {
      await store.putEndpoint(hook(), 'first secret');
      await store.putEndpoint(hook({ address: 'https://example.test/other' }), undefined);
      expect(await store.listEndpoints('acme')).toEqual([
        hook({ address: 'https://example.test/other' }),
      ]);
      expect(await store.hasSigningSecret('acme', 'hook')).toBe(true);
      expect(await store.hasSigningSecret('acme', 'none')).toBe(false);
      await put(newNotification(ANN, { channels: [WEBHOOK] }));
      expect((await claim(T0, 1, 1))[0]?.signingSecrets).toEqual(['first secret']);
    });

    test('gives up what waits for an endpoint that is removed', async () => {
      await store.putEndpoint(hook(), 's');
      await put(newNotification(ANN, { channels: [WEBHOOK] }));
      expect(await store.deleteEndpoint('acme', 'hook')).toBe(true);
      expect(await store.deleteEndpoint('acme', 'hook')).toBe(false);
      expect(await claim(T0 + 9_999, 1, 1)).toEqual([]);
      const [stored] = await store.list({ ...OF_ANN, limit: 1, beforeSequence: 9 });
      expect(stored?.deliveries[0]?.status).toBe('dead');
    });

    test('forgets what is old, and never gives its numbers again', async () => {
      await store.putEndpoint(hook(), 's');
      await put(
        newNotification(ANN, {
          createdAtMs: T0,
          channels: [LIVE_CHANNEL, WEBHOOK],
          dedupeKey: 'k',
        }),
        newNotification(ANN, { createdAtMs: T0 + 1 }),
        newNotification(ANN, { createdAtMs: T0 + 2 }),
      );
      expect(await store.purge(T0 + 2, 1)).toBe(1);
      expect(await store.purge(T0 + 2, 10)).toBe(1);
      expect(await store.purge(T0 + 2, 10)).toBe(0);
      expect(await store.bounds(ANN)).toMatchObject({ head: 3, oldest: 3 });
      expect(await store.unreadCount(ANN, [LIVE_CHANNEL])).toBe(1);
      expect((await store.backlog(T0)).pending).toBe(0);
      const [next] = await put(newNotification(ANN, { dedupeKey: 'k', createdAtMs: T0 + 3 }));
      expect([next?.isDuplicate, next?.notification.sequence]).toEqual([false, 4]);
      expect(sequencesOf(await store.liveAfter(ANN, 0, 9))).toEqual([3, 4]);
      expect(await store.purge(T0 + 99, 10)).toBe(2);
      expect(await store.bounds(ANN)).toMatchObject({ head: 4, oldest: 5 });
    });
  });
}
