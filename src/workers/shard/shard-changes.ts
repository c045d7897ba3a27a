import type { CarriedChanges, CommittedChange } from '../../model/packed-changes.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import { mustReload } from '../../store/feed/changes.ts';
import type { ChangePage, StoredChange } from '../../store/feed/changes.ts';
import { Callbacks } from './callbacks.ts';
import { catchUp, type CatchUpShard, type PageOutcome } from './catch-up.ts';
import { HeldChanges } from './held-changes.ts';
import type { ShardSource } from './ports.ts';
import type { ActorEvent, ActorState } from './shard-actor-state.ts';
import { unavailable } from './shard-errors.ts';
import type { ShardJobs } from './shard-jobs.ts';
import type { ShardMailbox } from './shard-mailbox.ts';
import type { ShardRevision } from './shard-revision.ts';

/** How long a caught-up shard waits before it polls again for a revision that a read requires. */
const BEHIND_RETRY_MS = 20;

/** The shard whose changes are taken in, as this sees it. */
export interface ChangedShard {
  readonly key: ShardKey;
  readonly state: ActorState;
  readonly isLoaded: boolean;
  /** Changes when the index is dropped. */
  readonly generation: number;
  moved(event: ActorEvent): void;
  /** The watermark has moved, and nothing was answered at it yet. */
  publishWatermark(): void;
  /** State or size changed. */
  settled(): void;
  /** The index is of another history than what is stored: it is loaded anew. */
  reload(): void;
  /** An assertion found that the index is damaged. */
  damaged(error: unknown): void;
  /** A request waits for a newer revision. */
  wake(): void;
}

type ChangesHost = {
  readonly source: Pick<ShardSource, 'readChanges'>;
  failed(error: unknown): void;
  counted(what: 'catchUp'): void;
  report(event: string, shard: ShardKey, error: unknown): void;
};

/** Takes the committed changes of one shard into its index, in order: those that come by themselves, and those that are read to catch up. */
export class ShardChanges implements CatchUpShard {
  readonly #shard: ChangedShard;
  readonly #host: ChangesHost;
  readonly #jobs: ShardJobs;
  readonly #revision: ShardRevision;
  readonly #mailbox: ShardMailbox;
  readonly #onResumed = new Callbacks();
  #held = new HeldChanges();
  /** Highest revision known to exist. */
  #headRevision = 0;
  #retryTimer: NodeJS.Timeout | null = null;

  constructor(
    shard: ChangedShard,
    host: ChangesHost,
    jobs: ShardJobs,
    revision: ShardRevision,
    mailbox: ShardMailbox,
  ) {
    this.#shard = shard;
    this.#host = host;
    this.#jobs = jobs;
    this.#revision = revision;
    this.#mailbox = mailbox;
  }

