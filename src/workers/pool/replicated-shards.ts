import type { ReadScope } from '../../protocol/shard-client.ts';
import { shardHash } from '../../protocol/shard-routing.ts';
import type { ShardQueue } from '../queues/shard-queue.ts';
import type { WorkerSlot } from '../slot/worker-slot.ts';
import type { BusyChecks } from './busy-checks.ts';
import type { ReplicatedShard } from './replicated-shard.ts';

/** A change in the replication of a shard; `localReplicas`: it got a replica on this thread, or lost it. */
export type ReplicationEvent = {
  readonly event: 'shard_spread' | 'shard_gathered';
  readonly isLocalReplica: boolean;
  readonly shardHash: number;
  readonly slots: readonly number[];
};

/** A request's way: the queue of a worker, and what it must show. */
type ReadRoute = { readonly queue: ShardQueue; readonly scope: ReadScope };

/** The shards that several workers answer for, from their first load to when nobody remembers: who answers a read, and who must hear of changes. */
export class ReplicatedShards {
  readonly #slots: readonly WorkerSlot[];
  readonly #localReplicas: WorkerSlot | null;
  readonly #busyChecks: BusyChecks;
  readonly #onEvent: (event: ReplicationEvent) => void;
  readonly #shards = new Map<ShardQueue, ReplicatedShard>();
  #turn = 0;

  /** `localReplicas`: the slot of this thread, the last of `slots`; null if none. */
  constructor(
    slots: readonly WorkerSlot[],
    localReplicas: WorkerSlot | null,
    busyChecks: BusyChecks,
    onEvent: (event: ReplicationEvent) => void,
  ) {
    this.#slots = slots;
    this.#localReplicas = localReplicas;
    this.#busyChecks = busyChecks;
    this.#onEvent = onEvent;
  }

  all(): Iterable<ReplicatedShard> {
    return this.#shards.values();
  }

  replicatedShardOf(owner: ShardQueue): ReplicatedShard | undefined {
    return this.#shards.get(owner);
  }

  /** Shards that several workers answer for, or are about to. */
  get count(): number {
    return this.#shards.size - this.localReplicaCount;
  }

