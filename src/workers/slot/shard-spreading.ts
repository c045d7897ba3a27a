import type { RecentShard, WorkerStats } from '../../protocol/messages.ts';
import type { ReadScope } from '../../protocol/shard-client.ts';
import { shardHash } from '../../protocol/shard-routing.ts';
import { BusyChecks } from './busy-checks.ts';
import type { ShardQueue } from './shard-queue.ts';
import { SpreadShard } from './spread-shard.ts';
import type { WorkerSlot } from './worker-slot.ts';

const SAMPLE_MS = 100;
/** A worker that is busy for this part of its time has more to do than it can, or soon will. */
const BUSY_MIN = 0.8;
/** So many samples in a row, with most of the requests of one shard. */
const BUSY_SAMPLES = 5;
/** A worker that is busy for longer has nothing to give. */
const FREE_MAX = 0.5;
/** A replica's index must fit beside what its worker holds, with what evaluators will remember. */
const ROOM_FACTOR = 1.25;
/** What one shard may take of all workers together, in workers, before one of them would do. */
const IDLE_MAX = 0.6;
const IDLE_SAMPLES = 300;
const NEAR_IDLE_SAMPLES = 100;
/** So many samples in a row in which most Checks were left to the owner all the same. */
const VAIN_SAMPLES = 10;

export type SpreadingOptions = {
  /** Workers that may answer for one shard; 1: its owner alone. */
  readonly workersMax: number;
  /** Bound of the indexes of one worker. */
  readonly indexBytesMax: number;
  /** How often it is looked at, ms. */
  readonly sampleMs?: number | undefined;
  /** Samples in a row before a shard is spread, and before it is gathered again. */
  readonly busySamples?: number | undefined;
  readonly idleSamples?: number | undefined;
  /** Replicas on this thread; absent: there are none. */
  readonly near?: NearSpreading | undefined;
};

/** Of the slot behind those of the workers, whose replicas live on this thread. */
export type NearSpreading = {
  /** Bound of their indexes together. */
  readonly indexBytesMax: number;
  /** Single Checks a second that make a shard a busy one. */
  readonly checksPerSecondMin: number;
};

/** What becomes of a shard; `near`: it got a replica on this thread, or lost it. */
export type SpreadEvent = {
  readonly event: 'shard_spread' | 'shard_gathered';
  readonly isNear: boolean;
  readonly shardHash: number;
  readonly slots: readonly number[];
};

/** A request's way: the queue of a worker, and what it must show. */
export type Way = { readonly queue: ShardQueue; readonly scope: ReadScope };

type Busy = { queue: ShardQueue; samples: number };

/**
 * Lets several workers answer for a shard whose owner cannot keep up, each from a replica of its index. A shard is spread once
 * most of what its owner has to do is that shard's, and others have time and room for its index; it is gathered again once one worker would do.
 * How fresh an answer is does not depend on who gives it: every read carries its minSeq, and no less than what any replica has shown.
 */
export class ShardSpreading {
  readonly #options: SpreadingOptions;
  readonly #slots: readonly WorkerSlot[];
  readonly #queues: () => Iterable<ShardQueue>;
  readonly #onEvent: (event: SpreadEvent) => void;
  readonly #spreads = new Map<ShardQueue, SpreadShard>();
  readonly #recent: (readonly RecentShard[])[] = [];
  readonly #indexBytes: number[] = [];
  readonly #busy: (Busy | undefined)[] = [];
  readonly #near: WorkerSlot | null;
  readonly #busyChecks: BusyChecks;
  /** Of one sample. */
  readonly #checksMin: number;
  #turn = 0;
  #timer: NodeJS.Timeout | null = null;

  /** `slots`: those of the workers, and behind them that of this thread where there is one. `queues`: of all owners. */
  constructor(
    options: SpreadingOptions,
    slots: readonly WorkerSlot[],
    queues: () => Iterable<ShardQueue>,
    onEvent: (event: SpreadEvent) => void,
  ) {
    this.#options = options;
    this.#near = options.near === undefined ? null : (slots.at(-1) ?? null);
    const sampleSeconds = (options.sampleMs ?? SAMPLE_MS) / 1_000;
    this.#checksMin = Math.ceil((options.near?.checksPerSecondMin ?? 0) * sampleSeconds);
    this.#busyChecks = new BusyChecks(this.#checksMin);
    this.#slots = slots;
    this.#queues = queues;
    this.#onEvent = onEvent;
  }

