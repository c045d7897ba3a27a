import type { ShardKey } from '../../model/relation-tuple.ts';
import type { WatermarkSlot } from '../../protocol/published-watermarks.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { StoredHeadRevision, ShardPosition } from '../../store/feed/changes.ts';
import type { Demand, ReadJob } from '../jobs/job.ts';
import { Callbacks } from './callbacks.ts';
import type { IndexUser, ShardIndex } from './ports.ts';
import { nextActorState } from './shard-actor-state.ts';
import type { ActorEvent, ActorState } from './shard-actor-state.ts';
import { type ChangedShard, ShardChanges } from './shard-changes.ts';
import { unavailable } from './shard-errors.ts';
import { ShardJobs } from './shard-jobs.ts';
import { type LoadHost, ShardLoad } from './shard-load.ts';
import { type MailboxShard, ShardMailbox } from './shard-mailbox.ts';
import { ShardRevision, type Verdict } from './shard-revision.ts';

/** The worker around an actor, as that sees it. */
export interface ActorHost extends LoadHost {
  /** Called with an error that must not occur: ends the worker. */
  failed(error: unknown): void;
  /** Bytes of what evaluators remember beside an index. */
  cacheBytesOf?(index: ShardIndex): number;
  /** The actor has short jobs that can run now. */
  runnable(actor: ShardActor): void;
  /** It has long ones: begun, or expected to take more than a slice. */
  longRunnable(actor: ShardActor): void;
  /** It has jobs that wait for a newer state of the shard: to be swept until it has none. */
  waits?(actor: ShardActor): void;
  /** State, size or idleness changed: eviction checks again. */
  settled(actor: ShardActor): void;
  counted(what: 'load' | 'loadFailure' | 'catchUp'): void;
  /** Writes to the worker's log; never tuple contents. */
  report(event: string, shard: ShardKey, error: unknown): void;
}

/**
 * One shard in one worker: its index, its watermark and its mailbox. SPEC and transition table:
 * shard-actor-state.ts. Everything runs on the worker's thread; between an await and the next one
 * nothing else touches the actor.
 */
export class ShardActor implements IndexUser, MailboxShard, ChangedShard {
  readonly key: ShardKey;
  /** Slot for the revision that it has shown, if others answer for the shard as well; kept by the host. */
  watermarkSlot: WatermarkSlot | null = null;
  readonly #host: ActorHost;
  #state: ActorState = 'unloaded';
  #generation = 0;
  readonly #revision = new ShardRevision();
  /** The begun ones all see the present revision; changes wait until there is none. */
  readonly #jobs = new ShardJobs();
  readonly #mailbox: ShardMailbox;
  /** Changes that its index takes in. */
  readonly changes: ShardChanges;
  readonly #onWarm = new Callbacks();
  /** The latest. */
  #load: ShardLoad | null = null;
  /** Kept by the host: whether it is in the line of short, of long work. */
  isScheduled = false;
  isLongScheduled = false;

  constructor(key: ShardKey, host: ActorHost) {
    this.key = key;
    this.#host = host;
    this.#mailbox = new ShardMailbox(this, host, this.#jobs, this.#revision);
    this.changes = new ShardChanges(this, host, this.#jobs, this.#revision, this.#mailbox);
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
    return this.isLoaded ? this.changes.lag : 0;
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

  /** The verdict on a read now, without waiting: 'serve' only while no evaluation is begun. Hot. */
  judge(demand: Demand): Verdict {
    return this.#jobs.hasBegun ? 'wait' : this.#revision.judge(demand);
  }

  submit(job: ReadJob): void {
    this.#mailbox.submit(job);
  }

  /**
   * Begins short jobs until none is left or the shard's share ends; one that continues after the end of the slice is long
   * from then on. Returns whether more of them can run. `mark` gets the id under evaluation, for the memory of killers.
   */
  runShort(shareEndMs: number, sliceEndMs: number, mark: (requestId: number) => void): boolean {
    return this.#mailbox.runShort(shareEndMs, sliceEndMs, mark);
  }

  /** One slice of long work: begun evaluations take turns, and new ones begin in between. Returns whether more is left. */
  runLong(sliceEndMs: number, mark: (requestId: number) => void): boolean {
    return this.#mailbox.runLong(sliceEndMs, mark);
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

  /** Publishes the watermark before anything is answered at it, and once where the slot is given. */
  publishWatermark(): void {
    if (this.watermarkSlot !== null && this.isLoaded)
      this.watermarkSlot.watermarks.raise(this.watermarkSlot.slot, this.watermark);
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
    if (!this.#jobs.hasWaiting) this.settled();
  }

  // --- for ShardMailbox and ShardChanges ----------------------------------------------------------

  moved(event: ActorEvent): void {
    this.#state = nextActorState(this.#state, event);
  }

  settled(): void {
    this.#host.settled(this);
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

  // --- loading --------------------------------------------------------------------------------

  /** A request waits: load, reload an older epoch, or catch up. */
  wake(): void {
    if (this.#state === 'unloaded') this.#startLoad('wanted');
    else if (this.#state === 'ready') this.changes.startCatchUp();
  }

  #drop(event: ActorEvent): void {
    this.moved(event);
    this.#generation += 1;
    this.#revision.drop();
    this.changes.drop();
    this.settled();
  }

  #startLoad(event: 'wanted' | 'diverged'): void {
    if (event === 'diverged') {
      this.watermarkSlot?.watermarks.void(this.watermarkSlot.slot);
      this.#drop(event);
      this.#jobs.waitAgain();
      this.waits();
    } else this.moved(event);
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

  #loaded(index: ShardIndex, headRevision: StoredHeadRevision): void {
    this.moved('loaded');
    assert(!this.#jobs.hasBegun, 'nothing is begun before there is an index');
    this.#host.counted('load');
    this.#revision.begin(index, headRevision);
    this.publishWatermark();
    this.changes.known(headRevision.revision);
    this.#jobs.failWaiting(
      () => unavailable('the epoch of the shard has changed'),
      (job) => job.scope.epoch !== headRevision.epoch,
    );
    this.changes.applyHeld();
    this.#mailbox.promote();
    this.settled();
    this.#onWarm.run();
    if (this.#jobs.hasWaiting || this.changes.lag > 0) this.changes.startCatchUp();
  }

  #loadFailed(error: unknown): void {
    this.moved('loadFailed');
    this.#host.counted('loadFailure');
    this.#host.report('shard_load_failed', this.key, error);
    this.changes.drop();
    this.#jobs.failWaiting(() =>
      error instanceof AppError && error.reason === 'SHARD_TOO_LARGE'
        ? error
        : unavailable('the shard could not be loaded', error),
    );
    this.settled();
    this.#onWarm.run();
  }
}
