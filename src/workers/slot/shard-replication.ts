import type { RecentShard, WorkerStats } from '../../protocol/messages.ts';
import type { ReadScope } from '../../protocol/shard-client.ts';
import { shardHash } from '../../protocol/shard-routing.ts';
import { BusyChecks } from './busy-checks.ts';
import { ReplicatedShard } from './replicated-shard.ts';
import type { ShardQueue } from './shard-queue.ts';
import type { WorkerSlot } from './worker-slot.ts';

const SAMPLE_MS = 100;
/** A worker that is busy for this part of its time has more to do than it can, or soon will. */
const BUSY_MIN = 0.8;
/** So many samples in a row, with most of the requests of one shard. */
const BUSY_SAMPLES = 5;
/** A worker that is busy for longer has nothing to give. */
const FREE_MAX = 0.5;
/** A replica's index must fit beside what its worker holds, with what evaluators will remember. */
const CAPACITY_FACTOR = 1.25;
/** What one shard may take of all workers together, in workers, before one of them would do. */
const IDLE_MAX = 0.6;
const IDLE_SAMPLES = 300;
const LOCAL_REPLICA_IDLE_SAMPLES = 100;
/** So many samples in a row in which most Checks were left to the owner all the same. */
const VAIN_SAMPLES = 10;

export type ReplicationOptions = {
  /** Workers that may answer for one shard; 1: its owner alone. */
  readonly workersMax: number;
  /** Bound of the indexes of one worker. */
  readonly indexBytesMax: number;
  /** How often it is looked at, ms. */
  readonly sampleMs?: number | undefined;
  /** Samples in a row before a shard is replicated, and before it is gathered again. */
  readonly busySamples?: number | undefined;
  readonly idleSamples?: number | undefined;
  /** Replicas on this thread; absent: there are none. */
  readonly localReplicas?: LocalReplicaPlacement | undefined;
};

/** Of the slot behind those of the workers, whose replicas live on this thread. */
export type LocalReplicaPlacement = {
  /** Bound of their indexes together. */
  readonly indexBytesMax: number;
  /** Single Checks a second that make a shard a busy one. */
  readonly checksPerSecondMin: number;
};

/** What becomes of a shard; `localReplicas`: it got a replica on this thread, or lost it. */
export type ReplicationEvent = {
  readonly event: 'shard_spread' | 'shard_gathered';
  readonly isLocalReplica: boolean;
  readonly shardHash: number;
  readonly slots: readonly number[];
};

/** A request's way: the queue of a worker, and what it must show. */
export type Way = { readonly queue: ShardQueue; readonly scope: ReadScope };

type Busy = { queue: ShardQueue; samples: number };

/**
 * Lets several workers answer for a shard whose owner cannot keep up, each from a replica of its index. A shard is replicated once
 * most of what its owner has to do is that shard's, and others have time and room for its index; it is gathered again once one worker would do.
 * How fresh an answer is does not depend on who gives it: every read carries its minRevision, and no less than what any replica has shown.
 */
export class ShardReplication {
  readonly #options: ReplicationOptions;
  readonly #slots: readonly WorkerSlot[];
  readonly #queues: () => Iterable<ShardQueue>;
  readonly #onEvent: (event: ReplicationEvent) => void;
  readonly #replicatedShards = new Map<ShardQueue, ReplicatedShard>();
  readonly #recent: (readonly RecentShard[])[] = [];
  readonly #indexBytes: number[] = [];
  readonly #busy: (Busy | undefined)[] = [];
  readonly #localReplicas: WorkerSlot | null;
  readonly #busyChecks: BusyChecks;
  /** Of one sample. */
  readonly #checksMin: number;
  #turn = 0;
  #timer: NodeJS.Timeout | null = null;

