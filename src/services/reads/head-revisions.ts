import type { ShardKey } from '../../model/relation-tuple.ts';

/** Lowest position that a read of a shard must see. The object is live: read it, do not keep it. */
export type HeadRevision = {
  readonly epoch: number;
  readonly minRevision: number;
  /** Decimal text of the fork id of `minRevision`; '' is unknown. */
  readonly forkId: string;
};

type HeadEntry = { epoch: number; minRevision: number; forkId: string };
/** By project, then by tenant. */
export type Tenants<T> = Map<string, Map<string, T>>;

/** A query for the head revision of one shard that is under way. */
export type HeadRevisionRead = {
  readonly shard: ShardKey;
  /** Highest position raised meanwhile. */
  raised: HeadEntry | undefined;
  /** Everything was forgotten meanwhile: what is found serves those who wait for it only. */
  isForgotten: boolean;
};

/** Result of a query for a head revision. */
export type FoundPosition = {
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
  /** Position that was known when the query was sent, where it is not in the stored history. */
  readonly lost: { readonly epoch: number; readonly revision: number } | undefined;
};

export type HeadRevisionsOptions = {
  /** Entries at most; at least half as many of the most recently used are kept. */
  readonly entriesMax: number;
};

/**
 * Head revisions of shards that this process knows: the highest that it acknowledged or returned. A read
 * answered at or above it is never stale for a caller of this process.
 *
 * I1 A ready entry is at or above every position raised since the query that made it was sent.
 *    [head-revisions.test.ts]
 * I2 An evicted entry is queried again: absence is never taken for revision 0.
 *    [head-revisions.test.ts]
 * I3 While the outcome of a write is unknown, `peek` answers undefined, so that reads query.
 *    [head-revisions.test.ts]
 * I4 A position was committed before its entry was made: a query that is sent later and finds less,
 *    or another fork id, has found another history. [head-revisions.test.ts]
 */
export class HeadRevisions {
  // Two generations instead of a linked list: the hot path writes nothing unless it promotes.
  #young: Tenants<HeadEntry> = new Map();
  #old: Tenants<HeadEntry> = new Map();
  #youngCount = 0;
  /** Queries under way: the shards of each. */
  readonly #underWay = new Set<Tenants<HeadRevisionRead>>();
  readonly #unknown: Tenants<number> = new Map();
  readonly #generationMax: number;

  constructor(options: HeadRevisionsOptions) {
    this.#generationMax = Math.max(1, Math.floor(options.entriesMax / 2));
  }

  /** The head revision if it is known, without waiting. Hot: two or three map lookups, no allocation. */
  peek(projectId: string, tenantId: string): HeadRevision | undefined {
    if (this.#unknown.size !== 0 && find(this.#unknown, projectId, tenantId) !== undefined) {
      return undefined;
    }
    return this.known(projectId, tenantId);
  }

