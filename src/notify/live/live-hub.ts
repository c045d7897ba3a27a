import { encodeSseEvent } from '../../http/exchange/sse-event.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { NotifyLog } from '../core/event-log.ts';
import { hasFairCapacity } from '../core/notification-writer.ts';
import type { FairGate } from '../core/round-robin-queue.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import {
  DEVICE_TYPES,
  LIVE_CHANNEL,
  type Notification,
  type UserKey,
} from '../model/notification.ts';
import { revokes, type StreamOrder } from '../model/stream-order.ts';
import type { LiveConnection } from './live-connection.ts';
import type { LiveMetrics } from './live-metrics.ts';
import { ReadFollower } from './read-follower.ts';
import { retriedRead } from './retried-read.ts';
import { frameOf } from './user-reads.ts';
import { UserReads } from './user-reads.ts';

export type LiveHubOptions = {
  readonly store: Pick<NotificationStore, 'liveAfter' | 'bounds' | 'readsAfter'>;
  readonly metrics: LiveMetrics;
  readonly log: NotifyLog;
  /** Of reads of the store, by tenant. */
  readonly gate: FairGate;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly connectionsMax: number;
  readonly connectionsPerUserMax: number;
  readonly heartbeatMs: number;
  readonly bufferEventsMax: number;
};

/** The streams of one user in this process. */
type Audience = {
  readonly user: UserKey;
  /** The highest sequence that was heard of; all up to it are committed. */
  head: number;
  readonly connections: Set<LiveConnection>;
  readonly reads: UserReads;
  readonly marks: ReadFollower<LiveConnection>;
};

/** Notifications read from the store at once. */
const CATCH_UP_PAGE = 200;
/** Marks read from the store at once. */
const MARKS_PAGE = 50;
/** Users whose heads are read at once after hints were missed. */
const REFRESH_CONCURRENCY = 4;
/** Streams that are ended together reconnect within this range. */
const RECONNECT_MS_MIN = 500;
const RECONNECT_MS_MAX = 5_000;
/** One tenant alone may have nine tenths of the streams of a process. */
const TENANT_FACTOR = 9;
/** Each connection has its heartbeat in one of so many turns of the interval. */
const HEARTBEAT_TURNS = 16;

/**
 * Brings notifications to open streams, each once and in the order of their sequences. A connection
 * that stands exactly before a notification gets it from memory; any other one catches up from the
 * store, which also serves replay after a reconnect and what other processes stored. Streams of one user
 * share what is read for them (user-reads.ts).
 *
 * Invariants: I1 a connection's `position` never goes back; I2 what is sent has a sequence above the
 * position before; I3 when nothing is heard of any more and the store answers, every open connection
 * reaches its user's head. (test/notify/live-hub.pg.test.ts)
 */
