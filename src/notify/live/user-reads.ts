import { encodeSseEvent } from '../../http/exchange/sse-event.ts';
import type { NotificationStore, StreamBounds } from '../model/notification-store.ts';
import type { UserKey, Notification } from '../model/notification.ts';

/** The wire form of a notification on a stream. O(its text), allocates. */
export function frameOf(notification: Notification): string {
  const data = JSON.stringify({
    id: notification.id,
    sequence: notification.sequence,
    title: notification.title,
    body: notification.body,
    data: notification.data,
    created_at: new Date(notification.createdAtMs).toISOString(),
    read_at: notification.readAtMs === null ? null : new Date(notification.readAtMs).toISOString(),
  });
  return encodeSseEvent({ id: String(notification.sequence), event: 'notification', data });
}

export type LivePage = {
  /** Oldest first; a stream that stands higher than the read began skips the first of them. */
  readonly events: readonly { readonly sequence: number; readonly frame: string }[];
  /** After the place where the read began, all that is for streams up to here is in `events`. */
  readonly upTo: number;
};

export type UserReadsOptions = {
  readonly store: Pick<NotificationStore, 'liveAfter' | 'bounds'>;
  readonly user: UserKey;
  /** Notifications read at once. */
  readonly pageSize: number;
  /** Tries until it succeeds; undefined once nobody waits for it. Never rejects. */
  readonly retried: <T>(read: () => Promise<T>) => Promise<T | undefined>;
};

/** The positions, from `first` on and below `end`, that a read in flight is certain to bring further. */
type Range = { readonly first: number; readonly end: number };

/**
 * The reads that the streams of one user share, so that many tabs which come back together, or hear of
 * the same notification, cost what one costs.
 *
 * Invariants: I1 a page goes beyond the position it was asked for; I2 of what was committed when it was
 * asked for, a page leaves out nothing between that position and its `upTo`; I3 bounds are as new as the
 * moment they were asked for. (user-reads.test.ts)
 */
export class UserReads {
  readonly #options: UserReadsOptions;
  readonly #pages = new Map<Range, Promise<LivePage | undefined>>();
  #runningBounds: Promise<unknown> = Promise.resolve();
  #nextBounds: Promise<StreamBounds | undefined> | undefined;

  constructor(options: UserReadsOptions) {
    this.#options = options;
  }

  /**
   * What is for streams after `position`, at most a page; `head`, above it, is committed. Joins a read
   * in flight that serves `position`, whoever began it. Undefined when nobody waits for it any more.
   */
  pageAfter(position: number, head: number): Promise<LivePage | undefined> {
    for (const [{ first, end }, page] of this.#pages) {
      if (position >= first && position < end) return page;
    }
    // A full page has as many different sequences after the first; a short one ends at or after the head.
    const range = { first: position, end: Math.min(position + this.#options.pageSize, head) };
    const page = this.#readPage(range, head);
    this.#pages.set(range, page);
    return page;
  }

  /**
   * The user's bounds, from a read that begins after this call: one in flight may be older than what the
   * caller's client has seen, whose place would then look like one of another history. Those who ask
   * while one is in flight share the next. Undefined when nobody waits for it any more.
   */
  bounds(): Promise<StreamBounds | undefined> {
    this.#nextBounds ??= this.#runningBounds.then(() => {
      this.#runningBounds = this.#nextBounds ?? Promise.resolve();
      this.#nextBounds = undefined;
      const { store, user, retried } = this.#options;
      return retried(() => store.bounds(user));
    });
    return this.#nextBounds;
  }

  async #readPage(range: Range, head: number): Promise<LivePage | undefined> {
    const { store, user, pageSize, retried } = this.#options;
    const found = await retried(() => store.liveAfter(user, range.first, pageSize));
    this.#pages.delete(range);
    if (found === undefined) return undefined;
    const events = found.map((one) => ({ sequence: one.sequence, frame: frameOf(one) }));
    const last = found.at(-1)?.sequence ?? range.first;
    // A short page: there is nothing more up to the head, and the last may lie beyond it.
    return { events, upTo: found.length < pageSize ? Math.max(last, head) : last };
  }
}
