import type { RecentShard, WorkerStats } from '../../protocol/messages.ts';
import type { ShardQueue } from '../queues/shard-queue.ts';
import type { WorkerSlot } from '../slot/worker-slot.ts';
import { BusyChecks } from './busy-checks.ts';
import { ReplicatedShard } from './replicated-shard.ts';
import { ReplicatedShards, type ReplicationEvent } from './replicated-shards.ts';

const SAMPLE_MS = 100;
/** A worker that is busy for this part of its time has more to do than it can, or soon will. */
const BUSY_MIN = 0.8;
/** So many samples in a row, with most of the requests of one shard. */
const BUSY_SAMPLES = 5;
/** A worker that is busy for longer has nothing to give. */
const FREE_MAX = 0.5;
/** A replica's index must fit beside what its worker holds, with what evaluators will remember. */
const CAPACITY_FACTOR = 1.25;
/** Load of one shard on all workers together, in workers, below which one of them suffices. */
const IDLE_MAX = 0.6;
const IDLE_SAMPLES = 300;
const LOCAL_REPLICA_IDLE_SAMPLES = 100;
/** So many samples in a row in which most Checks were left to the owner all the same. */
const LOW_HIT_SAMPLES_MAX = 10;

export type ReplicationOptions = {
  /** Workers that may answer for one shard; 1: its owner alone. */
  readonly workersMax: number;
  /** Bound of the indexes of one worker. */
  readonly indexBytesMax: number;
  /** Time between two samples, ms. */
  readonly sampleMs?: number | undefined;
  /** Samples in a row before a shard is replicated, and before it is gathered again. */
  readonly busySamples?: number | undefined;
  readonly idleSamples?: number | undefined;
  /** Replicas on this thread; absent if none. */
  readonly localReplicas?: LocalReplicaPlacement | undefined;
};

/** The slot behind those of the workers, whose replicas live on this thread. */
export type LocalReplicaPlacement = {
  /** Bound of their indexes together. */
  readonly indexBytesMax: number;
  /** Single Checks a second that make a shard a busy one. */
  readonly checksPerSecondMin: number;
};

type Busy = { queue: ShardQueue; samples: number };

/**
 * Lets several workers answer for a shard whose owner cannot keep up, each from a replica of its index. A shard is
 * replicated once it is most of its owner's work, and others have time and memory for its index. It is gathered again
 * once one worker suffices. How fresh an answer is does not depend on the worker: every read carries its minRevision,
 * at least the newest revision that any replica has shown.
 */
export class ShardReplication {
  readonly shards: ReplicatedShards;
  readonly #options: ReplicationOptions;
  readonly #slots: readonly WorkerSlot[];
  readonly #queues: () => Iterable<ShardQueue>;
  readonly #recent: (readonly RecentShard[])[] = [];
  readonly #indexBytes: number[] = [];
  readonly #busy: (Busy | undefined)[] = [];
  readonly #localReplicas: WorkerSlot | null;
  readonly #busyChecks: BusyChecks;
  /** Checks of one sample that make a shard a busy one. */
  readonly #checksMin: number;
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
    this.shards = new ReplicatedShards(slots, this.#localReplicas, this.#busyChecks, onEvent);
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

  /** Takes in the statistics of a worker. */
  report(slot: number, stats: WorkerStats): void {
    this.#indexBytes[slot] = stats.indexBytes;
    if (stats.recentShards !== undefined) this.#recent[slot] = stats.recentShards;
  }

  #sample(): void {
    const used = this.#slots.map((slot) => slot.utilization());
    for (const replicated of this.shards.all()) {
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
      const isOneLoading = [...this.shards.all()].some(
        ({ localReplicas, state }) => localReplicas !== null && state === 'joining',
      );
      if (isOneLoading) return;
      const isReplicatedSoon = this.#options.workersMax > 1 && (used[owner.slot] ?? 0) >= BUSY_MIN;
      if (!isReplicatedSoon && !this.shards.isReplicated(owner)) this.#beginLocalReplica(owner);
    }
  }

  #beginLocalReplica(owner: ShardQueue): void {
    const localReplicas = this.#localReplicas;
    const { indexBytesMax = 0 } = this.#options.localReplicas ?? {};
    const bytes = this.#bytesOf(owner);
    if (localReplicas === null || bytes === undefined) return;
    const spaceBytes = indexBytesMax - (this.#indexBytes[localReplicas.index] ?? indexBytesMax);
    if (bytes * CAPACITY_FACTOR > spaceBytes) return;
    this.shards.startReplicating(
      new ReplicatedShard(owner, [], this.#slots.length, localReplicas.index),
    );
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
      if (isMost && this.shards.replicatedShardOf(queue)?.localReplicas !== null) {
        return queue;
      }
    }
    return undefined;
  }

  #begin(owner: ShardQueue, used: readonly number[]): void {
    if (this.shards.isReplicated(owner)) return this.shards.dropLocalReplica(owner);
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
    this.shards.startReplicating(new ReplicatedShard(owner, slots, this.#slots.length));
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

  /** Ends a replication that is no longer needed, and forgets it once no caller can see the difference. */
  #settle(replicated: ReplicatedShard, used: readonly number[]): void {
    const { idleSamples = IDLE_SAMPLES } = this.#options;
    if (replicated.state === 'open') {
      let share = 0;
      for (const queue of replicated.queues) {
        // Below saturation a moment mostly finds nothing: then all of the time is taken for this shard's.
        const pending = (this.#slots[queue.slot] as WorkerSlot).requests.count; // by slotOfShard
        const part = pending === 0 ? 1 : queue.pendingCount / pending;
        share += part * (used[queue.slot] ?? 0);
      }
      replicated.idleSamples = share < IDLE_MAX ? replicated.idleSamples + 1 : 0;
      if (replicated.idleSamples >= idleSamples) this.shards.stopReplicating(replicated);
    }
    if (replicated.state === 'ending') this.shards.forget(replicated);
  }

  #settleLocalReplica(replicated: ReplicatedShard): void {
    const { checks, answered, owner } = replicated;
    replicated.checks = 0;
    replicated.answered = 0;
    if (replicated.state === 'open') {
      const checksMin = this.#checksMin;
      const { idleSamples = LOCAL_REPLICA_IDLE_SAMPLES } = this.#options;
      replicated.idleSamples = checks * 4 < checksMin ? replicated.idleSamples + 1 : 0;
      const isLowHit = checks >= checksMin && answered * 2 < checks;
      replicated.lowHitSamples = isLowHit ? replicated.lowHitSamples + 1 : 0;
      if (replicated.idleSamples >= idleSamples) this.shards.stopReplicating(replicated);
      else if (replicated.lowHitSamples >= LOW_HIT_SAMPLES_MAX) this.shards.dropLocalReplica(owner);
    }
    if (replicated.state === 'ending') this.shards.forget(replicated);
  }
}
