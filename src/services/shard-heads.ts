import type { ShardKey } from '../model/relation-tuple.ts';
import { storeError } from '../store/store-error.ts';

/** What a read of a shard must see at least. The object is live: read it, do not keep it. */
export type ShardHead = { readonly epoch: number; readonly minSeq: number };

type Entry = { epoch: number; minSeq: number };
type Tenants<T> = Map<string, Map<string, T>>;
type Load = {
  readonly shard: ShardKey;
  /** Highest position raised while the query was under way. */
  raised: Entry | undefined;
  /** Everything was forgotten while the query was under way: the answer serves its callers only. */
  isForgotten: boolean;
  readonly promise: Promise<ShardHead>;
  readonly resolve: (head: ShardHead) => void;
  readonly reject: (error: unknown) => void;
};

/** Reads the heads of shards: one row for each, also for those never written, in any order. */
export type HeadRow = ShardKey & { readonly epoch: number; readonly seq: number };
export type ReadHeads = (shards: readonly ShardKey[]) => Promise<readonly HeadRow[]>;

export type ShardHeadsOptions = {
  /** Entries at most; at least half as many of the most recently used are kept. */
  readonly entriesMax: number;
  readonly readHeads: ReadHeads;
};

const SHARDS_PER_QUERY_MAX = 1_000;

/**
 * What this process knows about the heads of shards: the highest seq that it acknowledged or
 * returned to anybody. A read answered at or above it is never stale towards a caller of this
 * process.
 *
 * I1 A ready entry is at or above every position raised since the query that made it was sent.
 * I2 An entry that was evicted is read again: absence is never taken for seq 0.
 * I3 A query that was already sent never serves a request that came later (architecture §4).
 * I4 While the outcome of a write is unknown, `peek` answers undefined, so that reads query.
 */
export class ShardHeads {
  // Two generations instead of a linked list: the hot path writes nothing unless it promotes.
  #young: Tenants<Entry> = new Map();
  #old: Tenants<Entry> = new Map();
  #youngCount = 0;
  #next: Tenants<Load> | undefined;
  readonly #inFlight = new Set<Tenants<Load>>();
  readonly #unknown: Tenants<number> = new Map();
  readonly #generationMax: number;
  readonly #readHeads: ReadHeads;

  constructor(options: ShardHeadsOptions) {
    this.#generationMax = Math.max(1, Math.floor(options.entriesMax / 2));
    this.#readHeads = options.readHeads;
  }

