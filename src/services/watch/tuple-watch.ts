import type { Pool } from 'pg';
import type { TokenCodec } from '../../model/consistency-token.ts';
import { checkTenantId } from '../../model/names.ts';
import { type PackedChange, parsePackedChanges, unpackChange } from '../../model/packed-changes.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import type { TupleMatch } from '../../store/sql/reads/match-tuples.ts';
import {
  selectWatchStart,
  selectWatchedProject,
  selectWatchedShard,
  type WatchedRow,
} from '../../store/sql/reads/watched-changes.ts';
import { checkTupleFilter, type RawFilter } from '../bulk/tuple-filter.ts';
import { openShard, type ShardOpening } from '../projects/management-call.ts';
import { ServedProject } from '../projects/served-project.ts';
import type { ReadPositions } from '../reads/read-positions.ts';
import type { ProjectCursor, ShardCursor, WatchCursors } from './watch-cursor.ts';
import type { Following, WatchHub } from './watch-hub.ts';

export type WatchTuplesRequest = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly allTenants: boolean;
  readonly filter?: RawFilter | undefined;
  /** A consistency token of the shard, or a cursor; '' is now. */
  readonly startAfter: string;
  /** 0 is 15. */
  readonly heartbeatSeconds: number;
};

/** The effective changes of one write, as far as the filter takes them. */
export type WatchedWrite = Omit<WatchedRow, 'changes'> & {
  readonly kind: 'changes';
  readonly updates: readonly TupleChange[];
};

/** Event that a follower gets; it resumes after `cursor`. */
export type WatchEvent = { readonly projectId: string; readonly cursor: string } & (
  | (WatchedWrite & { readonly token: string })
  | { readonly kind: 'heartbeat'; readonly atMs: number }
  | { readonly kind: 'modelChanged'; readonly version: number }
  | { readonly kind: 'resync'; readonly tenantId: string; readonly token: string }
);

/** Counts of followers, for metrics. */
export interface WatchMetrics {
  streams(change: 1 | -1): void;
  sent(kind: WatchEvent['kind']): void;
  /** Time from a commit's transaction to its delivery, by the database's clock. */
  lag(seconds: number): void;
}

export type TupleWatchOptions = ShardOpening & {
  readonly pool: Pool;
  readonly hub: WatchHub;
  readonly cursors: WatchCursors;
  readonly codec: TokenCodec;
  readonly positions: Pick<ReadPositions, 'resolve' | 'decode'>;
  /** The database's time. */
  readonly clock: Clock;
  /** Followers at once; 0 is off. */
  readonly streamsMax: number;
  readonly metrics: WatchMetrics;
};

const HEARTBEAT_SECONDS_DEFAULT = 15;
const HEARTBEAT_SECONDS_MAX = 60;
/** Poll interval of a follower without a hint: hints may be lost. */
const POLL_MS = 1_000;
/** Looks of one follower are at least so far apart, so that many writes share one. */
const POLL_APART_MS = 10;

/** Follows what is committed to tuples, from a position on: Watch. */
export class TupleWatch {
  readonly #options: TupleWatchOptions;
  #streams = 0;

  constructor(options: TupleWatchOptions) {
    this.#options = options;
  }

