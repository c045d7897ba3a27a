import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ScopeEntry } from '../../protocol/messages.ts';
import type { Revision } from '../../protocol/queries.ts';
import type { AppError } from '../../shared/app-error.ts';

/** The index of a shard as jobs read it. */
export interface JobIndex {
  /**
   * Stays the same while an evaluation over it is under way; afterwards it may be another one, and this one another
   * shard's.
   */
  readonly reader: TupleReader;
}

/** The shard that a job runs over. */
export interface JobShard {
  /** Only while loaded. Errors: throws otherwise. */
  readonly index: JobIndex;
  /** The revision of that index. */
  readonly position: Revision;
}

/** The demands of a read on the revision that answers it. */
export type Demand = {
  readonly scope: Pick<ScopeEntry, 'epoch' | 'settingsVersion' | 'forkId'>;
  readonly minRevision: number;
};

/**
 * One read request inside a worker. It is run by its shard's actor, over one revision, in slices.
 */
export interface ReadJob {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minRevision: number;
  readonly deadlineMs: number;
  /** Whether the caller stated it. */
  readonly isDeadlineStated: boolean;
  /** How long it waits for its shard: the deadline, or a bound where there is none. */
  readonly waitUntilMs: number;
  readonly isCancelled: boolean;
  /** Whether it is expected to take more than a slice: short jobs are served before it begins. */
  readonly isLong: boolean;
  /** Whether it takes long to read. */
  readonly isReadFirst: boolean;
  /** The model that the scope names; set before the job is submitted. */
  model: NamespaceModel | null;
  /** Whether an index was dropped for this one already: it names another history. Kept by the actor. */
  hasDropped: boolean;
  /**
   * Reads what is asked, without an index; true once it is read, false if the monotonic clock passed `sliceEndMs` before. Does
   * nothing long where that is over already. Errors: whatever is thrown fails the request.
   */
  read(sliceEndMs: number): boolean;
  /**
   * Works until answered or until the monotonic clock passed `sliceEndMs`. Errors: whatever is
   * thrown fails the request; 'more' keeps the revision until the next call.
   */
  run(shard: JobShard, sliceEndMs: number): 'done' | 'more';
  /** Forgets a begun evaluation: its index has gone. */
  restart(): void;
  /** Answers with an error. */
  fail(error: AppError): void;
  /** Its caller has gone: nobody is answered. */
  drop(): void;
}
