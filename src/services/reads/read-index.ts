import type { CarriedChanges } from '../../model/packed-changes.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import {
  INDEX_SHARDS_MAX,
  type IndexParams,
  type IndexRow,
} from '../../store/sql/reads/read-index.ts';
import {
  type HeadRevisionWaiter,
  HeadRevisionLoads,
  type Load,
  type WaiterEntry,
} from './head-revision-loads.ts';
import {
  type HeadRevisionRead,
  put,
  type HeadRevision,
  type HeadRevisions,
  type Tenants,
} from './head-revisions.ts';
import { type IndexConnection, type IndexQuery, IndexQueries } from './index-queries.ts';

/** Counters of the read index. */
export interface ReadIndexMetrics {
  answered(reads: number, seconds: number): void;
  failed(): void;
  stalled(): void;
  carried(rows: number): void;
  historyLost(): void;
}

export type ReadIndexOptions = {
  readonly clock: Clock;
  readonly headRevisions: HeadRevisions;
  /** In order of preference: the later ones serve while an earlier one stalls, or is away. */
  readonly connections: readonly IndexConnection[];
  /** The version of the project's settings that is known here; 0 if none. */
  readonly settingsVersionOf: (projectId: string) => number;
  /**
   * Takes the changes found beside the head revisions to the owners of the shards, before any
   * waiter is called.
   */
  readonly carry: (changes: CarriedChanges) => void;
  /** Reads that wait at most; more are refused with QUEUE_FULL. */
  readonly waitersMax: number;
  readonly metrics: ReadIndexMetrics;
};

/** How long a read without a nearer deadline waits. */
export const WAIT_MAX_MS = 2_000;
const SWEEP_MS = 20;

/**
 * Asks PostgreSQL where shards stand, for reads that must see every write that anybody acknowledged
 * before they began. Reads gather while a query is under way and share the next one.
 *
 * R1 A query serves only reads that had arrived before it was sent.
 *    [test/services/read-index.test.ts]
 * R2 One query at a time is under way on a connection; another connection is used once that query
 *    stalls (it takes longer than round trips to this database do: StallThreshold) or where that
 *    connection is away. It serves what waits for the stalled query as well: that had arrived.
 *    [test/services/read-index.test.ts]
 * R3 A read waits until its deadline, and WAIT_MAX_MS at most; once no connection answered for
 *    AWAY_AFTER_MS it fails at once. [test/services/read-index.test.ts]
 * R4 What is known here when a query is sent was committed: a head revision below it, of an older epoch, or
 *    another fork id at it is another history. (A head revision below what is known when the answer arrives is
 *    nothing: writes commit meanwhile.) [test/services/read-index.test.ts]
 * R5 Changes found beside a head revision reach the shard's owner before any read that waits for the head revision.
 *    [test/services/read-index.test.ts]
 */
export class ReadIndex {
  readonly #options: ReadIndexOptions;
  readonly #loads = new HeadRevisionLoads();
  readonly #queries: IndexQueries;
  #isScheduled = false;
  #isStopped = false;
  #sweeper: NodeJS.Timeout | null = null;

  constructor(options: ReadIndexOptions) {
    this.#options = options;
    this.#queries = new IndexQueries(options.connections, options.clock);
  }

  /** Reads that wait. */
  get waitingCount(): number {
    return this.#loads.waitingCount;
  }

  /** Whether reads that must ask fail at once. */
  get isAway(): boolean {
    return this.#queries.isAway;
  }

  /** Whether reads that must ask are answered, as far as is known. */
  get isServing(): boolean {
    return this.#queries.isServing;
  }

  /**
   * Queries the head revision of a shard, after this call was made; calls `waiter`, never inside
   * this call. Cost: a map lookup and two small objects; reads of a shard share its query.
   */
  request(projectId: string, tenantId: string, waiter: HeadRevisionWaiter): { cancel(): void } {
    const refusal = this.#refusal();
    if (refusal !== null) return this.#refuse(waiter, refusal);
    const nowMs = performance.timeOrigin + this.#options.clock.monotonicMs();
    const untilMs = Math.min(waiter.deadlineMs, nowMs + WAIT_MAX_MS);
    const waiting = this.#loads.add({ projectId, tenantId }, waiter, untilMs);
    this.#schedule();
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return {
      cancel: () => {
        if (waiting.waiter !== null) this.#loads.remove(waiting);
      },
    };
  }

