import type { ClientBase, Pool } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import { LEASE_MS } from '../../store/membership/instance-lease.ts';
import {
  isEndedIdle,
  isFenced,
  isRetryable,
  isUnavailable,
  projectsWithOtherRules,
  storeError,
} from '../../store/postgres/pg-errors.ts';
import { selectBackendIdentity } from '../../store/sql/writes/backend-identity.ts';
import { lockShards } from '../../store/sql/writes/lock-shards.ts';
import type { WriteAdmission } from '../ports.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import type { CommitPublisher } from './commit-publisher.ts';
import { resolveCommit } from './commit-resolution.ts';
import type { OpenCommits } from './open-commits.ts';
import type { ProjectRules, WriteRules } from './write-rules.ts';
import {
  type Recorded,
  type RulesByProject,
  type WriteTransaction,
  writeTransaction,
} from './write-transaction.ts';

/** Work of a transaction before its shards are locked. */
export type Preparation = {
  /** Holds no shard, and may take long: pauses of the process count as elsewhere. Its errors end the transaction. */
  readonly prepare: (client: ClientBase) => Promise<void>;
  /** Looks whether others wait for what was prepared, and throws if they do. */
  readonly checkQuiet: (client: ClientBase) => Promise<void>;
  /** Waits a moment for the turn of the shards in this process; undefined: it was not theirs. */
  readonly hold: () => Promise<(() => void) | undefined>;
};

export type ExclusiveWriterOptions = {
  readonly pool: Pool;
  readonly ids: IdSource;
  readonly headRevisions: HeadRevisions;
  readonly publisher: CommitPublisher;
  readonly admission: WriteAdmission;
  readonly rules: WriteRules;
  readonly commits: OpenCommits;
  readonly answerTimeoutMs: number;
  readonly attemptsMax: number;
  readonly retryDelayMs: number;
};

/** Lifetime of the locks of a process that hangs: afterwards other instances count it as dead, too. */
const IDLE_MAX_MS = LEASE_MS;
const BEGIN = `begin isolation level read committed;
  set local idle_in_transaction_session_timeout = ${IDLE_MAX_MS}`;

/** Transactions that write tuples next to other rows. The caller holds the shards' queues. */
export class ExclusiveWriter {
  readonly #options: ExclusiveWriterOptions;

