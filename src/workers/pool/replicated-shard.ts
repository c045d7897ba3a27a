import type { ShardKey } from '../../model/relation-tuple.ts';
import {
  createWatermarksMemory,
  WATERMARK_VOID,
  PublishedWatermarks,
} from '../../protocol/published-watermarks.ts';
import type { ReadScope } from '../../protocol/shard-client.ts';
import { ShardQueue } from '../queues/shard-queue.ts';

/**
 * `joining`: replicas load, the owner alone answers. `open`: all answer. `ending`: the owner alone answers again, no older
 * than what others have shown. `over`: as if there had been none.
 */
export type ReplicationState = 'joining' | 'open' | 'ending' | 'over';

/**
 * One shard that several workers answer for, each from a replica with its own watermark. The owner is the first of them, and
 * the only one while it is not `open`.
 */
export class ReplicatedShard {
  readonly key: ShardKey;
  /** By slot. */
  readonly watermarks: PublishedWatermarks;
  readonly epoch: number;
  readonly queues: readonly ShardQueue[];
  state: ReplicationState = 'joining';
  /** Samples in a row in which one worker less would have done. */
  idleSamples = 0;
  /** The slot of its replica on this thread; null: it has none. Then the owner is the only worker that answers. */
  readonly localReplicas: number | null;
  /** Checks since the last sample, and how many of them were answered on this thread. */
  checks = 0;
  answered = 0;
  /** Whether its owner is being asked to load it. */
  isOwnerAsked = false;
  /** Samples in a row in which this thread answered few of them. */
  lowHitSamples = 0;
  /** A read named another history than the one that was shown: there is nothing to compare any more. */
  #isOther = false;

  /** `slots` are those of the other workers. */
  constructor(
    owner: ShardQueue,
    slots: readonly number[],
    slotCount: number,
    localReplicas: number | null = null,
  ) {
    const { projectId, tenantId, epoch } = owner;
    this.localReplicas = localReplicas;
    this.key = { projectId, tenantId };
    this.epoch = epoch;
    this.watermarks = new PublishedWatermarks(createWatermarksMemory(slotCount));
    this.queues = [owner, ...slots.map((slot) => new ShardQueue(projectId, tenantId, slot))];
  }

  /** The slots that have a replica. */
  get slots(): readonly number[] {
    const slots = this.queues.map(({ slot }) => slot);
    return this.localReplicas === null ? slots : [...slots, this.localReplicas];
  }

  get owner(): ShardQueue {
    return this.queues[0] as ShardQueue; // never empty
  }

  get pendingCount(): number {
    return this.queues.reduce((sum, { pendingCount }) => sum + pendingCount, 0);
  }

  /** Whether the owner answers for all that was shown: then nobody needs to know that there were others. */
  get isOwnerNewest(): boolean {
    const { newest } = this.watermarks;
    return (
      this.#isOther || newest === WATERMARK_VOID || this.watermarks.at(this.owner.slot) >= newest
    );
  }

  /**
   * `scope`, at least as new as what any replica has shown; null where the replicas are of another history than the scope, or
   * have met one: then there is nothing to compare, and the replication is over. Hot.
   */
  raised(scope: ReadScope): ReadScope | null {
    const { newest } = this.watermarks;
    if (scope.epoch !== this.epoch) this.#isOther = true;
    if (this.#isOther || newest === WATERMARK_VOID) return null;
    // The fork id is that of the revision that it came with.
    return newest > scope.minRevision ? { ...scope, minRevision: newest, forkId: '' } : scope;
  }
}