  /** `slots`: those of the workers, and behind them that of this thread where there is one. `queues`: of all owners. */
  constructor(
    options: ReplicationOptions,
    slots: readonly WorkerSlot[],
    queues: () => Iterable<ShardQueue>,
    onEvent: (event: ReplicationEvent) => void,
  ) {
    this.#options = options;
    this.#localReplicas = options.localReplicas === undefined ? null : (slots.at(-1) ?? null);
    const sampleSeconds = (options.sampleMs ?? SAMPLE_MS) / 1_000;
    this.#checksMin = Math.ceil((options.localReplicas?.checksPerSecondMin ?? 0) * sampleSeconds);
    this.#busyChecks = new BusyChecks(this.#checksMin);
    this.#slots = slots;
    this.#queues = queues;
    this.#onEvent = onEvent;
  }

  start(): void {
    const isForWorkers = this.#options.workersMax >= 2 && this.#slots.length >= 2;
    if (!isForWorkers && this.#localReplicas === null) return;
    this.#timer ??= setInterval(() => this.#sample(), this.#options.sampleMs ?? SAMPLE_MS).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Shards that several workers answer for, or are about to. */
  get count(): number {
    return this.#replicatedShards.size - this.localReplicaCount;
  }

  /** Shards with a replica on this thread, or about to have one. O(replicated shards). */
  get localReplicaCount(): number {
    let count = 0;
    for (const { localReplicas } of this.#replicatedShards.values())
      if (localReplicas !== null) count += 1;
    return count;
  }

  /** Whether no shard has more than its owner. */
  get isEmpty(): boolean {
    return this.#replicatedShards.size === 0;
  }

  isReplicated(owner: ShardQueue): boolean {
    return this.#replicatedShards.has(owner);
  }

  /** The slots whose workers must hear of changes of the shard; null: the owner's alone. */
  slotsOf(owner: ShardQueue): readonly number[] | null {
    return this.#replicatedShards.get(owner)?.slots ?? null;
  }

  /** The way of a read; null: as if no shard was replicated. Hot. */
  wayOf(owner: ShardQueue, scope: ReadScope): Way | null {
    if (this.#replicatedShards.size === 0) return null;
    const replicated = this.#replicatedShards.get(owner);
    if (replicated === undefined) return null;
    const raised = replicated.raised(scope);
    if (raised === null) {
      this.#end(replicated);
      return null;
    }
    return {
      queue: replicated.state === 'open' ? this.#leastBusy(replicated) : owner,
      scope: raised,
    };
  }

  /** Counts a single Check of a shard, and gives the replica on this thread that may answer it; null: there is none. Hot. */
  localReplicaOf(owner: ShardQueue): ReplicatedShard | null {
    if (this.#localReplicas === null) return null;
    const replicated =
      this.#replicatedShards.size === 0 ? undefined : this.#replicatedShards.get(owner);
    if (replicated === undefined) {
      this.#busyChecks.count(owner);
      return null;
    }
    if (replicated.localReplicas === null) return null;
    replicated.checks += 1;
    // A message that it has not heard may say that it is of another history.
    return replicated.state === 'open' && this.#localReplicas.isReported ? replicated : null;
  }

  /** This thread cannot keep up with the changes of a shard. */
  tooMuch(owner: ShardQueue): void {
    const replicated = this.#replicatedShards.get(owner);
    if (replicated === undefined || replicated.localReplicas === null) return;
    this.#busyChecks.putOff(owner);
    this.#end(replicated);
  }

  /** A worker says what it holds. */
  report(slot: number, stats: WorkerStats): void {
    this.#indexBytes[slot] = stats.indexBytes;
    if (stats.recentShards !== undefined) this.#recent[slot] = stats.recentShards;
  }

  /** The worker of a slot has gone: what it had of requests fails, and owners answer alone. */
  lost(slot: number): void {
    for (const replicated of this.#replicatedShards.values()) {
      if (slot === replicated.localReplicas) this.#busyChecks.putOff(replicated.owner);
      if (replicated.slots.includes(slot)) this.#end(replicated);
    }
  }

  /** The next worker of a slot is there, and asks for what still waits: it must say what it shows like the one before. */
  ready(slot: number): void {
    for (const replicated of this.#replicatedShards.values()) {
      const queue = replicated.queues.find((one) => one.slot === slot);
      if (queue === undefined) continue;
      if (queue === replicated.owner || queue.pendingCount > 0) void this.#join(replicated, slot);
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

  #sample(): void {
    const used = this.#slots.map((slot) => slot.utilization());
    for (const replicated of this.#replicatedShards.values()) {
      if (replicated.localReplicas === null) this.#settle(replicated, used);
      else this.#settleLocalReplica(replicated);
    }
    if (this.#options.workersMax > 1) {
      for (const slot of this.#slots) this.#sampleSlot(slot.index, used);
    }
    this.#sampleChecks(used);
  }

  /** Gives one of the shards that are asked single Checks all the time a replica on this thread: one after another, since each is loaded here. */
  #sampleChecks(used: readonly number[]): void {
    const busy = this.#busyChecks.sample();
    for (const owner of busy) {
      const isOneLoading = [...this.#replicatedShards.values()].some(
        ({ localReplicas, state }) => localReplicas !== null && state === 'joining',
      );
      if (isOneLoading) return;
      const isReplicatedSoon = this.#options.workersMax > 1 && (used[owner.slot] ?? 0) >= BUSY_MIN;
      if (!isReplicatedSoon && !this.isReplicated(owner)) this.#beginLocalReplica(owner);
    }
  }

  #beginLocalReplica(owner: ShardQueue): void {
    const localReplicas = this.#localReplicas;
    const { indexBytesMax = 0 } = this.#options.localReplicas ?? {};
    const bytes = this.#bytesOf(owner);
    if (localReplicas === null || bytes === undefined) return;
    const spaceBytes = indexBytesMax - (this.#indexBytes[localReplicas.index] ?? indexBytesMax);
    if (bytes * CAPACITY_FACTOR > spaceBytes) return;
    this.#start(new ReplicatedShard(owner, [], this.#slots.length, localReplicas.index));
  }

  #sampleSlot(slot: number, used: readonly number[]): void {
    const { busySamples = BUSY_SAMPLES } = this.#options;
    const queue = (used[slot] ?? 0) < BUSY_MIN ? undefined : this.#mostAsked(slot);
    const busy = this.#busy[slot];
    if (queue === undefined) this.#busy[slot] = undefined;
    else if (busy?.queue !== queue) this.#busy[slot] = { queue, samples: 1 };
    else busy.samples += 1;
    if ((this.#busy[slot]?.samples ?? 0) < busySamples || queue === undefined) return;
    this.#busy[slot] = undefined;
    this.#begin(queue, used);
  }

  /** The shard of which most requests of a worker are, if it is not replicated already. O(shards). */
  #mostAsked(slot: number): ShardQueue | undefined {
    const pending = this.#slots[slot]?.requests.count ?? 0;
    if (pending < 2) return undefined;
    for (const queue of this.#queues()) {
      const isMost = queue.slot === slot && queue.pendingCount * 2 >= pending;
      // One with a replica on this thread is to lose it for those of other workers.
      if (isMost && this.#replicatedShards.get(queue)?.localReplicas !== null) {
        return queue;
      }
    }
    return undefined;
  }

  #begin(owner: ShardQueue, used: readonly number[]): void {
    if (this.isReplicated(owner)) return this.tooMuch(owner);
    const bytes = this.#bytesOf(owner);
    if (bytes === undefined) return;
    const slots = this.#slots
      .map(({ index }) => index)
      .filter((index) => index !== owner.slot && index !== this.#localReplicas?.index)
      .filter((index) => (used[index] ?? 1) <= FREE_MAX)
      .filter((index) => this.#spaceOf(index) >= bytes * CAPACITY_FACTOR)
      .toSorted((a, b) => (used[a] ?? 0) - (used[b] ?? 0))
      .slice(0, this.#options.workersMax - 1);
    if (slots.length === 0) return;
    this.#start(new ReplicatedShard(owner, slots, this.#slots.length));
  }

  #start(replicated: ReplicatedShard): void {
    this.#replicatedShards.set(replicated.owner, replicated);
    Promise.all(replicated.slots.map((slot) => this.#join(replicated, slot))).then(
      () => this.#joined(replicated),
      () => this.#end(replicated),
    );
  }

  #join(replicated: ReplicatedShard, slot: number): Promise<void> {
    const { key, shown } = replicated;
    return (this.#slots[slot] as WorkerSlot).join(key, shown.memory); // of the pool
  }

  #joined(replicated: ReplicatedShard): void {
    if (replicated.state !== 'joining') return;
    // One that could not load it has shown nothing.
    if (replicated.slots.some((slot) => replicated.shown.at(slot) <= 0)) {
      if (replicated.localReplicas !== null) this.#busyChecks.putOff(replicated.owner);
      this.#end(replicated);
    } else {
      replicated.state = 'open';
      this.#report('shard_spread', replicated);
    }
  }

  #bytesOf({ projectId, tenantId, slot }: ShardQueue): number | undefined {
    const found = this.#recent[slot]?.find(
      (shard) => shard.projectId === projectId && shard.tenantId === tenantId,
    );
    return found?.indexBytes;
  }

  #spaceOf(slot: number): number {
    return this.#options.indexBytesMax - (this.#indexBytes[slot] ?? this.#options.indexBytesMax);
  }

  /** Ends what is no longer needed, and forgets it once nobody can notify the difference. */
  #settle(replicated: ReplicatedShard, used: readonly number[]): void {
    const { idleSamples = IDLE_SAMPLES } = this.#options;
    if (replicated.state === 'open') {
      let share = 0;
      for (const queue of replicated.queues) {
        // Below saturation a moment mostly finds nothing: then all of the time is taken for this shard's.
        const pending = this.#pendingOf(queue);
        const part = pending === 0 ? 1 : queue.pendingCount / pending;
        share += part * (used[queue.slot] ?? 0);
      }
      replicated.idleSamples = share < IDLE_MAX ? replicated.idleSamples + 1 : 0;
      if (replicated.idleSamples >= idleSamples) this.#end(replicated);
    }
    if (replicated.state === 'ending') this.#forget(replicated);
  }

  #settleLocalReplica(replicated: ReplicatedShard): void {
    const { checks, answered, owner } = replicated;
    replicated.checks = 0;
    replicated.answered = 0;
    if (replicated.state === 'open') {
      const checksMin = this.#checksMin;
      const { idleSamples = LOCAL_REPLICA_IDLE_SAMPLES } = this.#options;
      replicated.idleSamples = checks * 4 < checksMin ? replicated.idleSamples + 1 : 0;
      const isVain = checks >= checksMin && answered * 2 < checks;
      replicated.vainSamples = isVain ? replicated.vainSamples + 1 : 0;
      if (replicated.idleSamples >= idleSamples) this.#end(replicated);
      else if (replicated.vainSamples >= VAIN_SAMPLES) this.tooMuch(owner);
    }
    if (replicated.state === 'ending') this.#forget(replicated);
  }

  #end(replicated: ReplicatedShard): void {
    if (replicated.state === 'over') return;
    if (replicated.state === 'open') this.#report('shard_gathered', replicated);
    replicated.state = 'ending';
  }

  /** Not before the owner has all that was shown, and replicas have answered what they were asked: they say until then. */
  #forget(replicated: ReplicatedShard): void {
    const [owner, ...others] = replicated.queues;
    if (owner === undefined || others.some(({ pendingCount }) => pendingCount > 0)) return;
    if (!replicated.isOwnerNewest) {
      this.#slots[owner.slot]?.control?.hint(replicated.key, replicated.shown.newest);
      // Where nobody asked the owner it may have dropped its index: then it loads what it is to catch up with.
      if (!replicated.isOwnerAsked) {
        replicated.isOwnerAsked = true;
        const isAnswered = (): void => void (replicated.isOwnerAsked = false);
        this.#join(replicated, owner.slot).then(isAnswered, isAnswered);
      }
      return;
    }
    replicated.state = 'over';
    this.#replicatedShards.delete(owner);
    for (const slot of replicated.slots) {
      this.#slots[slot]?.control?.leave(replicated.key, slot === owner.slot);
    }
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
