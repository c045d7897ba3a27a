import type { CarriedChanges, CommittedChange } from '../../model/packed-changes.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ShownPlace } from '../../protocol/shown-revisions.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import { mustReload } from '../../store/changes.ts';
import type { ChangePage, HeadRevision, ShardPosition, StoredChange } from '../../store/changes.ts';
import type { Demand, Job } from '../jobs/job.ts';
import { Callbacks } from './callbacks.ts';
import { catchUp, type CatchUpShard, type PageOutcome } from './catch-up.ts';
import { HeldChanges } from './held-changes.ts';
import type { IndexUser, ShardIndex } from './ports.ts';
import { nextActorState } from './shard-actor-state.ts';
import type { ActorEvent, ActorState } from './shard-actor-state.ts';
import { unavailable } from './shard-errors.ts';
import { ShardJobs } from './shard-jobs.ts';
import { type LoadHost, ShardLoad } from './shard-load.ts';
import { type MailboxShard, ShardMailbox } from './shard-mailbox.ts';
import { ShardRevision, type Verdict } from './shard-revision.ts';

/** How long a caught-up shard waits before it looks again for a revision that somebody asked for. */
const BEHIND_RETRY_MS = 20;

/** What an actor needs of the worker around it. */
export interface ActorHost extends LoadHost {
  /** What must not happen has: ends the worker. */
  failed(error: unknown): void;
  /** Bytes of what evaluators remember beside an index. */
  cacheBytesOf?(index: ShardIndex): number;
  /** The actor has short jobs that can run now. */
  runnable(actor: ShardActor): void;
  /** It has long ones: begun, or expected to take more than a slice. */
  longRunnable(actor: ShardActor): void;
  /** It has jobs that wait for a newer state of the shard: to be swept until it has none. */
  waits?(actor: ShardActor): void;
  /** State, size or idleness changed: eviction looks again. */
  settled(actor: ShardActor): void;
  counted(what: 'load' | 'loadFailure' | 'catchUp'): void;
  /** For the worker's log; never tuple contents. */
  report(event: string, shard: ShardKey, error: unknown): void;
}

/**
 * One shard in one worker: its index, its watermark and its mailbox. SPEC and transition table:
 * shard-actor-state.ts. Everything runs on the worker's thread; between an await and the next one
 * nothing else touches the actor.
 */
export class ShardActor implements IndexUser, MailboxShard, CatchUpShard {
  readonly key: ShardKey;
  /** Where it says how far it has shown the shard, if others answer for it as well; kept by the host. */
  shown: ShownPlace | null = null;
  readonly #host: ActorHost;
  #state: ActorState = 'unloaded';
  #generation = 0;
  readonly #revision = new ShardRevision();
  /** The begun ones all see the present revision; changes wait until there is none. */
  readonly #jobs = new ShardJobs();
  readonly #mailbox: ShardMailbox;
  readonly #onResumed = new Callbacks();
  readonly #onWarm = new Callbacks();
  #held = new HeldChanges();
  /** Highest revision known to exist. */
  #headRevision = 0;
  #retryTimer: NodeJS.Timeout | null = null;
  /** The latest. */
  #load: ShardLoad | null = null;
  /** Kept by the host: whether it stands in the line of short, of long work. */
  isScheduled = false;
  isLongScheduled = false;

  constructor(key: ShardKey, host: ActorHost) {
    this.key = key;
    this.#host = host;
    this.#mailbox = new ShardMailbox(this, host, this.#jobs, this.#revision);
  }

  get state(): ActorState {
    return this.#state;
  }

  get watermark(): number {
    return this.#revision.position.revision;
  }

  get position(): ShardPosition {
    return this.#revision.position;
  }

  /** Only while loaded. Errors: throws otherwise. */
  get index(): ShardIndex {
    const { index } = this.#revision;
    if (index === null) throw new Error('the shard is not loaded');
    return index;
  }

  get isLoaded(): boolean {
    return this.#revision.index !== null;
  }

