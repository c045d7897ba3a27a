import type { ClientBase, Pool, PoolClient } from 'pg';
import type { AuthzReason } from '../model/reasons.ts';
import type { ShardKey, TupleChange } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import type { IdSource } from '../shared/ids.ts';
import { LEASE_MS } from '../store/instance-lease.ts';
import {
  isEndedIdle,
  isFenced,
  isRetryable,
  isUnavailable,
  projectsWithOtherRules,
  storeError,
} from '../store/pg-errors.ts';
import {
  type BackendIdentity,
  selectBackendIdentity,
  terminateBackend,
} from '../store/sql/backend-identity.ts';
import { type ObjectKey, deleteObjectTuples } from '../store/sql/delete-object-tuples.ts';
import {
  type DeleteWhere,
  type DeletedRow,
  deleteTuplesWhere,
} from '../store/sql/delete-tuples-where.ts';
import { lockShards } from '../store/sql/lock-shards.ts';
import { selectCommits } from '../store/sql/select-commits.ts';
import { writeGroup } from '../store/sql/write-group.ts';
import type { CommitPublisher } from './commit-publisher.ts';
import { outcomeUnknown } from './group-runner.ts';
import type { HeadRevisions } from './head-revisions.ts';
import type { OpenCommits } from './open-commits.ts';
import type { WriteAdmission, WriteMeta } from './ports.ts';
import { refusalOfModes, type UpdateMode } from './update-modes.ts';
import { type ShardWrite, type WriteResult, planGroup, readGroupResults } from './write-group.ts';
import { NO_RULES, type ProjectRules, refusalOfUpdates, type WriteRules } from './write-rules.ts';

/** What the work of an exclusive transaction may do. */
export interface WriteTransaction {
  /** Inside the transaction; its shards' rows are locked. */
  readonly client: ClientBase;
  /** As TupleWrites.write, within this transaction. */
  write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    modes?: readonly UpdateMode[],
  ): Promise<WriteResult>;
  /** Deletes tuples by condition, one revision for each shard that held any. */
  deleteWhere(
    where: Omit<DeleteWhere, 'instanceId' | 'commitId' | 'rpc' | 'actingUserId' | 'requestId'>,
    meta: WriteMeta,
  ): Promise<readonly DeletedRow[]>;
  /**
   * Deletes every tuple on these objects of a shard, and those whose subject is one of them or a
   * userset of it, as one revision. Returns how many. O(tuples deleted).
   */
  deleteObjects(shard: ShardKey, objects: readonly ObjectKey[], meta: WriteMeta): Promise<number>;
  /**
   * Runs a statement that moves a shard by one change of its own, stored under the given ids; what it returns is
   * published after the commit. Without an effect `changes` is null.
   */
  change(
    shard: ShardKey,
    meta: WriteMeta,
    run: (commit: CommitIds) => Promise<WriteResult>,
  ): Promise<WriteResult>;
}

/** Under which a change is stored: see ShardWrite. */
export type CommitIds = { readonly commitId: string; readonly forkId: string };

/** What is done in a transaction before its shards are locked. */
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

/** How long the locks of a process that stands still stay: afterwards it counts as dead elsewhere, too. */
const IDLE_MAX_MS = LEASE_MS;
const BEGIN = `begin isolation level read committed;
  set local idle_in_transaction_session_timeout = ${IDLE_MAX_MS}`;

type RulesByProject = ReadonlyMap<string, ProjectRules | Error>;

