import type { Clock } from '../../shared/time/clock.ts';
import type { IndexParams, IndexRow } from '../../store/sql/reads/read-index.ts';
import type { Load } from './head-revision-loads.ts';
import type { HeadRevisionRead, Tenants } from './head-revisions.ts';
import { StallThreshold } from './stall-threshold.ts';

/** One of the two connections. `query` rejects when the connection is given up. */
export interface IndexConnection {
  readonly isUp: boolean;
  /** Duration of a round trip when it was opened, in ms; absent: not known. */
  readonly roundTripMs?: number | undefined;
  query(params: readonly IndexParams[]): Promise<readonly IndexRow[]>;
}

/** A query under way. */
export type IndexQuery = {
  readonly connection: IndexConnection;
  readonly loads: readonly Load[];
  readonly params: readonly IndexParams[];
  readonly reads: Tenants<HeadRevisionRead>;
  readonly sentMs: number;
  readonly stallTimer: NodeJS.Timeout;
  isStalled: boolean;
};

/** Nobody waits to see whether the database is still away once it was for this long. */
export const AWAY_AFTER_MS = 1_000;

/**
 * The queries under way on the connections of a read index: which connection is free for the next, which query stalls, and
 * since when none answers (R2 and R3 of ReadIndex).
 */
export class IndexQueries {
  readonly #connections: readonly IndexConnection[];
  readonly #clock: Clock;
  readonly #queries = new Set<IndexQuery>();
  readonly #stallThreshold = new StallThreshold();
  /** Since when nothing answered; null: something did, or nobody asked. */
  #troubleSinceMs: number | null = null;

  /** `connections`: in order of preference. */
  constructor(connections: readonly IndexConnection[], clock: Clock) {
    this.#connections = connections;
    this.#clock = clock;
  }

  /** Whether reads that must ask fail at once. */
  get isAway(): boolean {
    const since = this.#troubleSinceMs;
    return since !== null && this.#clock.monotonicMs() - since >= AWAY_AFTER_MS;
  }

  /** Whether reads that must ask are answered, as far as is known. */
  get isServing(): boolean {
    return !this.isAway && this.#connections.some(({ isUp }) => isUp);
  }

  /** Loads of the queries under way; twice where two queries carry them. */
  get loads(): readonly Load[] {
    return [...this.#queries].flatMap((query) => query.loads);
  }

  /** Whether a query under way asks for it. */
  isAsked(load: Load): boolean {
    return [...this.#queries].some((query) => query.loads.includes(load));
  }

  /** A connection that is up and idle; null while a query runs that has not stalled. */
  freeConnection(): IndexConnection | null {
    const busy = new Set<IndexConnection>();
    for (const query of this.#queries) {
      if (!query.isStalled) return null;
      busy.add(query.connection);
    }
    return this.#connections.find((one) => one.isUp && !busy.has(one)) ?? null;
  }

  /** Counts a query as under way; it is sent next. `onStalled`: it takes longer than StallThreshold allows. */
  begin(
    parts: Pick<IndexQuery, 'connection' | 'loads' | 'params' | 'reads'>,
    onStalled: () => void,
  ): IndexQuery {
    const stallMs = this.#stallThreshold.ms(parts.connection.roundTripMs);
    const stallTimer = setTimeout(() => {
      query.isStalled = true;
      this.noteTrouble(query.sentMs);
      onStalled();
    }, stallMs).unref();
    const sentMs = this.#clock.monotonicMs();
    const query: IndexQuery = { ...parts, sentMs, stallTimer, isStalled: false };
    this.#queries.add(query);
    return query;
  }

  /** A query was answered; returns how long it took, in ms. */
  answered(query: IndexQuery): number {
    this.#ended(query);
    this.#troubleSinceMs = null;
    const tookMs = this.#clock.monotonicMs() - query.sentMs;
    this.#stallThreshold.observe(tookMs);
    return tookMs;
  }

  /** The connection of a query is given up. */
  failed(query: IndexQuery): void {
    this.#ended(query);
    this.noteTrouble(query.sentMs);
  }

  /** A connection is there. */
  recovered(): void {
    this.#troubleSinceMs = null;
  }

  /** Notes since when nothing answers promptly, where no connection is left that does. */
  noteTrouble(sinceMs: number = this.#clock.monotonicMs()): void {
    if (this.#troubleSinceMs !== null) return;
    const stalled = new Set<IndexConnection>();
    for (const query of this.#queries) if (query.isStalled) stalled.add(query.connection);
    const isServed = this.#connections.some((one) => one.isUp && !stalled.has(one));
    if (!isServed) this.#troubleSinceMs = sinceMs;
  }

  /** No query stalls any more. */
  stop(): void {
    for (const query of this.#queries) clearTimeout(query.stallTimer);
  }

  #ended(query: IndexQuery): void {
    clearTimeout(query.stallTimer);
    this.#queries.delete(query);
  }
}