  /** How many known revisions are not in the index. */
  get lag(): number {
    return Math.max(0, this.#headRevision - this.watermark);
  }

  /** Whether a change waits for the end of the begun evaluations. */
  get isWaiting(): boolean {
    return !this.#held.isEmpty || !this.#onResumed.isEmpty;
  }

  /** A committed change, from whichever way, in whatever order, any number of times. */
  committed(change: CommittedChange): void {
    this.known(change.revision);
    if (!this.#shard.isLoaded && this.#shard.state !== 'loading') return;
    if (this.#shard.state !== 'ready' || this.#jobs.hasBegun) {
      this.#held.tryAdd(change); // dropped when full: the revision is known, and caught up
      return;
    }
    this.#applyCommitted(change);
    this.#mailbox.promote();
  }

  /** Takes in what a poll found beside the head revision: changes after a known one, or a lost history. */
  carried(carried: CarriedChanges): void {
    if (this.#revision.isOtherThan(carried)) {
      this.#shard.reload();
      return;
    }
    const { projectId, tenantId, epoch } = carried;
    for (const change of carried.changes) {
      this.committed({ projectId, tenantId, epoch, ...change });
    }
  }

  /** A hint that the shard has reached `revision`; 0 makes it poll the store. Loads nothing. */
  hint(revision: number): void {
    this.known(revision);
    if (this.#shard.isLoaded && (revision === 0 || revision > this.watermark)) this.startCatchUp();
  }

  /** The shard has reached `revision`. */
  known(revision: number): void {
    this.#headRevision = Math.max(this.#headRevision, revision);
  }

  /** The last begun evaluation has ended. */
  resumed(): void {
    this.#onResumed.run();
    if (!this.#held.isEmpty) this.applyHeld();
  }

  /** Applies what came while the index could not take it. */
  applyHeld(): void {
    if (this.#shard.state !== 'ready' || this.#jobs.hasBegun) return;
    const held = this.#held.drain();
    if (held.length === 0) return;
    for (const change of held) {
      if (this.#shard.state !== 'ready') return;
      this.#applyCommitted(change);
    }
    this.#mailbox.promote();
  }

  /** The index has gone, or did not come: forgets what it was to take in. */
  drop(): void {
    this.#held = new HeldChanges();
    this.#clearRetry();
  }

  /** Reads what was committed after the watermark, unless that is under way. */
  startCatchUp(): void {
    if (this.#shard.state !== 'ready') return;
    this.#shard.moved('wanted');
    this.#clearRetry();
    const { generation } = this.#shard;
    this.#host.counted('catchUp');
    catchUp(this, this.#host.source)
      .then(
        (outcome) => {
          if (generation !== this.#shard.generation) return;
          if (outcome === 'diverged') this.#shard.reload();
          else this.#caughtUp();
        },
        (error: unknown) => {
          if (generation === this.#shard.generation) this.#catchUpFailed(error);
        },
      )
      .catch((error: unknown) => this.#host.failed(error));
  }

  // --- for catchUp --------------------------------------------------------------------------------

  get key(): ShardKey {
    return this.#shard.key;
  }

  get watermark(): number {
    return this.#revision.position.revision;
  }

  get generation(): number {
    return this.#shard.generation;
  }

  get isInUse(): boolean {
    return this.#jobs.hasBegun;
  }

  whenResumed(callback: () => void): void {
    this.#onResumed.add(callback);
  }

  /** Only this moves the watermark while catching up, so a page still fits when it is applied. */
  applyPage(page: ChangePage, generation: number): PageOutcome {
    if (generation !== this.#shard.generation) return 'dropped';
    if (mustReload(this.#revision.position, page)) return 'diverged';
    this.known(page.headRevision.revision);
    for (const change of page.changes) {
      this.#apply(change);
      if (generation !== this.#shard.generation) return 'dropped';
    }
    this.#mailbox.promote();
    return this.watermark >= page.headRevision.revision ? 'caughtUp' : 'applied';
  }

  // ------------------------------------------------------------------------------------------------

  #applyCommitted(change: CommittedChange): void {
    const { epoch, revision } = this.#revision.position;
    if (change.epoch < epoch) return;
    if (change.epoch > epoch) {
      this.#shard.reload();
      return;
    }
    if (change.revision <= revision) {
      if (this.#revision.contradicts(change.revision, change.forkId)) this.#shard.reload();
      return;
    }
    if (change.revision > revision + 1) {
      this.startCatchUp();
      return;
    }
    this.#apply(change);
  }

  /** The next revision, whole, in one step. */
  #apply(change: StoredChange): void {
    try {
      assert(!this.#jobs.hasBegun, 'the revision stands still while an evaluation is begun');
      this.#revision.apply(change);
      this.#shard.publishWatermark();
    } catch (error) {
      this.#shard.damaged(error);
    }
  }

  #caughtUp(): void {
    this.#shard.moved('caughtUp');
    this.applyHeld();
    this.#mailbox.promote();
    this.#shard.settled();
    if (this.#shard.state !== 'ready') return;
    // A revision was named that the last page did not show: poll again shortly; without waiters only once, since a
    // hint may be wrong, and the poll is the backstop.
    const isBehind = this.#headRevision > this.watermark;
    this.#headRevision = this.watermark;
    if (isBehind || this.#jobs.hasWaiting) this.#retryLater();
  }

  #catchUpFailed(error: unknown): void {
    this.#shard.moved('catchUpFailed');
    this.#host.report('shard_catch_up_failed', this.key, error);
    this.#jobs.failWaiting(() => unavailable('the changes of the shard could not be read', error));
    this.applyHeld();
    this.#shard.settled();
  }

  #retryLater(): void {
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      try {
        this.#shard.wake();
      } catch (error) {
        this.#host.failed(error);
      }
    }, BEHIND_RETRY_MS);
  }

  #clearRetry(): void {
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
  }
}