type Recorded = { readonly write: Omit<ShardWrite, 'updates'>; readonly result: WriteResult };

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
      const value = await work(this.#transaction(client, writeId, rules, recorded));
      // Its session has ended, and the transaction with it: there is nothing to commit.
      if (brokenBy() !== undefined) throw brokenBy();
      const open = this.#options.commits.begin(shards);
      try {
        await client.query('commit').catch(async (error: Error) => {
          broken ??= error;
          await this.#resolveCommit(shards, recorded, backend, error);
        });
        this.#options.publisher.publish(
          recorded.map(({ write }) => write),
          recorded.map(({ result }) => result),
        );
      } finally {
        this.#options.commits.end(open);
      }
      return value;
    } catch (error) {
      // What came of it says less than why.
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
   * Asked for before the transaction, which must not wait for a connection. That there are none to be had is reported
   * to what writes: what only deletes needs none.
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

  #transaction(
    client: PoolClient,
    instanceId: string | null,
    rules: RulesByProject,
    recorded: Recorded[],
  ): WriteTransaction {
    const { ids, answerTimeoutMs } = this.#options;
    return {
      client,
      write: async (shard, updates, meta, modes) => {
        const write = { shard, updates, modes, meta, commitId: ids.uuid(), forkId: ids.forkId() };
        const known = rules.get(shard.projectId) ?? NO_RULES;
        if (known instanceof Error) throw known;
        const refusal = refusalOfUpdates(known, updates, 'updates');
        if (refusal !== undefined) throw refusal;
        const group = planGroup([write], () => known.version);
        const { values, modeValues } = group;
        const row = await writeGroup(
          client,
          instanceId,
          values,
          answerTimeoutMs,
          undefined,
          modeValues,
        );
        const result = readGroupResults(group, row)[0] as WriteResult;
        if (result.refusedAt !== undefined) throw refusalOfModes(write, result.refusedAt);
        recorded.push({ write, result });
        return result;
      },
      deleteWhere: async (where, meta) => {
        const commitId = ids.uuid();
        const rows = await deleteTuplesWhere(client, { ...where, ...meta, instanceId, commitId });
        for (const { tenantId, forkId, ...result } of rows) {
          const shard = { projectId: where.projectId, tenantId };
          recorded.push({ write: { shard, meta, commitId, forkId }, result });
        }
        return rows;
      },
      deleteObjects: async (shard, objects, meta) => {
        const commitId = ids.uuid();
        const row = await deleteObjectTuples(client, shard, objects, {
          ...meta,
          instanceId,
          commitId,
        });
        if (row === undefined) return 0;
        const { forkId, deleted, ...result } = row;
        recorded.push({ write: { shard, meta, commitId, forkId }, result });
        return deleted;
      },
      change: async (shard, meta, run) => {
        const commit = { commitId: ids.uuid(), forkId: ids.forkId() };
        const result = await run(commit);
        recorded.push({ write: { shard, meta, ...commit }, result });
        return result;
      },
    };
  }

  /**
   * Returns when a COMMIT whose answer was lost turns out to have been applied. Errors: the given one
   * when it was not; WRITE_OUTCOME_UNKNOWN when nothing says in time, or no tuple was written: rows alone
   * carry no commit id. Of tuples, reads of the shards then go by Postgres for the rest of this process's life.
   */
  async #resolveCommit(
    shards: readonly ShardKey[],
    recorded: readonly Recorded[],
    lost: BackendIdentity,
    cause: Error,
  ): Promise<void> {
    if (!isUnavailable(cause)) throw cause;
    const { pool, answerTimeoutMs, retryDelayMs, headRevisions } = this.#options;
    const effective = recorded.find(({ result }) => result.changes !== null);
    if (effective === undefined) throw outcomeUnknown(cause);
    for (const { projectId, tenantId } of shards) headRevisions.markUnknown(projectId, tenantId);
    const endMs = performance.now() + answerTimeoutMs;
    while (performance.now() < endMs) {
      // A look that fails says nothing, whatever it fails with: the next one may.
      const isApplied = await this.#isApplied(pool, lost, effective).catch(() => undefined);
      if (isApplied === undefined) {
        await pause(retryDelayMs * 5);
        continue;
      }
      for (const { projectId, tenantId } of shards) headRevisions.clearUnknown(projectId, tenantId);
      if (isApplied) return;
      throw cause;
    }
    throw outcomeUnknown(cause);
  }

  async #isApplied(pool: Pool, lost: BackendIdentity, { write }: Recorded): Promise<boolean> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await terminateBackend(client, lost, this.#options.answerTimeoutMs);
      return (await selectCommits(client, [write.shard], [write.commitId])).length > 0;
    } catch (error) {
      broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }
}

/** How long a lock is waited for by whom others may wait for. */
const PREPARED_LOCK_MS = 40;

/**
 * Prepares, then locks the shards without ever waiting long: somebody who holds them may be waiting for what was prepared.
 * Returns what gives their turn back.
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
