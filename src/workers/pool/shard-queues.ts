import type { ShardKey } from '../../model/relation-tuple.ts';
import { slotOfShard } from '../../protocol/shard-routing.ts';
import { ShardQueue } from '../queues/shard-queue.ts';

/** Queues that are kept, of idle shards too; each takes about 700 bytes. More while more have requests. */
const SHARD_QUEUES_MAX = 4_096;

/** The queues of the shards that were asked of late, each with the slot of its owner. */
export class ShardQueues {
  readonly #slotCount: number;
  readonly #isKept: (queue: ShardQueue) => boolean;
  readonly #queues = new Map<string, Map<string, ShardQueue>>();
  #count = 0;
  #countMax = SHARD_QUEUES_MAX;

  /** `isKept`: an idle one that must not be forgotten. */
  constructor(slotCount: number, isKept: (queue: ShardQueue) => boolean) {
    this.#slotCount = slotCount;
    this.#isKept = isKept;
  }

  /** The queue of a shard, where it was asked of late. Two lookups instead of a hash and a joined key per request. Hot. */
  peek(key: ShardKey): ShardQueue | undefined {
    return this.#queues.get(key.projectId)?.get(key.tenantId);
  }

  /** Finds the queue of a shard, or makes it. Hot. */
  of(key: ShardKey): ShardQueue {
    const known = this.#queues.get(key.projectId)?.get(key.tenantId);
    if (known !== undefined) return known;
    if (this.#count >= this.#countMax) this.#forgetIdle();
    let tenants = this.#queues.get(key.projectId);
    if (tenants === undefined) {
      tenants = new Map();
      this.#queues.set(key.projectId, tenants);
    }
    const { projectId, tenantId } = key;
    const made = new ShardQueue(projectId, tenantId, slotOfShard(key, this.#slotCount));
    tenants.set(tenantId, made);
    this.#count += 1;
    return made;
  }

  *all(): Generator<ShardQueue> {
    for (const tenants of this.#queues.values()) yield* tenants.values();
  }

  #forgetIdle(): void {
    for (const [projectId, tenants] of this.#queues) {
      for (const [tenantId, queue] of tenants) {
        if (queue.pendingCount === 0 && !this.#isKept(queue)) {
          tenants.delete(tenantId);
          this.#count -= 1;
        }
      }
      if (tenants.size === 0) this.#queues.delete(projectId);
    }
    // While most of them are busy, they are not all visited for each new one.
    this.#countMax = Math.max(SHARD_QUEUES_MAX, this.#count * 2);
  }
}