  constructor(options: ExclusiveWriterOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` between BEGIN and COMMIT with the rows of `shards` (sorted) locked, and publishes
   * what it wrote. Runs it again from its start where Postgres asks for that, the instance had to register
   * anew, what tuples must fit has changed, or the process stood still in the middle for IDLE_MAX_MS: others waited for its locks, and the
   * server ended its session. `isOverdue` is asked before it waits for admission, and after standing
   * still. Errors: those of `work` as they are; STORE_UNAVAILABLE (nothing was applied), DEADLINE_EXCEEDED
   * (likewise), WRITE_OUTCOME_UNKNOWN.
   */
  async run<T>(
    shards: readonly ShardKey[],
    isOverdue: () => boolean,
    work: (transaction: WriteTransaction) => Promise<T>,
    preparation?: Preparation,
  ): Promise<T> {
    const { admission } = this.#options;
    for (let attempt = 1; ;) {
      const { writeId } = admission;
      if (writeId === undefined) {
        if (isOverdue()) throw overdue();
        await admission.whenAdmitted();
        continue;
      }
      try {
        const rules = await this.#rulesOf(shards);
        return await this.#attempt(shards, writeId, rules, isOverdue, work, preparation);
      } catch (error) {
        const outdated = projectsWithOtherRules(error);
        if (outdated !== undefined) {
          await Promise.all(outdated.map((id) => this.#options.rules.fresh(id)));
          if (++attempt > this.#options.attemptsMax) throw storeUnavailable(error);
          continue;
        }
        if (isFenced(error)) {
          admission.refused(writeId);
          continue;
        }
        if (isUnavailable(error)) throw storeUnavailable(error);
        if (isEndedIdle(error) && isOverdue()) throw storeUnavailable(error);
        // A statement that took too long is trouble that may pass, as elsewhere.
        if (!isRetryable(error) && !isEndedIdle(error)) throw storeError(error);
        if (attempt >= this.#options.attemptsMax) throw storeUnavailable(error);
        await pause(this.#options.retryDelayMs * attempt);
        attempt++;
      }
    }
  }

  async #attempt<T>(
    shards: readonly ShardKey[],
    writeId: string | null,
    rules: RulesByProject,
    isOverdue: () => boolean,
    work: (transaction: WriteTransaction) => Promise<T>,
    preparation: Preparation | undefined,
  ): Promise<T> {
    let release: (() => void) | undefined;
    const recorded: Recorded[] = [];
    const client = await this.#options.pool.connect();
    let broken: Error | undefined;
    const brokenBy = (): Error | undefined => broken;
    const onError = (error: Error): void => {
      broken ??= error;
    };
    client.on('error', onError);
    try {
      const backend = await selectBackendIdentity(client);
      await client.query(BEGIN);
      if (preparation === undefined) await lockShards(client, writeId, shards);
      else release = await lockPrepared(client, writeId, shards, isOverdue, preparation);
      const value = await work(writeTransaction(client, writeId, rules, recorded, this.#options));
      // Its session has ended, and the transaction with it: there is nothing to commit.
      if (brokenBy() !== undefined) throw brokenBy();
      const open = this.#options.commits.begin(shards);
      try {
        await client.query('commit').catch(async (error: Error) => {
          broken ??= error;
          await resolveCommit(this.#options, shards, recorded, backend, error);
        });
        this.#options.publisher.publish(
          recorded.map(({ write }) => write),
          recorded.map(({ result }) => result),
        );
      } finally {
        this.#options.commits.settle(open);
      }
      return value;
    } catch (error) {
      // The error of the statement is less precise than the error of the connection.
      if (isUnavailable(error) && isEndedIdle(brokenBy())) throw brokenBy();
      if (isUnavailable(error)) broken ??= error as Error;
      else if (broken === undefined) {
        await client.query('rollback').catch((failure: Error) => (broken = failure));
      }
      throw error;
    } finally {
      release?.();
      client.off('error', onError);
      client.release(broken);
    }
  }

  /**
   * Loads the rules before the transaction, which must not wait for a connection. A failure is kept
   * for the writes of that project: deletes need no rules.
   */
  async #rulesOf(shards: readonly ShardKey[]): Promise<RulesByProject> {
    const { rules } = this.#options;
    const known = new Map<string, ProjectRules | Error>();
    for (const { projectId } of shards) {
      if (known.has(projectId)) continue;
      known.set(projectId, await rules.of(projectId).catch((error: Error) => error));
    }
    return known;
  }
}

/** Wait for a lock, in ms, while others may wait for this transaction. */
const PREPARED_LOCK_MS = 40;

/**
 * Prepares, then locks the shards without waiting long: a transaction that holds them may be waiting for the prepared
 * one. Returns the release of their turn.
 */
async function lockPrepared(
  client: ClientBase,
  writeId: string | null,
  shards: readonly ShardKey[],
  isOverdue: () => boolean,
  { prepare, checkQuiet, hold }: Preparation,
): Promise<() => void> {
  await prepare(client);
  for (;;) {
    await checkQuiet(client);
    if (isOverdue()) throw overdue();
    const release = await hold();
    if (release === undefined) continue;
    try {
      await client.query(`savepoint prepared; set local lock_timeout = ${PREPARED_LOCK_MS}`);
      await lockShards(client, writeId, shards);
      return release;
    } catch (error) {
      release();
      if (!isRetryable(error)) throw error;
      await client.query('rollback to savepoint prepared');
    }
  }
}

function overdue(): AppError {
  return new AppError<AuthzReason>(
    'DEADLINE_EXCEEDED',
    'the deadline passed before the instance could write',
  );
}

/** STORE_UNAVAILABLE: nothing was applied. */
export function storeUnavailable(cause: unknown): AppError {
  return new AppError<AuthzReason>('STORE_UNAVAILABLE', 'the database is not available', {}, cause);
}

async function pause(ms: number): Promise<void> {
  await new Promise((done) => setTimeout(done, ms));
}