  /** Shards with a replica on this thread, or about to have one. O(replicated shards). */
  get localReplicaCount(): number {
    let count = 0;
    for (const { localReplicas } of this.#shards.values()) if (localReplicas !== null) count += 1;
    return count;
  }

  /** Whether no shard has more than its owner. */
  get isEmpty(): boolean {
    return this.#shards.size === 0;
  }

  isReplicated(owner: ShardQueue): boolean {
    return this.#shards.has(owner);
  }

  /** The slots whose workers must hear of changes of the shard; null: the owner's alone. */
  slotsOf(owner: ShardQueue): readonly number[] | null {
    return this.#shards.get(owner)?.slots ?? null;
  }

  /** The way of a read; null: as if no shard was replicated. Hot. */
  routeOf(owner: ShardQueue, scope: ReadScope): ReadRoute | null {
    if (this.#shards.size === 0) return null;
    const replicated = this.#shards.get(owner);
    if (replicated === undefined) return null;
    const raised = replicated.raised(scope);
    if (raised === null) {
      this.stopReplicating(replicated);
      return null;
    }
    return {
      queue: replicated.state === 'open' ? this.#leastBusy(replicated) : owner,
      scope: raised,
    };
  }

  /** Counts a single Check of a shard, and gives the replica on this thread that may answer it; null if none. Hot. */
  localReplicaOf(owner: ShardQueue): ReplicatedShard | null {
    if (this.#localReplicas === null) return null;
    const replicated = this.#shards.size === 0 ? undefined : this.#shards.get(owner);
    if (replicated === undefined) {
      this.#busyChecks.count(owner);
      return null;
    }
    if (replicated.localReplicas === null) return null;
    replicated.checks += 1;
    // A message that it has not got yet may name another history.
    return replicated.state === 'open' && this.#localReplicas.isInSync ? replicated : null;
  }

  /** This thread cannot keep up with the changes of a shard. */
  dropLocalReplica(owner: ShardQueue): void {
    const replicated = this.#shards.get(owner);
    if (replicated === undefined || replicated.localReplicas === null) return;
    this.#busyChecks.postpone(owner);
    this.stopReplicating(replicated);
  }

  /** Has replicas loaded; they answer once all have. */
  startReplicating(replicated: ReplicatedShard): void {
    this.#shards.set(replicated.owner, replicated);
    Promise.all(replicated.slots.map((slot) => this.#join(replicated, slot))).then(
      () => this.#joined(replicated),
      () => this.stopReplicating(replicated),
    );
  }

  /** From now on the owner alone is asked. */
  stopReplicating(replicated: ReplicatedShard): void {
    if (replicated.state === 'over') return;
    if (replicated.state === 'open') this.#report('shard_gathered', replicated);
    replicated.state = 'ending';
  }

  /**
   * Forgets one that was ended, once the owner has all that was shown and replicas have no pending request: they show
   * until then.
   */
  forget(replicated: ReplicatedShard): void {
    const [owner, ...others] = replicated.queues;
    if (owner === undefined || others.some(({ pendingCount }) => pendingCount > 0)) return;
    if (!replicated.isOwnerNewest) {
      this.#slots[owner.slot]?.control?.hint(replicated.key, replicated.watermarks.newest);
      // Without requests the owner may have dropped its index: then it loads one to catch up.
      if (!replicated.isOwnerAsked) {
        replicated.isOwnerAsked = true;
        const isAnswered = (): void => void (replicated.isOwnerAsked = false);
        this.#join(replicated, owner.slot).then(isAnswered, isAnswered);
      }
      return;
    }
    replicated.state = 'over';
    this.#shards.delete(owner);
    for (const slot of replicated.slots) {
      this.#slots[slot]?.control?.leave(replicated.key, slot === owner.slot);
    }
  }

  /** The worker of a slot has gone: what it had of requests fails, and owners answer alone. */
  lost(slot: number): void {
    for (const replicated of this.#shards.values()) {
      if (slot === replicated.localReplicas) this.#busyChecks.postpone(replicated.owner);
      if (replicated.slots.includes(slot)) this.stopReplicating(replicated);
    }
  }

  /**
   * The next worker of a slot is there, and gets what still waits: it must publish what it shows like the one before.
   */
  ready(slot: number): void {
    for (const replicated of this.#shards.values()) {
      const queue = replicated.queues.find((one) => one.slot === slot);
      if (queue === undefined) continue;
      if (queue === replicated.owner || queue.pendingCount > 0) void this.#join(replicated, slot);
    }
  }

  #join(replicated: ReplicatedShard, slot: number): Promise<void> {
    const { key, watermarks } = replicated;
    return (this.#slots[slot] as WorkerSlot).join(key, watermarks.memory); // of the pool
  }

  #joined(replicated: ReplicatedShard): void {
    if (replicated.state !== 'joining') return;
    // A worker that could not load the shard has published no watermark.
    if (replicated.slots.some((slot) => replicated.watermarks.at(slot) <= 0)) {
      if (replicated.localReplicas !== null) this.#busyChecks.postpone(replicated.owner);
      this.stopReplicating(replicated);
    } else {
      replicated.state = 'open';
      this.#report('shard_spread', replicated);
    }
  }

  #leastBusy({ queues }: ReplicatedShard): ShardQueue {
    this.#turn += 1;
    let least = queues[this.#turn % queues.length] as ShardQueue; // below length
    let count = this.#pendingOf(least);
    for (const queue of queues) {
      if (this.#pendingOf(queue) >= count) continue;
      least = queue;
      count = this.#pendingOf(queue);
    }
    return least;
  }

  #pendingOf(queue: ShardQueue): number {
    return (this.#slots[queue.slot] as WorkerSlot).requests.count; // by slotOfShard
  }

  #report(event: ReplicationEvent['event'], { key, slots, localReplicas }: ReplicatedShard): void {
    this.#onEvent({
      event,
      shardHash: shardHash(key),
      slots,
      isLocalReplica: localReplicas !== null,
    });
  }
}