  /**
   * Same as `peek`, also while a write may have moved the head revision: the entry was committed
   * all the same.
   */
  known(projectId: string, tenantId: string): HeadRevision | undefined {
    return find(this.#young, projectId, tenantId) ?? this.#promote(projectId, tenantId);
  }

  /**
   * Records a position that was committed or read, before any caller learns of it. An absent entry
   * stays absent: the next read queries, and sees at least this position. `forkId` is that of `revision`.
   */
  raise(projectId: string, tenantId: string, epoch: number, revision: number, forkId = ''): void {
    const entry = find(this.#young, projectId, tenantId) ?? find(this.#old, projectId, tenantId);
    if (entry !== undefined) advance(entry, epoch, revision, forkId);
    for (const reads of this.#underWay) {
      const read = find(reads, projectId, tenantId);
      if (read === undefined) continue;
      if (read.raised === undefined) read.raised = { epoch, minRevision: revision, forkId };
      else advance(read.raised, epoch, revision, forkId);
    }
  }

  /**
   * Makes every read query again, since another writer may have written. The results of queries
   * under way are not remembered: they may be older.
   */
  forgetAll(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#youngCount = 0;
    for (const reads of this.#underWay) {
      for (const tenants of reads.values()) {
        for (const read of tenants.values()) read.isForgotten = true;
      }
    }
  }

  /** Makes reads of this shard query, until `clearUnknown` was called as often. */
  markUnknown(projectId: string, tenantId: string): void {
    put(this.#unknown, projectId, tenantId, (find(this.#unknown, projectId, tenantId) ?? 0) + 1);
  }

  clearUnknown(projectId: string, tenantId: string): void {
    const count = find(this.#unknown, projectId, tenantId) ?? 0;
    if (count > 1) return put(this.#unknown, projectId, tenantId, count - 1);
    remove(this.#unknown, projectId, tenantId);
  }

  /** Registers a query for these shards as sent: positions raised from now on count for them. */
  sent(reads: Tenants<HeadRevisionRead>): void {
    this.#underWay.add(reads);
  }

  /** That query has ended, and what it found is installed. */
  ended(reads: Tenants<HeadRevisionRead>): void {
    this.#underWay.delete(reads);
  }

  /** Adopts the result of a query, before it has `ended`; returns the position that reads must see. */
  install(read: HeadRevisionRead, found: FoundPosition): HeadRevision {
    const { projectId, tenantId } = read.shard;
    const { epoch, revision, forkId, lost } = found;
    let entry = find(this.#young, projectId, tenantId) ?? find(this.#old, projectId, tenantId);
    if (entry === undefined) {
      entry = { epoch, minRevision: revision, forkId };
    } else if (
      lost !== undefined &&
      entry.epoch === lost.epoch &&
      entry.minRevision === lost.revision
    ) {
      // Unless it moved meanwhile: then it knows the other history already.
      entry.epoch = epoch;
      entry.minRevision = revision;
      entry.forkId = forkId;
    } else advance(entry, epoch, revision, forkId);
    const { raised } = read;
    if (raised !== undefined) advance(entry, raised.epoch, raised.minRevision, raised.forkId);
    if (!read.isForgotten && find(this.#young, projectId, tenantId) === undefined) {
      this.#remember(projectId, tenantId, entry);
    }
    return entry;
  }

  #promote(projectId: string, tenantId: string): HeadRevision | undefined {
    const entry = find(this.#old, projectId, tenantId);
    if (entry !== undefined) this.#remember(projectId, tenantId, entry);
    return entry;
  }

  /** Puts an entry that is not in the young generation there. */
  #remember(projectId: string, tenantId: string, entry: HeadEntry): void {
    if (this.#youngCount >= this.#generationMax) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngCount = 0;
    }
    put(this.#young, projectId, tenantId, entry);
    this.#youngCount++;
  }
}

function advance(entry: HeadEntry, epoch: number, revision: number, forkId: string): void {
  if (epoch < entry.epoch) return;
  if (epoch > entry.epoch || revision > entry.minRevision) {
    entry.epoch = epoch;
    entry.minRevision = revision;
    entry.forkId = forkId;
  } else if (revision === entry.minRevision && entry.forkId === '') entry.forkId = forkId;
}

/** Two lookups instead of a joined key. */
export function find<T>(map: Tenants<T>, projectId: string, tenantId: string): T | undefined {
  return map.get(projectId)?.get(tenantId);
}

export function put<T>(map: Tenants<T>, projectId: string, tenantId: string, value: T): void {
  const tenants = map.get(projectId);
  if (tenants === undefined) map.set(projectId, new Map([[tenantId, value]]));
  else tenants.set(tenantId, value);
}

export function remove<T>(map: Tenants<T>, projectId: string, tenantId: string): void {
  const tenants = map.get(projectId);
  tenants?.delete(tenantId);
  if (tenants?.size === 0) map.delete(projectId);
}
