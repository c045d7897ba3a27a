import type { ShardKey } from '../../model/relation-tuple.ts';
import type { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import {
  find,
  type HeadRevisionRead,
  put,
  remove,
  type HeadRevision,
  type Tenants,
} from './head-revisions.ts';

/** Waiter for a head revision. Exactly one of both callbacks is called, later, unless cancelled. */
export interface HeadRevisionWaiter {
  /** Absolute, on `performance.timeOrigin + performance.now()` (ms); Infinity if none. */
  readonly deadlineMs: number;
  /**
   * `settingsVersion`: of the project's settings, from the same read; null: there is no such
   * project. `askedMs`: the query was sent after it (monotonic).
   */
  found(headRevision: HeadRevision, settingsVersion: number | null, askedMs: number): void;
  /** STORE_UNAVAILABLE, DEADLINE_EXCEEDED, QUEUE_FULL or SHUTTING_DOWN. */
  failed(error: AppError): void;
}

/** All reads of a shard that share one query for its head revision. */
export type Load = HeadRevisionRead & {
  waiters: WaiterEntry[];
  /** Number of `waiters` that were neither answered nor cancelled. */
  waitingCount: number;
  /** Reported, or nobody's any more. */
  isSettled: boolean;
};

/** One of them. */
export type WaiterEntry = {
  /** null once it was called or cancelled. */
  waiter: HeadRevisionWaiter | null;
  load: Load;
  /** Same time as `deadlineMs`. */
  readonly untilMs: number;
};

/** Fewer settled loads than this are not searched for. */
const SETTLED_MIN = 64;

/**
 * The reads that wait for head revisions, by shard, and the loads of them that were not sent yet.
 * O(1) unless stated; keeps nothing of a read that was answered or cancelled.
 */
export class HeadRevisionLoads {
  #next: Tenants<Load> = new Map();
  #nextLoads: Load[] = [];
  #nextCount = 0;
  #waitingCount = 0;

  /** Reads that wait, for what was sent and what was not. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Loads that were not sent, settled ones too. */
  get unsent(): readonly Load[] {
    return this.#nextLoads;
  }

  /** Adds a read to the load of its shard that is sent next. */
  add(shard: ShardKey, waiter: HeadRevisionWaiter, untilMs: number): WaiterEntry {
    const { projectId, tenantId } = shard;
    let load = find(this.#next, projectId, tenantId);
    if (load === undefined) {
      const fresh = { waiters: [], waitingCount: 0, isSettled: false };
      load = { shard: { projectId, tenantId }, raised: undefined, isForgotten: false, ...fresh };
      this.#nextLoads.push(load);
      this.#putNext(load);
    }
    const waiting: WaiterEntry = { waiter, load, untilMs };
    load.waiters.push(waiting);
    load.waitingCount += 1;
    this.#waitingCount += 1;
    return waiting;
  }

  /** Removes a read that was not answered yet. */
  remove(waiting: WaiterEntry): HeadRevisionWaiter {
    const { waiter, load } = waiting;
    assert(waiter !== null, 'who waits is told once');
    waiting.waiter = null;
    load.waitingCount -= 1;
    this.#waitingCount -= 1;
    if (load.waitingCount > 0) return waiter;
    load.waiters = [];
    const { projectId, tenantId } = load.shard;
    // No read waits any more. A load that was sent still returns the head revision when it is
    // answered.
    if (find(this.#next, projectId, tenantId) === load) {
      this.#removeNext(load);
      load.isSettled = true;
      this.#dropSettled();
    }
    return waiter;
  }

  /**
   * Takes the loads to send: those of `again` that still have a waiter, then those not sent yet, at most
   * `max`, each shard once. O(loads).
   */
  takeBatch(again: readonly Load[], max: number): Load[] {
    const loads: Load[] = [];
    const taken: Tenants<Load> = new Map();
    const takeOne = (load: Load): boolean => {
      const { projectId, tenantId } = load.shard;
      if (loads.length >= max || find(taken, projectId, tenantId) !== undefined) return false;
      put(taken, projectId, tenantId, load);
      loads.push(load);
      return true;
    };
    for (const load of again) if (!load.isSettled && load.waitingCount > 0) takeOne(load);
    const later: Load[] = [];
    for (const load of this.#nextLoads) {
      if (load.isSettled) continue;
      if (takeOne(load)) this.#removeNext(load);
      else later.push(load);
    }
    this.#nextLoads = later;
    return loads;
  }

  /** Its query failed: it is sent again, with those that came for the same shard meanwhile. */
  release(load: Load): void {
    if (load.isSettled) return;
    if (load.waitingCount === 0) {
      load.isSettled = true;
      return;
    }
    // The next query sees all that was raised until now, unless it was lost with the connection.
    load.raised = undefined;
    load.isForgotten = false;
    const { projectId, tenantId } = load.shard;
    const later = find(this.#next, projectId, tenantId);
    if (later === undefined) {
      this.#nextLoads.unshift(load);
      this.#putNext(load);
      return;
    }
    load.isSettled = true;
    for (const waiting of load.waiters) {
      if (waiting.waiter === null) continue;
      waiting.load = later;
      later.waiters.push(waiting);
      later.waitingCount += 1;
    }
    load.waiters = [];
    load.waitingCount = 0;
  }

  /** Notifies all of a load; returns how many. */
  notify(load: Load, notifyOne: (waiter: HeadRevisionWaiter) => void): number {
    load.isSettled = true;
    let notified = 0;
    for (const waiting of load.waiters) {
      if (waiting.waiter === null) continue;
      notifyOne(this.remove(waiting));
      notified += 1;
    }
    return notified;
  }

  /** Fails those of a load for whom there is an error. */
  fail(load: Load, errorOf: (waiting: WaiterEntry) => AppError | null): void {
    for (const waiting of load.waiters) {
      if (waiting.waiter === null) continue;
      const error = errorOf(waiting);
      if (error !== null) this.remove(waiting).failed(error);
    }
  }

  #putNext(load: Load): void {
    put(this.#next, load.shard.projectId, load.shard.tenantId, load);
    this.#nextCount += 1;
  }

  #removeNext(load: Load): void {
    remove(this.#next, load.shard.projectId, load.shard.tenantId);
    this.#nextCount -= 1;
  }

  /** Now and then, so that loads that nobody waits for take no memory while nothing is sent. */
  #dropSettled(): void {
    const count = this.#nextLoads.length;
    if (count < SETTLED_MIN || count < 2 * this.#nextCount) return;
    this.#nextLoads = this.#nextLoads.filter((load) => !load.isSettled);
  }
}