  /** Bytes of the index and of what is remembered beside it. */
  get indexBytes(): number {
    const { index } = this.#revision;
    return index === null ? 0 : index.bytes + (this.#host.cacheBytesOf?.(index) ?? 0);
  }

  get tupleCount(): number {
    return this.#revision.index?.tupleCount ?? 0;
  }

  get lag(): number {
    return this.isLoaded ? Math.max(0, this.#headRevision - this.watermark) : 0;
  }

  /** Jobs waiting, runnable or suspended. */
  get depth(): number {
    return this.#jobs.count;
  }

  /** Whether jobs wait for a newer state of the shard. */
  get hasWaiting(): boolean {
    return this.#jobs.hasWaiting;
  }

  /** Whether nothing would be lost but warmth if the index went now (I8). */
  get isEvictable(): boolean {
    return this.#state === 'ready' && this.depth === 0;
  }

  get isInUse(): boolean {
    return this.#jobs.hasBegun;
  }

  /** Changes when the index is dropped: what was derived from it is void. */
  get generation(): number {
    return this.#generation;
  }

  /** What becomes of a read now, without waiting: 'serve' only while nothing is begun. Hot. */
  judge(demand: Demand): Verdict {
    return this.#jobs.hasBegun ? 'wait' : this.#revision.judge(demand);
  }

  submit(job: Job): void {
    this.#mailbox.submit(job);
  }

  /**
   * Begins short jobs until none is left or the shard's share ends; one that goes on after the end of the slice is long
   * from then on. Returns whether more of them can run. `mark` gets the id under evaluation, for the memory of killers.
   */
  runShort(shareEndMs: number, sliceEndMs: number, mark: (requestId: number) => void): boolean {
    return this.#mailbox.runShort(shareEndMs, sliceEndMs, mark);
  }

  /** One slice of long work: begun evaluations take turns, and new ones begin in between. Returns whether more is left. */
  runLong(sliceEndMs: number, mark: (requestId: number) => void): boolean {
    return this.#mailbox.runLong(sliceEndMs, mark);
  }

  /** A committed change, from whichever way, in whatever order, any number of times. */
  committed(change: CommittedChange): void {
    this.#headRevision = Math.max(this.#headRevision, change.revision);
    if (!this.isLoaded && this.#state !== 'loading') return;
    if (this.#state !== 'ready' || this.#jobs.hasBegun) {
      this.#held.add(change); // dropped when full: the revision is known, and caught up
      return;
    }
    this.#applyCommitted(change);
    this.#mailbox.promote();
  }

  /** What a look at the head revision found beside it: changes after one that was known, or a lost history. */
  carried(carried: CarriedChanges): void {
    if (this.#revision.isOtherThan(carried)) {
      this.#startLoad('diverged');
      return;
    }
    const { projectId, tenantId, epoch } = carried;
    for (const change of carried.changes) {
      this.committed({ projectId, tenantId, epoch, ...change });
    }
  }

  /** The shard is said to have reached `revision`; 0 is "look". Loads nothing. */
  hint(revision: number): void {
    this.#headRevision = Math.max(this.#headRevision, revision);
    if (this.isLoaded && (revision === 0 || revision > this.watermark)) this.#startCatchUp();
  }

  /** Loads the index unless there is one; `onDone` is called when it is there, or could not be loaded. */
  warm(onDone: () => void): void {
    if (this.isLoaded) {
      onDone();
      return;
    }
    this.#onWarm.add(onDone);
    this.wake();
  }

  /** Before anything is answered at a new watermark, and once where the place is given. */
  reportShown(): void {
    if (this.shown !== null && this.isLoaded)
      this.shown.revisions.raise(this.shown.place, this.watermark);
  }

  /** Drops the index. Only when `isEvictable`. */
  evict(): void {
    assert(this.#state !== 'ready' || this.depth === 0, 'an idle index goes');
    this.#drop('evicted');
  }

  /** Drops an index that an assertion found damaged; waiting and later jobs load it again. */
  damaged(error: unknown): void {
    this.#host.report('shard_index_damaged', this.key, error);
    this.#drop('damaged');
    this.#jobs.waitAgain();
    this.waits();
    this.wake();
  }

  /** Loads the index anew because it is not what is stored. Only while loaded. */
  reload(): void {
    this.#startLoad('diverged');
  }

  /** Fails jobs whose deadline has passed, or passes before the load can end, and those whose callers have gone. */
  sweep(nowMs: number): void {
    if (!this.#jobs.hasWaiting) return;
    this.#mailbox.sweep(nowMs, this.isLoaded ? undefined : this.#load?.leftMs);
    if (!this.#jobs.hasWaiting) this.#host.settled(this);
  }

  // --- for ShardMailbox ----------------------------------------------------------------------------

  get isChangeWaiting(): boolean {
    return !this.#held.isEmpty || !this.#onResumed.isEmpty;
  }

  waits(): void {
    this.#host.waits?.(this);
  }

  shortWork(): void {
    this.#host.runnable(this);
  }

  longWork(): void {
    this.#host.longRunnable(this);
  }

  resumed(): void {
    this.#onResumed.run();
    if (!this.#held.isEmpty) this.#applyHeld();
  }

  // --- loading --------------------------------------------------------------------------------

  /** Somebody waits: load, reload an older epoch, or catch up. */
  wake(): void {
    if (this.#state === 'unloaded') this.#startLoad('wanted');
    else if (this.#state === 'ready') this.#startCatchUp();
  }

  #moved(event: ActorEvent): void {
    this.#state = nextActorState(this.#state, event);
  }

  #drop(event: ActorEvent): void {
    this.#moved(event);
    this.#generation += 1;
    this.#revision.drop();
    this.#held = new HeldChanges();
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    this.#host.settled(this);
  }

  #startLoad(event: 'wanted' | 'diverged'): void {
    if (event === 'diverged') {
      this.shown?.revisions.void(this.shown.place);
      this.#drop(event);
      this.#jobs.waitAgain();
      this.#host.waits?.(this);
    } else this.#moved(event);
    this.#generation += 1;
    const generation = this.#generation;
    const load = new ShardLoad(this.key, this.#host, this);
    this.#load = load;
    load
      .run()
      .then(
        ({ index, headRevision }) => {
          if (generation === this.#generation) this.#loaded(index, headRevision);
          else index.drop?.();
        },
        (error: unknown) => {
          if (generation === this.#generation) this.#loadFailed(error);
        },
      )
      .catch((error: unknown) => this.#host.failed(error));
  }

  #loaded(index: ShardIndex, headRevision: HeadRevision): void {
    this.#moved('loaded');
    assert(!this.#jobs.hasBegun, 'nothing is begun before there is an index');
    this.#host.counted('load');
    this.#revision.begin(index, headRevision);
    this.reportShown();
    this.#headRevision = Math.max(this.#headRevision, headRevision.revision);
    this.#jobs.failWaiting(
      () => unavailable('the epoch of the shard has changed'),
      (job) => job.scope.epoch !== headRevision.epoch,
    );
    this.#applyHeld();
    this.#mailbox.promote();
    this.#host.settled(this);
    this.#onWarm.run();
    if (this.#jobs.hasWaiting || this.#headRevision > this.watermark) this.#startCatchUp();
  }

  #loadFailed(error: unknown): void {
    this.#moved('loadFailed');
    this.#host.counted('loadFailure');
    this.#host.report('shard_load_failed', this.key, error);
    this.#held = new HeldChanges();
    this.#jobs.failWaiting(() =>
      error instanceof AppError && error.reason === 'SHARD_TOO_LARGE'
        ? error
        : unavailable('the shard could not be loaded', error),
    );
    this.#host.settled(this);
    this.#onWarm.run();
  }

  // --- changes --------------------------------------------------------------------------------

  #applyCommitted(change: CommittedChange): void {
    const { epoch, revision } = this.#revision.position;
    if (change.epoch < epoch) return;
    if (change.epoch > epoch) {
      this.#startLoad('diverged');
      return;
    }
    if (change.revision <= revision) {
      if (this.#revision.contradicts(change.revision, change.forkId)) this.#startLoad('diverged');
      return;
    }
    if (change.revision > revision + 1) {
      this.#startCatchUp();
      return;
    }
    this.#apply(change);
  }

  /** The next revision, whole, in one step. */
  #apply(change: StoredChange): void {
    try {
      assert(!this.#jobs.hasBegun, 'the revision stands still while an evaluation is begun');
      this.#revision.apply(change);
      this.reportShown();
    } catch (error) {
      this.damaged(error);
    }
  }

  #applyHeld(): void {
    if (this.#state !== 'ready' || this.#jobs.hasBegun) return;
    const held = this.#held.take();
    if (held.length === 0) return;
    for (const change of held) {
      if (this.#state !== 'ready') return;
      this.#applyCommitted(change);
    }
    this.#mailbox.promote();
  }

  #startCatchUp(): void {
    if (this.#state !== 'ready') return;
    this.#moved('wanted');
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    const generation = this.#generation;
    this.#host.counted('catchUp');
    catchUp(this, this.#host.source)
      .then(
        (outcome) => {
          if (generation !== this.#generation) return;
          if (outcome === 'diverged') this.#startLoad('diverged');
          else this.#caughtUp();
        },
        (error: unknown) => {
          if (generation === this.#generation) this.#catchUpFailed(error);
        },
      )
      .catch((error: unknown) => this.#host.failed(error));
  }

  whenResumed(callback: () => void): void {
    this.#onResumed.add(callback);
  }

  /** Only this moves the watermark while catching up, so a page still fits when it is applied. */
  applyPage(page: ChangePage, generation: number): PageOutcome {
    if (generation !== this.#generation) return 'dropped';
    if (mustReload(this.position, page)) return 'diverged';
    this.#headRevision = Math.max(this.#headRevision, page.headRevision.revision);
    for (const change of page.changes) {
      this.#apply(change);
      if (generation !== this.#generation) return 'dropped';
    }
    this.#mailbox.promote();
    return this.watermark >= page.headRevision.revision ? 'caughtUp' : 'applied';
  }

  #caughtUp(): void {
    this.#moved('caughtUp');
    this.#applyHeld();
    this.#mailbox.promote();
    this.#host.settled(this);
    if (this.#state !== 'ready') return;
    // A revision was named that the last page did not show: look again shortly; without waiters only
    // once, since a hint may be wrong, and the poll is the backstop.
    const isBehind = this.#headRevision > this.watermark;
    this.#headRevision = this.watermark;
    if (isBehind || this.#jobs.hasWaiting) this.#retryLater();
  }

  #catchUpFailed(error: unknown): void {
    this.#moved('catchUpFailed');
    this.#host.report('shard_catch_up_failed', this.key, error);
    this.#jobs.failWaiting(() => unavailable('the changes of the shard could not be read', error));
    this.#applyHeld();
    this.#host.settled(this);
  }

  #retryLater(): void {
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      try {
        this.wake();
      } catch (error) {
        this.#host.failed(error);
      }
    }, BEHIND_RETRY_MS);
  }
}