  /** The head if it is known, without waiting. Hot: two or three map lookups, no allocation. */
  peek(projectId: string, tenantId: string): ShardHead | undefined {
    if (this.#unknown.size !== 0 && find(this.#unknown, projectId, tenantId) !== undefined) {
      return undefined;
    }
    return find(this.#young, projectId, tenantId) ?? this.#promote(projectId, tenantId);
  }

  /**
   * The head as Postgres has it now, always by a query that is sent after this call; all loads of
   * one tick share one. Errors: STORE_UNAVAILABLE; nothing is remembered then.
   */
  load(projectId: string, tenantId: string): Promise<ShardHead> {
    if (this.#next === undefined) {
      this.#next = new Map();
      setImmediate(() => this.#send());
    }
    const pending = find(this.#next, projectId, tenantId);
    if (pending !== undefined) return pending.promise;
    const { promise, resolve, reject } = Promise.withResolvers<ShardHead>();
    const load: Load = {
      shard: { projectId, tenantId },
      raised: undefined,
      isForgotten: false,
      promise,
      resolve,
      reject,
    };
    put(this.#next, projectId, tenantId, load);
    return promise;
  }

  /**
   * Records a position that was committed or read, before anybody is told of it. An absent entry
   * stays absent: the next read queries, and sees at least this position.
   */
  raise(projectId: string, tenantId: string, epoch: number, seq: number): void {
    const entry = find(this.#young, projectId, tenantId) ?? find(this.#old, projectId, tenantId);
    if (entry !== undefined) advance(entry, epoch, seq);
    for (const batch of this.#inFlight) {
      const load = find(batch, projectId, tenantId);
      if (load === undefined) continue;
      if (load.raised === undefined) load.raised = { epoch, minSeq: seq };
      else advance(load.raised, epoch, seq);
    }
  }

  /**
   * Every read queries its shard again: somebody else may have written. What queries under way find
   * is not remembered: it may be older.
   */
  forgetAll(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#youngCount = 0;
    for (const batch of this.#inFlight) {
      for (const tenants of batch.values()) {
        for (const load of tenants.values()) load.isForgotten = true;
      }
    }
  }

  /** From now on reads of this shard query, until `clearUnknown` was called as often. */
  markUnknown(projectId: string, tenantId: string): void {
    put(this.#unknown, projectId, tenantId, (find(this.#unknown, projectId, tenantId) ?? 0) + 1);
  }

  clearUnknown(projectId: string, tenantId: string): void {
    const count = find(this.#unknown, projectId, tenantId) ?? 0;
    if (count > 1) return put(this.#unknown, projectId, tenantId, count - 1);
    const tenants = this.#unknown.get(projectId);
    tenants?.delete(tenantId);
    if (tenants?.size === 0) this.#unknown.delete(projectId);
  }

  #promote(projectId: string, tenantId: string): ShardHead | undefined {
    const entry = find(this.#old, projectId, tenantId);
    if (entry !== undefined) this.#remember(projectId, tenantId, entry);
    return entry;
  }

  /** Puts an entry that is not in the young generation there. */
  #remember(projectId: string, tenantId: string, entry: Entry): void {
    if (this.#youngCount >= this.#generationMax) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngCount = 0;
    }
    put(this.#young, projectId, tenantId, entry);
    this.#youngCount++;
  }

  #send(): void {
    const batch = this.#next;
    if (batch === undefined) return;
    this.#next = undefined;
    this.#inFlight.add(batch);
    const loads = [...batch.values()].flatMap((tenants) => [...tenants.values()]);
    const parts: Promise<void>[] = [];
    for (let at = 0; at < loads.length; at += SHARDS_PER_QUERY_MAX) {
      parts.push(this.#query(loads.slice(at, at + SHARDS_PER_QUERY_MAX)));
    }
    void Promise.all(parts).then(() => this.#inFlight.delete(batch));
  }

  /** Never rejects: every load is settled with what came out. */
  async #query(loads: readonly Load[]): Promise<void> {
    let rows: readonly HeadRow[];
    try {
      rows = await this.#readHeads(loads.map((load) => load.shard));
    } catch (error) {
      const failure = storeError(error);
      for (const load of loads) load.reject(failure);
      return;
    }
    const found: Tenants<HeadRow> = new Map();
    for (const row of rows) put(found, row.projectId, row.tenantId, row);
    for (const load of loads) {
      const { projectId, tenantId } = load.shard;
      const row = find(found, projectId, tenantId);
      if (row === undefined) load.reject(new Error('a shard has no head'));
      else load.resolve(this.#install(load, row.epoch, row.seq));
    }
  }

  #install(load: Load, epoch: number, seq: number): ShardHead {
    const { projectId, tenantId } = load.shard;
    let entry = find(this.#young, projectId, tenantId) ?? find(this.#old, projectId, tenantId);
    if (entry === undefined) entry = { epoch, minSeq: seq };
    else advance(entry, epoch, seq);
    if (load.raised !== undefined) advance(entry, load.raised.epoch, load.raised.minSeq);
    if (!load.isForgotten && find(this.#young, projectId, tenantId) === undefined) {
      this.#remember(projectId, tenantId, entry);
    }
    return entry;
  }
}

function advance(entry: Entry, epoch: number, seq: number): void {
  if (epoch < entry.epoch) return;
  if (epoch > entry.epoch) {
    entry.epoch = epoch;
    entry.minSeq = seq;
  } else if (seq > entry.minSeq) {
    entry.minSeq = seq;
  }
}

function find<T>(map: Tenants<T>, projectId: string, tenantId: string): T | undefined {
  return map.get(projectId)?.get(tenantId);
}

function put<T>(map: Tenants<T>, projectId: string, tenantId: string, value: T): void {
  const tenants = map.get(projectId);
  if (tenants === undefined) map.set(projectId, new Map([[tenantId, value]]));
  else tenants.set(tenantId, value);
}
