import type { CarriedChanges } from '../../model/carried-changes.ts';
import { assert } from '../../shared/assert.ts';
import type { ShardHead, ShardPosition, StoredChange } from '../../store/changes.ts';
import type { Demand } from '../jobs/job.ts';
import type { ShardIndex } from './ports.ts';
import { RecentStamps } from './recent-stamps.ts';

/** What becomes of a job now; 'diverged': it names another history than that of the index. */
export type Verdict = 'serve' | 'wait' | 'diverged' | 'epochOver' | 'settingsOld';

/** The index of one shard and where it stands: the revision over which jobs run, and the histories that it is none of. */
export class ShardRevision {
  #index: ShardIndex | null = null;
  #position: ShardPosition = { epoch: 0, seq: 0, stamp: '0' };
  readonly #stamps = new RecentStamps();
  #settingsVersion = 0;

  /** null: not loaded. */
  get index(): ShardIndex | null {
    return this.#index;
  }

  /** Of the index, or of the last one that there was. */
  get position(): ShardPosition {
    return this.#position;
  }

  /** Newest version of the project's settings under which a change of the index was committed. */
  get settingsVersion(): number {
    return this.#settingsVersion;
  }

  /** Takes an index in that was just loaded. */
  begin(index: ShardIndex, head: ShardHead): void {
    this.#index = index;
    this.#position = { epoch: head.epoch, seq: head.seq, stamp: head.stamp };
    this.#stamps.add(head.seq, head.stamp);
    this.#settingsVersion = head.settingsVersion;
  }

  drop(): void {
    this.#index?.drop?.();
    this.#index = null;
    this.#stamps.clear();
  }

  /** Moves on by the next seq, whole. Errors: those of an index that is damaged; then nothing moved. */
  apply(change: StoredChange): void {
    assert(change.seq === this.#position.seq + 1, 'the watermark moves seq by seq');
    if (this.#index === null) throw new Error('the shard is not loaded');
    this.#index.apply(change.changes);
    this.#position = { epoch: this.#position.epoch, seq: change.seq, stamp: change.stamp };
    this.#stamps.add(change.seq, change.stamp);
    if (change.settingsVersion > this.#settingsVersion) {
      this.#settingsVersion = change.settingsVersion;
    }
  }

  /** Whether `seq` is remembered with another stamp. */
  contradicts(seq: number, stamp: string): boolean {
    return this.#stamps.contradicts(seq, stamp);
  }

  /** Whether what was found beside the shard's head belongs to another history, no older than this one. */
  isOtherThan(carried: CarriedChanges): boolean {
    if (this.#index === null) return false;
    const { epoch, seq, stamp, isLost, afterSeq, stampAtStart } = carried;
    const own = this.#position;
    const isAtHead = own.epoch === epoch && own.seq === seq && own.stamp === stamp;
    const isOther =
      (isLost && !isAtHead) || (epoch === own.epoch && this.contradicts(afterSeq, stampAtStart));
    return isOther && epoch >= own.epoch;
  }

  /** Whether this revision is one that is asked for, and its settings are not newer than those of the question. Hot. */
  canServe(demand: Demand): boolean {
    const { scope, minSeq } = demand;
    return (
      this.#index !== null &&
      minSeq <= this.#position.seq &&
      scope.epoch === this.#position.epoch &&
      scope.settingsVersion >= this.#settingsVersion &&
      (scope.stamp === '' || !this.#stamps.contradicts(minSeq, scope.stamp))
    );
  }

  /** What becomes of a job at this revision. Hot. */
  judge(demand: Demand): Verdict {
    if (this.canServe(demand)) return 'serve';
    if (this.#index === null) return 'wait';
    const { scope, minSeq } = demand;
    if (scope.epoch < this.#position.epoch) return 'epochOver';
    if (scope.epoch > this.#position.epoch || minSeq > this.#position.seq) return 'wait';
    return this.#stamps.contradicts(minSeq, scope.stamp) ? 'diverged' : 'settingsOld';
  }
}