  /**
   * Every write of the shard, or of all shards of the project, once and those of a shard in their order; first of all a
   * heartbeat, by which the follower knows that it is let in, and where. The next page is read when the last one was taken. `onBegun` is called when the start is valid. Errors: FIELD_*, TOKEN_INVALID, WATCH_OFF,
   * WATCH_TOO_OLD, QUEUE_FULL, those of the project (also later on), STORE_UNAVAILABLE; CANCELLED when `signal` aborts.
   */
  async *watch(
    request: WatchTuplesRequest,
    signal: AbortSignal,
    onBegun?: () => void,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    const { streamsMax, metrics, hub } = this.#options;
    const { allTenants, tenantId } = request;
    checkTenantId('tenant_id', tenantId);
    if (allTenants && tenantId !== '') throw fieldError('tenant_id', 'excludes all_tenants');
    const match = checkTupleFilter('filter', request.filter);
    const heartbeatMs = heartbeatOf(request.heartbeatSeconds);
    if (streamsMax === 0) {
      throw new AppError<AuthzReason>('WATCH_OFF', 'watching is off: set GATEWAY_WATCH_STREAMS');
    }
    const { projectId } = await openShard(this.#options, request);
    if (this.#streams >= streamsMax) {
      throw new AppError<AuthzReason>('QUEUE_FULL', `${streamsMax} streams follow already`, {
        queue: 'watch',
      });
    }
    this.#streams++;
    const following = hub.follow(projectId, allTenants ? null : tenantId);
    metrics.streams(1);
    const begun = onBegun ?? ignore;
    const stream = { request, projectId, match, heartbeatMs, following, signal, begun };
    try {
      if (allTenants) yield* this.#project(stream);
      else yield* this.#shard(stream);
    } catch (error) {
      throw error instanceof AppError ? error : storeError(error);
    } finally {
      metrics.streams(-1);
      following.unsubscribe();
      this.#streams--;
    }
  }

  async *#shard(stream: Stream): AsyncGenerator<WatchEvent, void, undefined> {
    const { pool, codec, cursors } = this.#options;
    const { request, projectId, match } = stream;
    const shard = { projectId, tenantId: request.tenantId };
    let cursor = await this.#shardStart(stream);
    const isResumed = request.startAfter !== '';
    let isFirst = true;
    const encoded = (): string => cursors.encode(projectId, shard.tenantId, cursor);
    const pace = new Pace(stream, this.#options);
    for (;;) {
      const headRevision = await selectWatchedShard(pool, shard, cursor.revision);
      if (headRevision.epoch !== cursor.epoch || headRevision.revision < cursor.revision)
        throw tooOld();
      const isGone =
        cursor.revision + 1 < headRevision.retainedFrom && headRevision.revision > cursor.revision;
      if (isGone && isFirst && isResumed) throw tooOld();
      if (isFirst) {
        stream.begun();
        yield this.#heartbeat(projectId, encoded());
      }
      if (headRevision.modelVersion !== cursor.modelVersion) {
        cursor = { ...cursor, modelVersion: headRevision.modelVersion };
        const changed = { kind: 'modelChanged', version: headRevision.modelVersion } as const;
        yield this.#reported({ projectId, cursor: encoded(), ...changed });
      }
      if (isGone) {
        cursor = { ...cursor, revision: headRevision.revision };
        const token = codec.encode(shard, headRevision.epoch, headRevision.revision);
        const { tenantId } = shard;
        yield this.#reported({ projectId, cursor: encoded(), kind: 'resync', tenantId, token });
      }
      for (const row of isGone ? [] : headRevision.rows) {
        const own = { ...row, tenantId: shard.tenantId, epoch: headRevision.epoch };
        cursor = { ...cursor, revision: row.revision };
        const write = writeOf(own, match);
        if (write !== undefined) {
          const token = codec.encode(shard, headRevision.epoch, row.revision);
          yield this.#reported({ projectId, cursor: encoded(), token, ...write });
          pace.spoke();
        }
      }
      isFirst = false;
      if (cursor.revision >= headRevision.revision) {
        if (await pace.wait()) yield this.#heartbeat(projectId, encoded());
      } else await pace.guard();
    }
  }

  async #shardStart({ request, projectId }: Stream): Promise<ShardCursor> {
    const { pool, cursors, positions, codec } = this.#options;
    const { startAfter, tenantId } = request;
    const shard = { projectId, tenantId };
    if (startAfter.includes('.')) {
      const cursor = cursors.decode(projectId, tenantId, startAfter);
      if (cursor.kind === 'shard') return cursor;
      throw fieldError('start_after', 'is a cursor of all tenants');
    }
    const position =
      startAfter === ''
        ? await positions.resolve(shard, '')
        : codec.decode(shard, startAfter, 'start_after');
    const revision = 'minRevision' in position ? position.minRevision : position.revision;
    const { modelVersion } = await selectWatchedShard(pool, shard, revision);
    return { kind: 'shard', epoch: position.epoch, revision, modelVersion };
  }

