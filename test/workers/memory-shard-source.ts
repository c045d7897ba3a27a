import { type CommittedChange, packChanges } from '../../src/model/packed-changes.ts';
import type { ShardKey, TupleChange } from '../../src/model/relation-tuple.ts';
import { subjectToColumns } from '../../src/model/relation-tuple.ts';
import type {
  ChangePage,
  StoredHeadRevision,
  ShardPosition,
  StoredChange,
} from '../../src/store/feed/changes.ts';
import type { SnapshotPage } from '../../src/store/feed/snapshot-page.ts';
import type { SnapshotSink } from '../../src/store/feed/snapshot.ts';
import type { ShardSource } from '../../src/workers/shard/ports.ts';

type Stored = {
  head: StoredHeadRevision;
  changes: StoredChange[];
  readonly tuples: Map<string, TupleChange['tuple']>;
};

export const EPOCH = 1;

/** What a test does to the store: throw, wait, or nothing. Called before each read. */
export type StoreFault = (
  what: 'load' | 'changes' | 'heads' | 'page',
  shard: ShardKey | null,
) => Promise<void>;

/** The truth in memory, for actors without Postgres. Every answer is a consistent copy. */
export class MemoryShardSource implements ShardSource {
  readonly #shards = new Map<string, Stored>();
  fault: StoreFault = () => Promise.resolve();
  loads = 0;
  pages = 0;
  /** Rows between two pauses of a snapshot. */
  rowsPerSlice = 64;
  pauseMs = 0;

  /** What the planner would say. */
  estimate = 0;

  estimateRows(): Promise<number> {
    return Promise.resolve(this.estimate);
  }

  /** Commits one revision and returns it as the writer hands it on. */
  commit(
    shard: ShardKey,
    changes: readonly TupleChange[],
    settingsVersion = this.#stored(shard).head.settingsVersion,
  ): CommittedChange {
    const stored = this.#stored(shard);
    const revision = stored.head.revision + 1;
    const forkId = String(revision * 7919 + stored.head.epoch);
    const packed = packChanges(changes);
    stored.changes.push({ revision, forkId, settingsVersion, changes: packed });
    stored.head = { ...stored.head, revision, forkId, settingsVersion };
    for (const { op, tuple } of changes) {
      const key = identity(tuple);
      if (op === 'insert') stored.tuples.set(key, tuple);
      else stored.tuples.delete(key);
    }
    const { epoch } = stored.head;
    return { ...shard, epoch, revision, forkId, settingsVersion, changes: packed };
  }

  head(shard: ShardKey): StoredHeadRevision {
    return this.#stored(shard).head;
  }

  tuplesOf(shard: ShardKey): ReadonlyMap<string, TupleChange['tuple']> {
    return this.#stored(shard).tuples;
  }

  /** Forgets changes before `revision`, as retention does. */
  prune(shard: ShardKey, revision: number): void {
    const stored = this.#stored(shard);
    stored.changes = stored.changes.filter((change) => change.revision >= revision);
    stored.head = { ...stored.head, retainedFrom: revision };
  }

  /** Another history: a restore from an older backup, or a new epoch. */
  diverge(shard: ShardKey, head: Partial<StoredHeadRevision>): void {
    const stored = this.#stored(shard);
    stored.head = { ...stored.head, ...head };
    stored.changes = stored.changes
      .filter((change) => change.revision <= stored.head.revision)
      .map((change) =>
        change.revision === stored.head.revision
          ? { ...change, forkId: stored.head.forkId }
          : change,
      );
  }

  async loadSnapshot(
    shard: ShardKey,
    sink: SnapshotSink,
    signal: AbortSignal,
  ): Promise<StoredHeadRevision> {
    this.loads += 1;
    await this.fault('load', shard);
    const { head, tuples } = this.#stored(shard);
    const rows = [...tuples.values()];
    sink.begin(head);
    let count = 0;
    for (const tuple of rows) {
      const { bytes, bounds } = rowOf(tuple);
      sink.row(bytes, bounds);
      count += 1;
      if (count % this.rowsPerSlice === 0) {
        await new Promise((resolve) => setTimeout(resolve, this.pauseMs));
        signal.throwIfAborted();
      }
    }
    return head;
  }

