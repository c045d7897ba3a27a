import type { CarriedChanges } from '../../model/packed-changes.ts';
import { assert } from '../../shared/assert.ts';
import type { StoredHeadRevision, ShardPosition, StoredChange } from '../../store/feed/changes.ts';
import type { Demand } from '../jobs/job.ts';
import type { ShardIndex } from './ports.ts';

const REMEMBERED = 32;

/**
 * The fork ids of the last revisions that one index took in, by which two histories are distinguished where the index
 * has gone on meanwhile. O(1); the first one is in the object itself, since most shards are read and not written.
 */
export class RecentForkIds {
  #firstRevision = -1;
  #firstForkId = '';
  #revisions: Float64Array | null = null;
  #forkIds: string[] | null = null;

  add(revision: number, forkId: string): void {
    if (this.#revisions === null || this.#forkIds === null) {
      if (this.#firstRevision < 0 || this.#firstRevision === revision) {
        this.#firstRevision = revision;
        this.#firstForkId = forkId;
        return;
      }
      this.#revisions = new Float64Array(REMEMBERED).fill(-1);
      this.#forkIds = [];
      this.#revisions[this.#firstRevision % REMEMBERED] = this.#firstRevision;
      this.#forkIds[this.#firstRevision % REMEMBERED] = this.#firstForkId;
    }
    this.#revisions[revision % REMEMBERED] = revision;
    this.#forkIds[revision % REMEMBERED] = forkId;
  }

  /** Whether `revision` is remembered with another fork id: that is another history. '' is no fork id. */
  contradicts(revision: number, forkId: string): boolean {
    if (forkId === '') return false;
    if (this.#revisions === null || this.#forkIds === null) {
      return this.#firstRevision === revision && this.#firstForkId !== forkId;
    }
    return (
      this.#revisions[revision % REMEMBERED] === revision &&
      this.#forkIds[revision % REMEMBERED] !== forkId
    );
  }

  clear(): void {
    this.#firstRevision = -1;
    this.#firstForkId = '';
    this.#revisions = null;
    this.#forkIds = null;
  }
}

/** Verdict on a job now; 'diverged': it names another history than that of the index. */
export type Verdict = 'serve' | 'wait' | 'diverged' | 'epochOver' | 'settingsOld';

/** The index of one shard and its position: the revision over which jobs run, and the histories that it is none of. */
export class ShardRevision {
  #index: ShardIndex | null = null;
  #position: ShardPosition = { epoch: 0, revision: 0, forkId: '0' };
  readonly #forkIds = new RecentForkIds();
  #settingsVersion = 0;

  /** null: not loaded. */
  get index(): ShardIndex | null {
    return this.#index;
  }

  /** Position of the index, or of the last one that there was. */
  get position(): ShardPosition {
    return this.#position;
  }

  /** Newest version of the project's settings under which a change of the index was committed. */
  get settingsVersion(): number {
    return this.#settingsVersion;
  }

  /** Takes an index in that was just loaded. */
  begin(index: ShardIndex, headRevision: StoredHeadRevision): void {
    this.#index = index;
    this.#position = {
      epoch: headRevision.epoch,
      revision: headRevision.revision,
      forkId: headRevision.forkId,
    };
    this.#forkIds.add(headRevision.revision, headRevision.forkId);
    this.#settingsVersion = headRevision.settingsVersion;
  }

  drop(): void {
    this.#index?.drop?.();
    this.#index = null;
    this.#forkIds.clear();
  }

  /** Moves on by the next revision, whole. Errors: those of an index that is damaged; then nothing moved. */
  apply(change: StoredChange): void {
    assert(change.revision === this.#position.revision + 1, 'the watermark moves seq by seq');
    if (this.#index === null) throw new Error('the shard is not loaded');
    this.#index.apply(change.changes);
    this.#position = {
      epoch: this.#position.epoch,
      revision: change.revision,
      forkId: change.forkId,
    };
    this.#forkIds.add(change.revision, change.forkId);
    if (change.settingsVersion > this.#settingsVersion) {
      this.#settingsVersion = change.settingsVersion;
    }
  }

  /** Whether `revision` is remembered with another fork id. */
  contradicts(revision: number, forkId: string): boolean {
    return this.#forkIds.contradicts(revision, forkId);
  }

  /** Whether what was found beside the shard's head revision belongs to another history, no older than this one. */
  isOtherThan(carried: CarriedChanges): boolean {
    if (this.#index === null) return false;
    const { epoch, revision, forkId, isLost, afterRevision, forkIdAtStart } = carried;
    const own = this.#position;
    const isAtHeadRevision =
      own.epoch === epoch && own.revision === revision && own.forkId === forkId;
    const isOther =
      (isLost && !isAtHeadRevision) ||
      (epoch === own.epoch && this.contradicts(afterRevision, forkIdAtStart));
    return isOther && epoch >= own.epoch;
  }

  /** Whether this revision satisfies a request, and its settings are not newer than those of the query. Hot. */
  canServe(demand: Demand): boolean {
    const { scope, minRevision } = demand;
    return (
      this.#index !== null &&
      minRevision <= this.#position.revision &&
      scope.epoch === this.#position.epoch &&
      scope.settingsVersion >= this.#settingsVersion &&
      (scope.forkId === '' || !this.#forkIds.contradicts(minRevision, scope.forkId))
    );
  }

  /** The verdict on a job at this revision. Hot. */
  judge(demand: Demand): Verdict {
    if (this.canServe(demand)) return 'serve';
    if (this.#index === null) return 'wait';
    const { scope, minRevision } = demand;
    if (scope.epoch < this.#position.epoch) return 'epochOver';
    if (scope.epoch > this.#position.epoch || minRevision > this.#position.revision) return 'wait';
    return this.#forkIds.contradicts(minRevision, scope.forkId) ? 'diverged' : 'settingsOld';
  }
}