export class LiveHub {
  readonly #options: LiveHubOptions;
  readonly #audiences = new Map<string, Audience>();
  readonly #turns: Set<LiveConnection>[] = Array.from(
    { length: HEARTBEAT_TURNS },
    () => new Set<LiveConnection>(),
  );
  readonly #turnOf = new Map<LiveConnection, number>();
  readonly #countOfTenant = new Map<string, number>();
  readonly #heartbeat: NodeJS.Timeout;
  /** What fits into an empty buffer, so that a replay drops nothing. */
  readonly #pageSize: number;
  #isRefreshing = false;
  #wantsRefresh = false;
  #turn = 0;
  #isClosed = false;

  constructor(options: LiveHubOptions) {
    this.#options = options;
    this.#pageSize = Math.min(CATCH_UP_PAGE, options.bufferEventsMax);
    this.#heartbeat = setInterval(
      () => this.#beat(),
      options.heartbeatMs / HEARTBEAT_TURNS,
    ).unref();
  }

  get connectionCount(): number {
    return this.#turnOf.size;
  }

  /**
   * Errors: STREAM_LIMIT when this process, the tenant or the user has as many streams as it may; `metadata.limit`
   * says which, `instance`, `tenant` or `user`.
   */
  assertCapacity(user: UserKey): void {
    const { connectionsMax, connectionsPerUserMax } = this.#options;
    if (this.connectionCount >= connectionsMax) {
      throw new AppError('STREAM_LIMIT', `${connectionsMax} streams are open`, {
        limit: 'instance',
      });
    }
    const ofTenant = this.#countOfTenant.get(user.tenantId) ?? 0;
    if (!hasFairCapacity(ofTenant, this.connectionCount, connectionsMax, TENANT_FACTOR)) {
      throw new AppError('STREAM_LIMIT', `the tenant has ${ofTenant} streams open, its share`, {
        limit: 'tenant',
      });
    }
    const own = this.#audiences.get(keyOf(user))?.connections.size ?? 0;
    if (own >= connectionsPerUserMax) {
      throw new AppError('STREAM_LIMIT', `the user has ${connectionsPerUserMax} streams open`, {
        limit: 'user',
      });
    }
  }

  /**
   * Adopts an open connection. `lastSequence` undefined: from now on; else everything after it is
   * replayed first, with a `reset` event before it when some of that is no longer kept.
   */
  add(connection: LiveConnection, lastSequence: number | undefined): void {
    const key = keyOf(connection.identity);
    let audience = this.#audiences.get(key);
    if (audience === undefined) {
      this.#audiences.set(key, (audience = this.#audienceOf(connection.identity)));
    }
    audience.connections.add(connection);
    const turn = this.#turnOf.size % HEARTBEAT_TURNS;
    this.#turnOf.set(connection, turn);
    const { tenantId } = connection.identity;
    this.#countOfTenant.set(tenantId, (this.#countOfTenant.get(tenantId) ?? 0) + 1);
    this.#turns[turn]?.add(connection);
    connection.isCatchingUp = true;
    void this.#begin(audience, connection, lastSequence);
  }

  /** The connection has ended. Idempotent. */
  remove(connection: LiveConnection): void {
    const turn = this.#turnOf.get(connection);
    if (turn === undefined) return;
    this.#turnOf.delete(connection);
    this.#turns[turn]?.delete(connection);
    const { tenantId } = connection.identity;
    const left = (this.#countOfTenant.get(tenantId) ?? 0) - 1;
    if (left > 0) this.#countOfTenant.set(tenantId, left);
    else this.#countOfTenant.delete(tenantId);
    const key = keyOf(connection.identity);
    const audience = this.#audiences.get(key);
    audience?.connections.delete(connection);
    if (audience?.connections.size === 0) this.#audiences.delete(key);
  }

  /**
   * A notification that this process stored, in the order in which the store committed them. Returns
   * the number of streams that get it, at once or as part of what they catch up on: 0 when none of the
   * user is open here. Hot.
   */
  deliver(notification: Notification): number {
    const audience = this.#audiences.get(keyOf(notification));
    if (audience === undefined) return 0;
    const { size } = audience.connections;
    // A hint was faster: all are at it.
    if (notification.sequence <= audience.head) return size;
    audience.head = notification.sequence;
    const isLive = notification.channels.includes(LIVE_CHANNEL);
    let frame: string | undefined;
    for (const connection of audience.connections) {
      if (connection.isCatchingUp) continue;
      if (connection.position !== notification.sequence - 1) {
        this.#catchUp(audience, connection);
        continue;
      }
      connection.position = notification.sequence;
      if (!isLive) continue;
      frame ??= frameOf(notification);
      connection.send(frame);
      this.#options.metrics.streamEvents.notification.add();
    }
    return size;
  }

  /** Somebody stored a notification with this sequence, or made this mark; null: anybody may have done anything. */
  hint(user: UserKey | null, sequence: number, reads: number): void {
    if (user === null) {
      this.#wantsRefresh = true;
      if (!this.#isRefreshing) void this.#refreshAll();
      return;
    }
    const audience = this.#audiences.get(keyOf(user));
    if (audience === undefined) return;
    this.#heardOf(audience, sequence);
    audience.marks.heardOf(reads);
  }

  /** Connections by device type. */
  countByDeviceType(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = Object.fromEntries(
      DEVICE_TYPES.map((type) => [type, 0]),
    );
    for (const { identity } of this.#turnOf.keys()) {
      counts[identity.deviceType] = (counts[identity.deviceType] ?? 0) + 1;
    }
    return counts;
  }

  /** Ends the streams that an order is about, or follows the new policy of their tenant. O(streams) for a policy. */
  apply(order: StreamOrder): void {
    switch (order.kind) {
      case 'revoke_user':
        for (const connection of this.#connectionsOf(order)) {
          if (revokes(order, connection.grant)) connection.endFor('revoked', reconnectMs());
        }
        return;
      case 'disconnect':
        for (const connection of this.#connectionsOf(order)) {
          connection.endFor('disconnected', reconnectMs());
        }
        return;
      // Each takes itself off the map, which iteration allows.
      case 'revoke_token':
        for (const connection of this.#turnOf.keys()) {
          if (revokes(order, connection.grant)) connection.endFor('revoked', reconnectMs());
        }
        return;
      case 'policy':
        for (const connection of this.#turnOf.keys()) {
          if (connection.identity.tenantId !== order.tenantId) continue;
          this.setEnd(connection, order.endsWithToken);
        }
    }
  }

  /** Whether the stream ends with its token. */
  setEnd(connection: LiveConnection, endsWithToken: boolean): void {
    const ms = connection.grant.expiresAtMs - this.#options.clock.nowMs();
    connection.endAfter(endsWithToken ? ms : undefined, reconnectMs());
  }

  /** Ends every stream; those who may come back do. */
  endAll(): void {
    for (const connection of this.#turnOf.keys()) {
      connection.endFor('disconnected', reconnectMs());
    }
  }

  /** Ends every stream, and itself. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    for (const connection of this.#turnOf.keys()) connection.end(reconnectMs());
  }

  #connectionsOf(user: UserKey): readonly LiveConnection[] {
    return [...(this.#audiences.get(keyOf(user))?.connections ?? [])];
  }

  #audienceOf({ tenantId, userId }: UserKey): Audience {
    const { store, log, gate, metrics } = this.#options;
    const user = { tenantId, userId };
    const connections = new Set<LiveConnection>();
    // Whichever stream of the user is open then: the one that asked first may end before the store answers.
    const anyOpenId = (): string | undefined => {
      if (this.#isClosed) return undefined;
      for (const { isOpen, identity } of connections) if (isOpen) return identity.connectionId;
      return undefined;
    };
    const retried = <T>(read: () => Promise<T>): Promise<T | undefined> =>
      retriedRead(log, user, anyOpenId, () => gate.run(tenantId, read));
    const reads = new UserReads({ store, user, pageSize: this.#pageSize, retried });
    const marks = new ReadFollower({
      streams: connections,
      read: (after) => retried(() => store.readsAfter(user, after, MARKS_PAGE)),
      onHead: (sequence) => this.#heardOf(audience, sequence),
      onSent: () => metrics.streamEvents.read.add(),
    });
    const audience: Audience = { user, head: 0, connections, reads, marks };
    return audience;
  }

  async #begin(
    audience: Audience,
    connection: LiveConnection,
    lastSequence: number | undefined,
  ): Promise<void> {
    const bounds = await audience.reads.bounds();
    if (bounds === undefined || !connection.isOpen) return;
    this.#heardOf(audience, bounds.head);
    audience.marks.heardOf(bounds.reads);
    // A position beyond the head is of another history (a store that lost it): all begins anew.
    const isForeign = lastSequence !== undefined && lastSequence > bounds.head;
    const isTooOld = lastSequence !== undefined && lastSequence < bounds.oldest - 1;
    if (isForeign) connection.position = bounds.head;
    else if (isTooOld) connection.position = bounds.oldest - 1;
    else connection.position = lastSequence ?? bounds.head;
    connection.greet(bounds);
    if (isForeign || isTooOld) {
      const data = JSON.stringify({ oldest: bounds.oldest, head: bounds.head });
      connection.send(encodeSseEvent({ event: 'reset', data }));
      this.#options.metrics.streamEvents.reset.add();
    }
    if (isTooOld) this.#options.metrics.dropped.too_old.add(bounds.oldest - 1 - lastSequence);
    await this.#readOn(audience, connection);
  }

  /**
   * However it was heard of, also by what one stream read: the user's other streams must read it, too,
   * since its own hint is old news from now on.
   */
  #heardOf(audience: Audience, sequence: number): void {
    if (sequence <= audience.head) return;
    audience.head = sequence;
    for (const connection of audience.connections) this.#catchUp(audience, connection);
  }

  #catchUp(audience: Audience, connection: LiveConnection): void {
    if (connection.isCatchingUp) return;
    connection.isCatchingUp = true;
    void this.#readOn(audience, connection);
  }

  /** Reads from the store until the connection stands at the head; then it is served from memory. */
  async #readOn(audience: Audience, connection: LiveConnection): Promise<void> {
    while (connection.isOpen && connection.position < audience.head) {
      // Replay goes as fast as the client reads, instead of dropping what it asked for.
      await connection.drained();
      const { position } = connection;
      const page = await audience.reads.pageAfter(position, audience.head);
      if (page === undefined || !connection.isOpen) return;
      for (const { sequence, frame } of page.events) {
        if (sequence <= position) continue;
        connection.send(frame);
        this.#options.metrics.streamEvents.replay.add();
      }
      connection.position = page.upTo;
      this.#heardOf(audience, page.upTo);
    }
    connection.isCatchingUp = false;
    audience.marks.look();
  }

  /** Looks for what was stored unheard, a few users at a time, until nobody wants it any more. */
  async #refreshAll(): Promise<void> {
    this.#isRefreshing = true;
    while (this.#wantsRefresh && !this.#isClosed) {
      this.#wantsRefresh = false;
      const audiences = this.#audiences.values();
      const refreshNext = async (): Promise<void> => {
        for (const audience of audiences) await this.#refresh(audience);
      };
      await Promise.all(Array.from({ length: REFRESH_CONCURRENCY }, refreshNext));
    }
    this.#isRefreshing = false;
  }

  async #refresh(audience: Audience): Promise<void> {
    const bounds = await audience.reads.bounds();
    if (bounds !== undefined) this.hint(audience.user, bounds.head, bounds.reads);
  }

  #beat(): void {
    this.#turn = (this.#turn + 1) % HEARTBEAT_TURNS;
    for (const connection of this.#turns[this.#turn] ?? []) connection.heartbeat();
  }
}

/** Those that are ended together do not come back together. */
function reconnectMs(): number {
  return Math.round(RECONNECT_MS_MIN + Math.random() * (RECONNECT_MS_MAX - RECONNECT_MS_MIN));
}

function keyOf({ tenantId, userId }: UserKey): string {
  return `${tenantId} ${userId}`;
}