  async *#project(stream: Stream): AsyncGenerator<WatchEvent, void, undefined> {
    const { pool, codec, cursors } = this.#options;
    const { request, projectId, match } = stream;
    const isResumed = request.startAfter !== '';
    let cursor = await this.#projectStart(stream);
    let isFirst = true;
    const encoded = (): string => cursors.encode(projectId, null, cursor);
    const pace = new Pace(stream, this.#options);
    // Head revisions of tenants that got a `resync`: earlier writes are not delivered as well.
    const reread = new Map<string, number>();
    for (;;) {
      const { since, upto } = cursor;
      const window = await selectWatchedProject(pool, projectId, since, upto, [
        cursor.tenantId,
        cursor.revision,
      ]);
      const { pruned } = window;
      if (window.epoch !== cursor.epoch || pruned === undefined) throw tooOld();
      // A tenant that an import replaced is read anew as a whole, so nothing is missing.
      if (isFirst && isResumed && pruned.some((one) => !one.isReplaced)) throw tooOld();
      if (isFirst) {
        stream.begun();
        yield this.#heartbeat(projectId, encoded());
      }
      isFirst = false;
      if (window.modelVersion !== cursor.modelVersion) {
        cursor = { ...cursor, modelVersion: window.modelVersion };
        const changed = { kind: 'modelChanged', version: window.modelVersion } as const;
        yield this.#reported({ projectId, cursor: encoded(), ...changed });
      }
      const gone = new Set(pruned.map(({ tenantId }) => tenantId));
      for (const row of window.rows) {
        cursor = { ...cursor, upto: window.to, tenantId: row.tenantId, revision: row.revision };
        // Earlier writes are not kept: the tenant gets a `resync` instead.
        if (gone.has(row.tenantId) || row.revision <= (reread.get(row.tenantId) ?? -1)) continue;
        const write = writeOf(row, match);
        if (write === undefined) continue;
        const token = codec.encode({ projectId, tenantId: row.tenantId }, row.epoch, row.revision);
        yield this.#reported({ projectId, cursor: encoded(), token, ...write });
        pace.spoke();
      }
      if (window.hasMore) {
        await pace.guard();
        continue;
      }
      const next = { ...cursor, since: window.to, upto: null, tenantId: '', revision: -1 };
      for (const [at, { tenantId, epoch, revision }] of pruned.entries()) {
        reread.set(tenantId, revision);
        // A follower that resumes before the last `resync` gets all of them again.
        if (at === pruned.length - 1) cursor = next;
        const token = codec.encode({ projectId, tenantId }, epoch, revision);
        yield this.#reported({ projectId, cursor: encoded(), kind: 'resync', tenantId, token });
      }
      cursor = next;
      if (await pace.wait()) yield this.#heartbeat(projectId, encoded());
    }
  }

  async #projectStart({ request, projectId }: Stream): Promise<ProjectCursor> {
    const { pool, cursors } = this.#options;
    if (request.startAfter !== '') {
      const cursor = cursors.decode(projectId, null, request.startAfter);
      if (cursor.kind === 'project') return cursor;
      throw fieldError('start_after', 'is a cursor of one tenant');
    }
    const { snapshot, epoch, modelVersion } = await selectWatchStart(pool, projectId);
    const start = { kind: 'project', upto: null, tenantId: '', revision: -1 } as const;
    return { ...start, epoch, since: snapshot, modelVersion };
  }

  #heartbeat(projectId: string, cursor: string): WatchEvent {
    const atMs = this.#options.clock.nowMs();
    return this.#reported({ projectId, cursor, kind: 'heartbeat', atMs });
  }

  #reported(event: WatchEvent): WatchEvent {
    const { metrics, clock } = this.#options;
    metrics.sent(event.kind);
    if (event.kind === 'changes') {
      metrics.lag(Math.max(0, clock.nowMs() / 1_000 - Number(event.committedAtUs) / 1e6));
    }
    return event;
  }
}

