import type { CarriedChanges, CommittedChange } from '../../model/packed-changes.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ControlMessage } from '../../protocol/messages.ts';

const CHANGES_MAX = 4_096;
const CHANGE_BYTES_MAX = 16 * 1024 * 1024;
const HINTED_SHARDS_MAX = 4_096;

/**
 * Messages that wait to be sent to one worker besides requests. Bounded: beyond the bound, changes and hints are
 * dropped and replaced by "every shard polls for changes", since a lost one costs latency and never correctness. Hints
 * of one shard are coalesced into the highest.
 */
export class ControlQueue {
  #messages: ControlMessage[] = [];
  #changeCount = 0;
  #changeBytes = 0;
  #hints = new Map<string, { readonly shard: ShardKey; revision: number }>();
  #hintAll = false;

  get isEmpty(): boolean {
    return this.#messages.length === 0 && this.#hints.size === 0 && !this.#hintAll;
  }

  /** Models and their refusals; few, and never dropped. */
  enqueue(message: ControlMessage): void {
    this.#messages.push(message);
  }

  /** The worker is no longer one of several that answer for `shard`. */
  leave(shard: ShardKey, isOwner: boolean): void {
    this.#messages.push({ kind: 'leave', shard, isOwner });
  }

  committed(change: CommittedChange): void {
    if (
      this.#changeCount >= CHANGES_MAX ||
      this.#changeBytes + change.changes.length > CHANGE_BYTES_MAX
    ) {
      this.#hintAll = true;
      return;
    }
    this.#changeCount += 1;
    this.#changeBytes += change.changes.length;
    this.#messages.push({ kind: 'committed', change });
  }

  carried(carried: CarriedChanges): void {
    // That a history was lost is rare, short, and never dropped.
    if (carried.isLost) {
      this.#messages.push({ kind: 'carried', carried: { ...carried, changes: [] } });
      return;
    }
    const bytes = carried.changes.reduce((sum, { changes }) => sum + changes.length, 0);
    if (this.#changeCount >= CHANGES_MAX || this.#changeBytes + bytes > CHANGE_BYTES_MAX) {
      this.#hintAll = true;
      return;
    }
    this.#changeCount += carried.changes.length;
    this.#changeBytes += bytes;
    this.#messages.push({ kind: 'carried', carried });
  }

  hint(shard: ShardKey | null, revision: number): void {
    if (shard === null) {
      this.#hintAll = true;
      return;
    }
    const key = `${shard.projectId}\0${shard.tenantId}`;
    const known = this.#hints.get(key);
    if (known !== undefined) {
      known.revision = Math.max(known.revision, revision);
    } else if (this.#hints.size >= HINTED_SHARDS_MAX) {
      this.#hintAll = true;
    } else {
      this.#hints.set(key, { shard, revision });
    }
  }

  /** Everything that waits, in order; hints last. Empties the queue. */
  drain(): readonly ControlMessage[] {
    const drained = this.#messages;
    for (const { shard, revision } of this.#hints.values())
      drained.push({ kind: 'hint', shard, revision });
    if (this.#hintAll) drained.push({ kind: 'hint', shard: null, revision: 0 });
    this.clear();
    return drained;
  }

  clear(): void {
    this.#messages = [];
    this.#changeCount = 0;
    this.#changeBytes = 0;
    this.#hints = new Map();
    this.#hintAll = false;
  }
}
