import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  type PgFailure,
  projectsWithOtherRules,
  storeError,
} from '../../store/postgres/pg-errors.ts';
import type { WriteAdmission } from '../ports.ts';
import { refusalOfModes } from '../write-groups/update-modes.ts';
import type { WriteResult } from '../write-groups/write-group.ts';
import type { QueuedWrite } from '../write-groups/write-queue.ts';
import type { CommitPublisher } from './commit-publisher.ts';
import { storeUnavailable } from './exclusive-writer.ts';
import { type GroupRunner, NotAppliedError } from './group-runner.ts';
import type { OpenCommits } from './open-commits.ts';
import {
  certainRefusal,
  type ProjectRules,
  refusalOfUpdates,
  type WriteRules,
} from './write-rules.ts';

/** Parts of its lane that a group in flight needs. */
export interface LaneOfGroup {
  readonly runner: GroupRunner;
  /** False while the group waits to be let in: it may then be answered as not applied. */
  isSent: boolean;
  markUnknown(shard: ShardKey): void;
  /** Keeps unknown outcomes unknown for the rest of this process's life. */
  keepUnknown(): void;
}

export type GroupAttemptsOptions = {
  readonly admission: WriteAdmission;
  /** Rules that written tuples must fit. */
  readonly rules: WriteRules;
  readonly publisher: CommitPublisher;
  readonly commits: OpenCommits;
  /** Counts a write as answered. False: it was before. */
  readonly settle: (write: QueuedWrite) => boolean;
  /** Notified of each error of the database that ends a write. */
  readonly onStoreError?: ((error: unknown) => void) | undefined;
};

/**
 * Sends groups until their outcome is known. It waits until this instance may write, and sends what fits
 * the rules in force (W4). After a refusal that proves that nothing was applied it sends again. If one
 * write makes the others fail, it sends them one by one.
 */
export class GroupAttempts {
  /** Set while the process ends: what waits to be let in is refused. */
  isStopped = false;
  readonly #options: GroupAttemptsOptions;

  constructor(options: GroupAttemptsOptions) {
    this.#options = options;
  }

  /**
   * Tries until every write of `members` is answered, or has no caller any more. Never rejects.
   */
  async run(lane: LaneOfGroup, members: readonly QueuedWrite[]): Promise<void> {
    // Writes refused for registration or rules were not applied; the remaining ones are sent again.
    for (let group = members; ;) {
      const rules = new Map<string, ProjectRules>();
      group = await this.#fitting(await this.#admitted(group), rules);
      if (group.length === 0 || (await this.#attempt(lane, group, rules))) return;
    }
  }

  /** False: refused for its registration, or for rules, which are known now. */
  async #attempt(
    lane: LaneOfGroup,
    group: readonly QueuedWrite[],
    rules: ReadonlyMap<string, ProjectRules>,
  ): Promise<boolean> {
    const onOutcomeUnknown = (): void => {
      for (const { shard } of group) lane.markUnknown(shard);
    };
    const { publisher, commits, settle } = this.#options;
    const open = commits.begin(group.map(({ shard }) => shard));
    lane.isSent = true;
    try {
      const rulesOf = (projectId: string): number => rules.get(projectId)?.version ?? 0;
      const results = await lane.runner.run(group, { onOutcomeUnknown }, rulesOf);
      publisher.publish(group, results);
      group.forEach((write, index) => {
        if (!settle(write)) return;
        const result = results[index] as WriteResult;
        if (result.refusedAt === undefined) write.resolve(result);
        else write.reject(refusalOfModes(write, result.refusedAt));
      });
    } catch (error) {
      lane.isSent = false;
      if (error instanceof NotAppliedError && error.failure === 'fenced') return false;
      if (await this.#isOutdated(error)) return false;
      this.#options.onStoreError?.(error);
      const isForData = error instanceof NotAppliedError && !isPassing(error.failure);
      if (isForData && group.length > 1) {
        // Only the culprit may fail.
        for (const write of group) await this.run(lane, [write]);
        return true;
      }
      // Stopped before it was known: the shards stay unknown for what is left of this process.
      if (!(error instanceof NotAppliedError)) lane.keepUnknown();
      for (const write of group) if (settle(write)) write.reject(toAppError(error));
    } finally {
      lane.isSent = false;
      commits.settle(open);
    }
    return true;
  }

  /**
   * Whether the rules were outdated and nothing else; then the present rules are known here. Rules
   * that cannot be loaded fail the next attempt.
   */
  async #isOutdated(error: unknown): Promise<boolean> {
    if (!(error instanceof NotAppliedError) || error.failure !== 'outdated') return false;
    const projectIds = projectsWithOtherRules(error.cause) ?? [];
    await Promise.allSettled(projectIds.map((id) => this.#options.rules.fresh(id)));
    return true;
  }

  /**
   * Writes of `group` that fit the rules of their projects, which are put into `rules`; the others
   * are refused.
   */
  async #fitting(
    group: readonly QueuedWrite[],
    rules: Map<string, ProjectRules>,
  ): Promise<readonly QueuedWrite[]> {
    const { rules: source, settle } = this.#options;
    const fitting: QueuedWrite[] = [];
    for (const write of group) {
      const { projectId } = write.shard;
      try {
        const known =
          rules.get(projectId) ?? source.peek(projectId) ?? (await source.of(projectId));
        rules.set(projectId, known);
        const { shard, updates, isByVersion } = write;
        if (refusalOfUpdates(known, updates, 'updates', isByVersion) !== undefined) {
          const refusal = await certainRefusal(source, shard, updates, 'updates', isByVersion);
          if (refusal !== undefined) throw refusal;
          // Newer rules admit it: in the next round all writes of the project are checked against
          // these.
          rules.clear();
          return await this.#fitting(
            group.filter(({ isSettled }) => !isSettled),
            rules,
          );
        }
        fitting.push(write);
      } catch (error) {
        if (settle(write)) write.reject(toAppError(error));
      }
    }
    // Writes that were settled meanwhile were answered as not sent.
    return fitting.filter(({ isSettled }) => !isSettled);
  }

  /** Writes of `group` that still wait, once this instance may write; the others were not applied. */
  async #admitted(group: readonly QueuedWrite[]): Promise<readonly QueuedWrite[]> {
    const { admission, settle } = this.#options;
    for (;;) {
      const waiting = group.filter((write) => !write.isSettled);
      if (waiting.length === 0 || admission.writeId !== undefined) return waiting;
      try {
        if (this.isStopped) throw storeUnavailable(undefined);
        await admission.whenAdmitted();
      } catch (error) {
        for (const write of waiting) if (settle(write)) write.reject(toAppError(error));
      }
    }
  }
}

/** The error that a caller gets for one of a group. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (!(error instanceof NotAppliedError)) {
    return new AppError<AuthzReason>('INTERNAL', 'internal error', {}, error);
  }
  const reported = storeError(error.cause);
  if (error.failure === 'refused' && reported instanceof AppError) return reported;
  return isPassing(error.failure)
    ? new AppError<AuthzReason>(
        'STORE_UNAVAILABLE',
        'the database does not take writes',
        {},
        error.cause,
      )
    : new AppError<AuthzReason>('INTERNAL', 'internal error', {}, error.cause);
}

function isPassing(failure: PgFailure): boolean {
  return (
    failure === 'unavailable' ||
    failure === 'timeout' ||
    failure === 'retryable' ||
    failure === 'refused' ||
    failure === 'fenced'
  );
}