  async readChanges(shard: ShardKey, afterRevision: number): Promise<ChangePage> {
    this.pages += 1;
    await this.fault('changes', shard);
    const { head, changes } = this.#stored(shard);
    const at = changes.find((change) => change.revision === afterRevision);
    const forkIdAtStart =
      afterRevision === 0 ? '0' : afterRevision === head.revision ? head.forkId : at?.forkId;
    const isPruned = afterRevision + 1 < head.retainedFrom;
    return {
      headRevision: head,
      forkIdAtStart,
      changes: isPruned
        ? []
        : changes.filter((change) => change.revision > afterRevision).slice(0, 3),
    };
  }

  async readPage(
    shard: ShardKey,
    after: readonly string[] | null,
    limit: number,
  ): Promise<SnapshotPage> {
    await this.fault('page', shard);
    const { head, tuples } = this.#stored(shard);
    const keyed = [...tuples.values()].map((tuple) => ({ key: columnsOf(tuple), tuple }));
    const page = keyed
      .filter(({ key }) => after === null || compareKeys(key, after) > 0)
      .toSorted((a, b) => compareKeys(a.key, b.key))
      .slice(0, limit);
    const parts: Uint8Array[] = [];
    const bounds: number[] = [];
    let end = 0;
    for (const { tuple } of page) {
      const row = rowOf(tuple);
      parts.push(row.bytes);
      for (const bound of row.bounds) bounds.push(bound < 0 ? -1 : bound + end);
      end += row.bytes.length;
    }
    const next = page.length < limit ? null : (page.at(-1)?.key ?? null);
    const bytes = Buffer.concat(parts);
    return { headRevision: head, bytes, bounds: Int32Array.from(bounds), rows: page.length, next };
  }

  async readHeadRevisions(
    shards: readonly ShardKey[],
  ): Promise<readonly (ShardKey & ShardPosition)[]> {
    await this.fault('heads', null);
    return shards.map((shard) => ({ ...shard, ...this.#stored(shard).head }));
  }

  #stored(shard: ShardKey): Stored {
    const key = `${shard.projectId}\0${shard.tenantId}`;
    let stored = this.#shards.get(key);
    if (stored === undefined) {
      stored = {
        head: { epoch: EPOCH, revision: 0, forkId: '0', retainedFrom: 1, settingsVersion: 0 },
        changes: [],
        tuples: new Map(),
      };
      this.#shards.set(key, stored);
    }
    return stored;
  }
}

function columnsOf(tuple: TupleChange['tuple']): readonly string[] {
  return [tuple.namespace, tuple.objectId, tuple.relation, ...subjectToColumns(tuple.subject)];
}

function compareKeys(a: readonly string[], b: readonly string[]): number {
  return Buffer.compare(Buffer.from(a.join('\0')), Buffer.from(b.join('\0')));
}

function identity(tuple: TupleChange['tuple']): string {
  return JSON.stringify(columnsOf(tuple));
}

/** A tuple as COPY sends it. */
function rowOf(tuple: TupleChange['tuple']): { bytes: Uint8Array; bounds: Int32Array } {
  const expires = Buffer.alloc(8);
  if (tuple.expiresAtUs !== undefined) expires.writeBigInt64BE(tuple.expiresAtUs);
  const columns = [
    Buffer.from(tuple.namespace),
    Buffer.from(tuple.objectId),
    Buffer.from(tuple.relation),
    ...subjectToColumns(tuple.subject).map((text) => Buffer.from(text)),
    tuple.expiresAtUs === undefined ? null : expires,
    tuple.conditionName === undefined ? null : Buffer.from(tuple.conditionName),
    tuple.conditionParams === undefined ? null : Buffer.from(tuple.conditionParams),
  ];
  const bounds = new Int32Array(18).fill(-1);
  let end = 0;
  columns.forEach((column, i) => {
    if (column === null) return;
    bounds[2 * i] = end;
    end += column.length;
    bounds[2 * i + 1] = end;
  });
  return { bytes: Buffer.concat(columns.filter((column) => column !== null)), bounds };
}