  /**
   * Same as `request`, as a promise. Errors: those of `HeadRevisionWaiter.failed`; CANCELLED when
   * `signal` aborts.
   */
  load(
    projectId: string,
    tenantId: string,
    deadlineMs = Number.POSITIVE_INFINITY,
    signal?: AbortSignal,
  ): Promise<LoadedHeadRevision> {
    const { promise, resolve, reject } = Promise.withResolvers<LoadedHeadRevision>();
    let waiting: { cancel(): void } | null = null;
    const onAbort = (): void => {
      waiting?.cancel();
      reject(new AppError<AuthzReason>('CANCELLED', 'the call was cancelled'));
    };
    if (signal?.aborted === true) {
      onAbort();
      return promise;
    }
    const done = (): void => signal?.removeEventListener('abort', onAbort);
    waiting = this.request(projectId, tenantId, {
      deadlineMs,
      found: (headRevision, settingsVersion, askedMs) => {
        done();
        resolve({ headRevision, settingsVersion, askedMs });
      },
      failed: (error) => {
        done();
        reject(error);
      },
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  /** A connection is there: what waits can be sent. */
  connected(): void {
    this.#queries.recovered();
    this.#schedule();
  }

  /** A connection that was there is lost. */
  disconnected(): void {
    this.#queries.noteTrouble();
    this.#schedule();
  }

  /** Fails what waits with SHUTTING_DOWN, and what comes. Idempotent. */
  stop(): void {
    this.#isStopped = true;
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
    const stopping = new AppError<AuthzReason>('SHUTTING_DOWN', 'the service is stopping');
    this.#queries.stop();
    for (const load of this.#openLoads()) this.#loads.fail(load, () => stopping);
  }

  #refusal(): AppError | null {
    if (this.#isStopped) {
      return new AppError<AuthzReason>('SHUTTING_DOWN', 'the service is stopping');
    }
    if (this.isAway) return unavailable();
    const { waitersMax } = this.#options;
    if (this.waitingCount < waitersMax) return null;
    return new AppError<AuthzReason>('QUEUE_FULL', 'too many reads wait for the database', {
      limit: String(waitersMax),
    });
  }

  /** Never inside the call: the caller has no handle yet. */
  #refuse(waiter: HeadRevisionWaiter, error: AppError): { cancel(): void } {
    let isCancelled = false;
    queueMicrotask(() => {
      if (!isCancelled) waiter.failed(error);
    });
    return { cancel: () => void (isCancelled = true) };
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isStopped) return;
    this.#isScheduled = true;
    // Requests that this turn of the event loop still reads share the query.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendMore();
    });
  }

  #sendMore(): void {
    while (!this.#isStopped) {
      const connection = this.#queries.freeConnection();
      if (connection === null) return;
      const loads = this.#loads.takeBatch(this.#queries.loads, INDEX_SHARDS_MAX);
      if (loads.length === 0) return;
      this.#send(connection, loads);
    }
  }

  #send(connection: IndexConnection, loads: readonly Load[]): void {
    const { headRevisions, settingsVersionOf } = this.#options;
    const reads: Tenants<HeadRevisionRead> = new Map();
    const params: IndexParams[] = [];
    for (const load of loads) {
      const { projectId, tenantId } = load.shard;
      put(reads, projectId, tenantId, load);
      const known = headRevisions.known(projectId, tenantId);
      params.push({
        projectId,
        tenantId,
        epoch: known?.epoch ?? 0,
        revision: known?.minRevision ?? 0,
        forkId: known?.forkId ?? '',
        settingsVersion: settingsVersionOf(projectId),
      });
    }
    headRevisions.sent(reads);
    const query = this.#queries.begin({ connection, loads, params, reads }, () => this.#stalled());
    connection.query(params).then(
      (rows) => this.#answered(query, rows),
      () => this.#failed(query),
    );
  }

  #stalled(): void {
    this.#options.metrics.stalled();
    this.#schedule();
  }

  /** The connection is given up; what waited for it is sent by the other one, or by the next. */
  #failed(query: IndexQuery): void {
    this.#queries.failed(query);
    this.#options.headRevisions.ended(query.reads);
    this.#options.metrics.failed();
    if (this.#isStopped) return;
    for (const load of query.loads) if (!this.#queries.isAsked(load)) this.#loads.release(load);
    this.#schedule();
  }

  #answered(query: IndexQuery, rows: readonly IndexRow[]): void {
    const { headRevisions, metrics } = this.#options;
    const tookMs = this.#queries.answered(query);
    if (this.#isStopped) return;
    let reads = 0;
    let rowAt = 0;
    query.loads.forEach((load, at) => {
      const params = query.params[at] as IndexParams;
      const row = rows[rowAt]?.at === at ? rows[rowAt++] : undefined;
      const isLost = row !== undefined && isOtherHistory(params, row);
      if (row !== undefined) this.#carry(load.shard, params, row, isLost);
      const { epoch, revision, forkId } = row ?? params;
      const headRevision = headRevisions.install(load, {
        epoch,
        revision,
        forkId,
        lost: isLost ? params : undefined,
      });
      if (load.isSettled) return;
      const version = row === undefined ? params.settingsVersion : row.settingsVersion;
      reads += this.#loads.notify(load, (waiter) =>
        waiter.found(headRevision, version, query.sentMs),
      );
    });
    headRevisions.ended(query.reads);
    metrics.answered(reads, tookMs / 1000);
    this.#schedule();
  }

  #carry(shard: ShardKey, params: IndexParams, row: IndexRow, isLost: boolean): void {
    const { carry, metrics } = this.#options;
    if (isLost) metrics.historyLost();
    else if (row.changes.length === 0) return;
    metrics.carried(row.changes.length);
    const { epoch, revision, forkId, forkIdAtKnown: forkIdAtStart, changes } = row;
    const { projectId, tenantId } = shard;
    const headRevision = { projectId, tenantId, epoch, revision, forkId };
    carry({ ...headRevision, isLost, afterRevision: params.revision, forkIdAtStart, changes });
  }

  /** Deadlines of those that wait. O(waiting). */
  #sweep(): void {
    if (this.waitingCount === 0) {
      if (this.#sweeper !== null) clearInterval(this.#sweeper);
      this.#sweeper = null;
      return;
    }
    const nowMs = performance.timeOrigin + this.#options.clock.monotonicMs();
    const overdue = ({ waiter, untilMs }: WaiterEntry): AppError | null => {
      if (waiter === null || untilMs > nowMs) return null;
      return waiter.deadlineMs > nowMs ? unavailable() : deadlineExceeded();
    };
    for (const load of this.#openLoads()) this.#loads.fail(load, overdue);
  }

  #openLoads(): Set<Load> {
    const open = new Set(this.#loads.unsent);
    for (const load of this.#queries.loads) open.add(load);
    return open;
  }
}

/** Result of `load`; see HeadRevisionWaiter.found. */
export type LoadedHeadRevision = {
  readonly headRevision: HeadRevision;
  readonly settingsVersion: number | null;
  readonly askedMs: number;
};

/** R4. */
function isOtherHistory(params: IndexParams, row: IndexRow): boolean {
  if (params.epoch === 0 || row.epoch > params.epoch) return false;
  if (row.epoch < params.epoch || row.revision < params.revision) return true;
  const forkId = row.revision === params.revision ? row.forkId : row.forkIdAtKnown;
  return params.forkId !== '' && forkId !== '' && forkId !== params.forkId;
}

function unavailable(): AppError {
  return new AppError<AuthzReason>('STORE_UNAVAILABLE', 'the database is not available');
}

function deadlineExceeded(): AppError {
  return new AppError<AuthzReason>('DEADLINE_EXCEEDED', 'the deadline ended before the decision');
}