  start(): void {
    const isForWorkers = this.#options.workersMax >= 2 && this.#slots.length >= 2;
    if (!isForWorkers && this.#near === null) return;
    this.#timer ??= setInterval(() => this.#sample(), this.#options.sampleMs ?? SAMPLE_MS).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Shards that several workers answer for, or are about to. */
  get count(): number {
    return this.#spreads.size - this.nearCount;
  }

  /** Shards with a replica on this thread, or about to have one. O(spread shards). */
  get nearCount(): number {
    let count = 0;
    for (const { near } of this.#spreads.values()) if (near !== null) count += 1;
    return count;
  }

  /** Whether no shard has more than its owner. */
  get isEmpty(): boolean {
    return this.#spreads.size === 0;
  }

  isSpread(owner: ShardQueue): boolean {
    return this.#spreads.has(owner);
  }

  /** The slots whose workers must hear of changes of the shard; null: the owner's alone. */
  slotsOf(owner: ShardQueue): readonly number[] | null {
    return this.#spreads.get(owner)?.slots ?? null;
  }

  /** The way of a read; null: as if no shard was spread. Hot. */
  wayOf(owner: ShardQueue, scope: ReadScope): Way | null {
    if (this.#spreads.size === 0) return null;
    const spread = this.#spreads.get(owner);
    if (spread === undefined) return null;
    const raised = spread.raised(scope);
    if (raised === null) {
      this.#end(spread);
      return null;
    }
    return { queue: spread.state === 'open' ? this.#leastBusy(spread) : owner, scope: raised };
  }

  /** Counts a single Check of a shard, and gives the replica on this thread that may answer it; null: there is none. Hot. */
  nearOf(owner: ShardQueue): SpreadShard | null {
    if (this.#near === null) return null;
    const spread = this.#spreads.size === 0 ? undefined : this.#spreads.get(owner);
    if (spread === undefined) {
      this.#busyChecks.count(owner);
      return null;
    }
    if (spread.near === null) return null;
    spread.checks += 1;
    // A message that it has not heard may say that it is of another history.
    return spread.state === 'open' && this.#near.isTold ? spread : null;
  }

  /** This thread cannot keep up with the changes of a shard. */
  tooMuch(owner: ShardQueue): void {
    const spread = this.#spreads.get(owner);
    if (spread === undefined || spread.near === null) return;
    this.#busyChecks.putOff(owner);
    this.#end(spread);
  }

  /** A worker tells what it holds. */
  report(slot: number, stats: WorkerStats): void {
    this.#indexBytes[slot] = stats.indexBytes;
    if (stats.recentShards !== undefined) this.#recent[slot] = stats.recentShards;
  }

  /** The worker of a slot has gone: what it had of requests fails, and owners answer alone. */
  lost(slot: number): void {
    for (const spread of this.#spreads.values()) {
      if (slot === spread.near) this.#busyChecks.putOff(spread.owner);
      if (spread.slots.includes(slot)) this.#end(spread);
    }
  }

  /** The next worker of a slot is there, and asks for what still waits: it must tell what it shows like the one before. */
  ready(slot: number): void {
    for (const spread of this.#spreads.values()) {
      const queue = spread.queues.find((one) => one.slot === slot);
      if (queue === undefined) continue;
      if (queue === spread.owner || queue.pendingCount > 0) void this.#join(spread, slot);
    }
  }

  #leastBusy({ queues }: SpreadShard): ShardQueue {
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
    return (this.#slots[queue.slot] as WorkerSlot).pendingCount; // by slotOfShard
  }

  #sample(): void {
    const used = this.#slots.map((slot) => slot.utilization());
    for (const spread of this.#spreads.values()) {
      if (spread.near === null) this.#settle(spread, used);
      else this.#settleNear(spread);
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
      const isOneLoading = [...this.#spreads.values()].some(
        ({ near, state }) => near !== null && state === 'joining',
      );
      if (isOneLoading) return;
      const isSpreadSoon = this.#options.workersMax > 1 && (used[owner.slot] ?? 0) >= BUSY_MIN;
      if (!isSpreadSoon && !this.isSpread(owner)) this.#beginNear(owner);
    }
  }

  #beginNear(owner: ShardQueue): void {
    const near = this.#near;
    const { indexBytesMax = 0 } = this.#options.near ?? {};
    const bytes = this.#bytesOf(owner);
    if (near === null || bytes === undefined) return;
    const roomBytes = indexBytesMax - (this.#indexBytes[near.index] ?? indexBytesMax);
    if (bytes * ROOM_FACTOR > roomBytes) return;
    this.#start(new SpreadShard(owner, [], this.#slots.length, near.index));
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

  /** The shard of which most requests of a worker are, if it is not spread already. O(shards). */
  #mostAsked(slot: number): ShardQueue | undefined {
    const pending = this.#slots[slot]?.pendingCount ?? 0;
    if (pending < 2) return undefined;
    for (const queue of this.#queues()) {
      const isMost = queue.slot === slot && queue.pendingCount * 2 >= pending;
      // One with a replica on this thread is to lose it for those of other workers.
      if (isMost && this.#spreads.get(queue)?.near !== null) {
        return queue;
      }
    }
    return undefined;
  }

  #begin(owner: ShardQueue, used: readonly number[]): void {
    if (this.isSpread(owner)) return this.tooMuch(owner);
    const bytes = this.#bytesOf(owner);
    if (bytes === undefined) return;
    const slots = this.#slots
      .map(({ index }) => index)
      .filter((index) => index !== owner.slot && index !== this.#near?.index)
      .filter((index) => (used[index] ?? 1) <= FREE_MAX)
      .filter((index) => this.#roomOf(index) >= bytes * ROOM_FACTOR)
      .toSorted((a, b) => (used[a] ?? 0) - (used[b] ?? 0))
      .slice(0, this.#options.workersMax - 1);
    if (slots.length === 0) return;
    this.#start(new SpreadShard(owner, slots, this.#slots.length));
  }

  #start(spread: SpreadShard): void {
    this.#spreads.set(spread.owner, spread);
    Promise.all(spread.slots.map((slot) => this.#join(spread, slot))).then(
      () => this.#joined(spread),
      () => this.#end(spread),
    );
  }

  #join(spread: SpreadShard, slot: number): Promise<void> {
    const { key, shown } = spread;
    return (this.#slots[slot] as WorkerSlot).join(key, shown.memory); // of the pool
  }

  #joined(spread: SpreadShard): void {
    if (spread.state !== 'joining') return;
    // One that could not load it has shown nothing.
    if (spread.slots.some((slot) => spread.shown.at(slot) <= 0)) {
      if (spread.near !== null) this.#busyChecks.putOff(spread.owner);
      this.#end(spread);
    } else {
      spread.state = 'open';
      this.#tell('shard_spread', spread);
    }
  }

  #bytesOf({ projectId, tenantId, slot }: ShardQueue): number | undefined {
    const found = this.#recent[slot]?.find(
      (shard) => shard.projectId === projectId && shard.tenantId === tenantId,
    );
    return found?.indexBytes;
  }

  #roomOf(slot: number): number {
    return this.#options.indexBytesMax - (this.#indexBytes[slot] ?? this.#options.indexBytesMax);
  }

  /** Ends what is no longer needed, and forgets it once nobody can tell the difference. */
  #settle(spread: SpreadShard, used: readonly number[]): void {
    const { idleSamples = IDLE_SAMPLES } = this.#options;
    if (spread.state === 'open') {
      let share = 0;
      for (const queue of spread.queues) {
        // Below saturation a moment mostly finds nothing: then all of the time is taken for this shard's.
        const pending = this.#pendingOf(queue);
        const part = pending === 0 ? 1 : queue.pendingCount / pending;
        share += part * (used[queue.slot] ?? 0);
      }
      spread.idleSamples = share < IDLE_MAX ? spread.idleSamples + 1 : 0;
      if (spread.idleSamples >= idleSamples) this.#end(spread);
    }
    if (spread.state === 'ending') this.#forget(spread);
  }

  #settleNear(spread: SpreadShard): void {
    const { checks, answered, owner } = spread;
    spread.checks = 0;
    spread.answered = 0;
    if (spread.state === 'open') {
      const checksMin = this.#checksMin;
      const { idleSamples = NEAR_IDLE_SAMPLES } = this.#options;
      spread.idleSamples = checks * 4 < checksMin ? spread.idleSamples + 1 : 0;
      const isVain = checks >= checksMin && answered * 2 < checks;
      spread.vainSamples = isVain ? spread.vainSamples + 1 : 0;
      if (spread.idleSamples >= idleSamples) this.#end(spread);
      else if (spread.vainSamples >= VAIN_SAMPLES) this.tooMuch(owner);
    }
    if (spread.state === 'ending') this.#forget(spread);
  }

  #end(spread: SpreadShard): void {
    if (spread.state === 'over') return;
    if (spread.state === 'open') this.#tell('shard_gathered', spread);
    spread.state = 'ending';
  }

  /** Not before the owner has all that was shown, and replicas have answered what they were asked: they tell until then. */
  #forget(spread: SpreadShard): void {
    const [owner, ...others] = spread.queues;
    if (owner === undefined || others.some(({ pendingCount }) => pendingCount > 0)) return;
    if (!spread.isOwnerNewest) {
      this.#slots[owner.slot]?.control?.hint(spread.key, spread.shown.newest);
      // Where nobody asked the owner it may have dropped its index: then it loads what it is to catch up with.
      if (!spread.isOwnerAsked) {
        spread.isOwnerAsked = true;
        const isAnswered = (): void => void (spread.isOwnerAsked = false);
        this.#join(spread, owner.slot).then(isAnswered, isAnswered);
      }
      return;
    }
    spread.state = 'over';
    this.#spreads.delete(owner);
    for (const slot of spread.slots) {
      this.#slots[slot]?.control?.leave(spread.key, slot === owner.slot);
    }
  }

  #tell(event: SpreadEvent['event'], { key, slots, near }: SpreadShard): void {
    this.#onEvent({ event, shardHash: shardHash(key), slots, isNear: near !== null });
  }
}