type Stream = {
  readonly request: WatchTuplesRequest;
  readonly projectId: string;
  readonly match: TupleMatch;
  readonly heartbeatMs: number;
  readonly following: Following;
  readonly signal: AbortSignal;
  readonly begun: () => void;
};

function ignore(): void {
  // Nobody waits for it.
}

/** Decides when a follower polls, sends a heartbeat and is still admitted. */
class Pace {
  readonly #stream: Stream;
  readonly #options: Pick<TupleWatchOptions, 'clock'> & ShardOpening;
  readonly #served: ServedProject;
  #spokeMs: number;
  #polledMs: number;

  constructor(stream: Stream, options: Pick<TupleWatchOptions, 'clock'> & ShardOpening) {
    this.#stream = stream;
    this.#options = options;
    const now = options.clock.monotonicMs();
    this.#spokeMs = now;
    this.#polledMs = now;
    const { projectId, request } = stream;
    this.#served = new ServedProject(
      () => options.clock.monotonicMs(),
      () => openShard(options, { projectId, tenantId: request.tenantId }),
    );
  }

  spoke(): void {
    this.#spokeMs = this.#options.clock.monotonicMs();
  }

  /**
   * Waits until the next poll, while more is known to be there. Errors: CANCELLED, those of the
   * project.
   */
  async guard(): Promise<void> {
    const { signal } = this.#stream;
    if (signal.aborted) throw new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
    await this.#served.refresh();
    this.#polledMs = this.#options.clock.monotonicMs();
  }

  /** Waits until something may have changed. Returns whether a heartbeat is due. Errors: as `guard`. */
  async wait(): Promise<boolean> {
    const { following, heartbeatMs, signal } = this.#stream;
    const { clock } = this.#options;
    const now = clock.monotonicMs();
    const restMs = Math.max(0, heartbeatMs - (now - this.#spokeMs));
    await following.news(Math.min(POLL_MS, restMs), signal);
    const earlyMs = POLL_APART_MS - (clock.monotonicMs() - this.#polledMs);
    if (earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    await this.guard();
    if (clock.monotonicMs() - this.#spokeMs < heartbeatMs) return false;
    this.spoke();
    return true;
  }
}

function heartbeatOf(seconds: number): number {
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > HEARTBEAT_SECONDS_MAX) {
    throw fieldError('heartbeat_seconds', `must be 0 to ${HEARTBEAT_SECONDS_MAX}`);
  }
  return (seconds || HEARTBEAT_SECONDS_DEFAULT) * 1_000;
}

/** undefined: the filter takes none of its changes. */
function writeOf(row: WatchedRow, match: TupleMatch): WatchedWrite | undefined {
  const { changes, ...rest } = row;
  const updates = parsePackedChanges(changes).filter((change) => isTaken(match, change));
  if (updates.length === 0) return undefined;
  return { ...rest, kind: 'changes', updates: updates.map(unpackChange) };
}

function isTaken(
  { namespace, objectId, relation, subject }: TupleMatch,
  change: PackedChange,
): boolean {
  return (
    (namespace === null || change[1] === namespace) &&
    (objectId === null || change[2] === objectId) &&
    (relation === null || change[3] === relation) &&
    (subject === null ||
      (change[4] === subject[0] && change[5] === subject[1] && change[6] === subject[2]))
  );
}

function tooOld(): AppError {
  return new AppError<AuthzReason>(
    'WATCH_TOO_OLD',
    'start_after: changes behind it are no longer kept, or its history ended: read the tuples anew with StreamTuples, and go on behind the token of that',
    { field: 'start_after' },
  );
}
