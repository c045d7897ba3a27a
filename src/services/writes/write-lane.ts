import type { ShardKey } from '../../model/relation-tuple.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import { ModeGuard } from '../write-groups/update-modes.ts';
import type { QueuedWrite, WriteQueue } from '../write-groups/write-queue.ts';
import type { GroupAttempts, LaneOfGroup } from './group-attempts.ts';
import { GroupRunner, type GroupRunnerOptions } from './group-runner.ts';
import type { ShardLocks } from './shard-locks.ts';

export type WriteLaneOptions = GroupRunnerOptions & {
  readonly headRevisions: HeadRevisions;
  /** Writes and updates of one group, at most; a larger single write goes alone. */
  readonly groupWritesMax: number;
  readonly groupUpdatesMax: number;
};

/** One group in flight after another, on one connection: takes a fair share of each shard that is ready, and holds those shards. */
export class WriteLane implements LaneOfGroup {
  readonly runner: GroupRunner;
  /** The writes of the group under way. */
  inFlight: readonly QueuedWrite[] = [];
  /** False while what is in flight waits to be let in: it may then be answered as not applied. */
  isSent = false;
  readonly #options: WriteLaneOptions;
  readonly #locks: ShardLocks;
  readonly #attempts: GroupAttempts;
  readonly #isForLarge: boolean;
  #ready: WriteQueue[] = [];
  #isRunning = false;
  #isScheduled = false;
  /** Shards that HeadRevisions counts as unknown because of the group in flight. */
  #unknown: ShardKey[] = [];

  /** `isForLarge`: its writes are few and large, and others may have its connection between them. */
  constructor(
    options: WriteLaneOptions,
    locks: ShardLocks,
    attempts: GroupAttempts,
    isForLarge: boolean,
  ) {
    this.#options = options;
    this.runner = new GroupRunner(options);
    this.#locks = locks;
    this.#attempts = attempts;
    this.#isForLarge = isForLarge;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Takes a shard that nobody holds, with a write at the front of its queue. */
  add(queue: WriteQueue): void {
    this.#ready.push(queue);
    this.#schedule();
  }

  /** The outcome of the shard's write is not known for now. */
  markUnknown(shard: ShardKey): void {
    this.#options.headRevisions.markUnknown(shard.projectId, shard.tenantId);
    this.#unknown.push(shard);
  }

  /** Keeps unknown outcomes unknown for the rest of this process's life. */
  keepUnknown(): void {
    this.#unknown = [];
  }

  #schedule(): void {
    if (this.#isRunning || this.#isScheduled) return;
    this.#isScheduled = true;
    // Writes that arrive in the same turn of the event loop join the group.
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const queues = this.#ready;
    const group = this.#collect(queues);
    if (group.length > 0) {
      this.#isRunning = true;
      this.inFlight = group;
      await this.#attempts.run(this, group);
      const { headRevisions } = this.#options;
      for (const { projectId, tenantId } of this.#unknown)
        headRevisions.clearUnknown(projectId, tenantId);
      this.#unknown = [];
      this.inFlight = [];
      this.#isRunning = false;
      if (this.#isForLarge) this.runner.release();
    }
    for (const queue of queues) if (!queue.isListed) this.#locks.release(queue);
    if (this.#ready.length > 0) this.#schedule();
  }

  /** Takes the group's writes from the ready shards, a fair share each, and holds those shards. */
  #collect(queues: readonly WriteQueue[]): QueuedWrite[] {
    const { groupWritesMax, groupUpdatesMax } = this.#options;
    const share = Math.max(1, Math.floor(groupWritesMax / queues.length));
    const group: QueuedWrite[] = [];
    let updates = 0;
    this.#ready = [];
    for (const queue of queues) {
      if (group.length >= groupWritesMax || updates >= groupUpdatesMax) {
        this.#ready.push(queue);
        continue;
      }
      queue.isListed = false;
      queue.isHeld = true;
      const first = group.length;
      let guard: ModeGuard | undefined;
      for (let taken = 0; taken < share && updates < groupUpdatesMax;) {
        if (this.#locks.laneOfFront(queue) !== queue.lane) break;
        const write = queue.peekWrite();
        if (write === undefined) break;
        if (!write.isSettled && (guard !== undefined || write.modes !== undefined)) {
          guard ??= new ModeGuard(group.slice(first));
          // It is the first of the next group.
          if (!guard.admits(write)) break;
        }
        queue.dequeueWrite();
        if (write.isSettled) continue;
        group.push(write);
        updates += write.updates.length;
        taken++;
      }
    }
    return group;
  }
}
