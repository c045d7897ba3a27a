import type { Pool, PoolClient } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { LARGE_UPDATES } from '../../model/tuple-input.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import { DECODE_TURNS, runInSlices } from '../../shared/slice-queue.ts';
import { type PgFailure, classifyPgError } from '../../store/postgres/pg-errors.ts';
import { selectHeadRevisions } from '../../store/sql/reads/select-head-revisions.ts';
import {
  type BackendIdentity,
  selectBackendIdentity,
  terminateBackend,
} from '../../store/sql/writes/backend-identity.ts';
import { selectCommits } from '../../store/sql/writes/select-commits.ts';
import { writeGroup } from '../../store/sql/writes/write-group.ts';
import type { WriteAdmission } from '../ports.ts';
import {
  type PlannedGroup,
  type ShardWrite,
  type WriteResult,
  argumentsOfResend,
  planGroup,
  planSteps,
  readGroupResults,
} from '../write-groups/write-group.ts';

export type GroupRunnerOptions = {
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  /** After this long without an answer the connection is given up. Above the server's own timeouts. */
  readonly answerTimeoutMs: number;
  /** Tries of a group that Postgres refused for a passing reason (deadlock, lock timeout). */
  readonly attemptsMax: number;
  /** Between tries; grows with each up to 20 times this. */
  readonly retryDelayMs: number;
};

/** Failures after which the same statement may succeed. */
const PASSING: ReadonlySet<PgFailure> = new Set([
  'retryable',
  'timeout',
  'unavailable',
  'refused',
  'fenced',
]);

/** After tuples that were stored already: groups that are written as if all were. */
const KNOWN_GROUPS = 64;

/** Callbacks while a group runs. */
export type GroupEvents = {
  /** Once at most: from here on the outcome is unknown until `run` settles. */
  readonly onOutcomeUnknown: () => void;
};

/** The version of a project's rules against which its writes were checked. */
export type RulesOf = (projectId: string) => number;

/** A failure after which nothing of the write was applied. */
export class NotAppliedError extends Error {
  readonly failure: PgFailure;

  constructor(failure: PgFailure, cause: unknown) {
    super('write was not applied', { cause });
    this.name = 'NotAppliedError';
    this.failure = failure;
  }
}

/**
 * Runs groups one after another on one connection of its own.
 *
 * SPEC. An attempt ends in one of: applied; refused (nothing was applied, the server said so); lost
 * (the connection broke after the statement was sent). After a loss
 * L1 the old session is ended first, so that what it was sent cannot be applied later;
 *    [tuple-writer.pg.test.ts]
 * L2 the same group is sent again with the same commit ids, and a check for them under the lock;
 *    [tuple-writer.pg.test.ts]
 * L3 this continues until the outcome is known or `close` was called, however long that takes.
 *    [tuple-writer.pg.test.ts]
 * A group that is refused for its registration was not applied by that attempt; what an earlier one did
 * that was lost is requested again under the next registration.
 */
export class GroupRunner {
  readonly #options: GroupRunnerOptions;
  #client: PoolClient | undefined;
  #backend: BackendIdentity | undefined;
  #isClosed = false;
  /** The error with which the connection ended, if it did. */
  #brokenBy: Error | undefined;
  readonly #onError = (error: Error): void => void (this.#brokenBy ??= error);
  #trouble: { readonly sinceMs: number; readonly error: unknown } | undefined;
  /** Groups that are still to be written without the expectation that their tuples are new. */
  #knownGroups = 0;

  constructor(options: GroupRunnerOptions) {
    this.#options = options;
  }

  /**
   * Applies `writes` in order and returns their results by position. Errors: NotAppliedError (`fenced`: to
   * be run again once admitted; `outdated`: once they were checked again);
   * WRITE_OUTCOME_UNKNOWN only when closed before the outcome was known.
   */
  async run(
    writes: readonly ShardWrite[],
    events: GroupEvents,
    rulesOf?: RulesOf,
  ): Promise<WriteResult[]> {
    assert(writes.length > 0, 'a group has writes');
    try {
      return await this.#run(writes, events, rulesOf);
    } finally {
      this.#trouble = undefined;
    }
  }

  async #run(
    writes: readonly ShardWrite[],
    events: GroupEvents,
    rulesOf: RulesOf | undefined,
  ): Promise<WriteResult[]> {
    if (this.#knownGroups > 0) this.#knownGroups--;
    const areNew = this.#knownGroups === 0;
    const group = await plannedGroup(writes, rulesOf, areNew);
    let lost: BackendIdentity | undefined;
    let isUnknown = false;
    for (let attempt = 1; ; attempt++) {
      let isSent = false;
      let writeId: string | null | undefined;
      try {
        const client = await this.#connect();
        if (lost !== undefined) await terminateBackend(client, lost, this.#options.answerTimeoutMs);
        writeId = this.#options.admission.writeId;
        if (writeId === undefined) {
          if (!isUnknown) throw new NotAppliedError('fenced', undefined);
          await this.#admitted();
          continue;
        }
        isSent = true;
        return await this.#send(client, writeId, writes, group, isUnknown);
      } catch (error) {
        if (error instanceof NotAppliedError) throw error;
        const failure = classifyPgError(error);
        if (failure === 'fenced') {
          this.#options.admission.refused(writeId ?? null);
          if (!isUnknown) throw new NotAppliedError('fenced', error);
        }
        if (failure === 'unavailable') {
          lost = this.#drop(error) ?? lost;
          if (isSent && !isUnknown) {
            isUnknown = true;
            events.onOutcomeUnknown();
          }
        }
        if (failure === 'unavailable' || failure === 'refused') {
          this.#trouble = { sinceMs: this.#trouble?.sinceMs ?? performance.now(), error };
        }
        const mayPass = PASSING.has(failure);
        // Data that PostgreSQL refuses was not applied by any attempt. Otherwise a loss obliges to
        // continue: only a check under the lock decides (L3).
        const isRefused = !mayPass && isSent;
        // A retry would be refused again: the callers get the error at once.
        const isAtEnd = failure === 'refused' || attempt >= this.#options.attemptsMax;
        const isSpent = !isUnknown && (!mayPass || isAtEnd);
        if (isRefused || isSpent) throw new NotAppliedError(failure, error);
        if (this.#isClosed) {
          throw isUnknown ? outcomeUnknown(error) : new NotAppliedError(failure, error);
        }
        await this.#pause(attempt);
      }
    }
  }

  /** Since when the group under way is kept waiting by a server that is away or refuses, and its latest error. */
  get trouble(): { readonly sinceMs: number; readonly error: unknown } | undefined {
    return this.#trouble;
  }

  /** A run under way that must try again gives up instead. */
  stop(): void {
    this.#isClosed = true;
  }

  /** Ends the connection, and with it a statement under way, whose outcome is then unknown. */
  abandon(): void {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = undefined;
    client?.release(true);
  }

  /** Gives the connection back; only while nothing runs. */
  close(): void {
    this.#isClosed = true;
    this.release();
  }

  /** Releases the connection like `close`; the next run takes another one. */
  release(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.off('error', this.#onError);
    client?.release(this.#brokenBy);
    this.#brokenBy = undefined;
  }

  async #send(
    client: PoolClient,
    writeId: string | null,
    writes: readonly ShardWrite[],
    group: PlannedGroup,
    mayBeApplied: boolean,
  ): Promise<WriteResult[]> {
    const values = mayBeApplied ? argumentsOfResend(group) : group.values;
    const { answerTimeoutMs } = this.#options;
    const { hints, modeValues } = group;
    const row = await writeGroup(client, writeId, values, answerTimeoutMs, hints, modeValues);
    if (row.was_applied) return await readBack(client, writes);
    // Tuples expected to be new were stored already, and the group was written again: expect more such groups.
    if (row.found_stored === true && this.#knownGroups === 0) this.#knownGroups = KNOWN_GROUPS;
    return readGroupResults(group, row);
  }

  async #connect(): Promise<PoolClient> {
    // A connection that ended between two groups was sent nothing of this one: a server that takes
    // no new connection fails at once.
    if (this.#brokenBy !== undefined) this.#drop(this.#brokenBy);
    if (this.#client !== undefined) return this.#client;
    const client = await this.#options.pool.connect();
    this.#brokenBy = undefined;
    // Without a listener an error between statements would end the process.
    client.on('error', this.#onError);
    try {
      this.#backend = await selectBackendIdentity(client);
    } catch (error) {
      client.off('error', this.#onError);
      client.release(true);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** Forgets a broken connection and returns the session that it had. */
  #drop(error: unknown): BackendIdentity | undefined {
    if (this.#client === undefined) return undefined;
    this.#client.off('error', this.#onError);
    this.#client.release(error instanceof Error ? error : true);
    this.#client = undefined;
    this.#brokenBy = undefined;
    return this.#backend;
  }

  /** While an outcome is open; whether the database answers is seen by the next attempt. */
  async #admitted(): Promise<void> {
    if (this.#isClosed) throw outcomeUnknown();
    await this.#options.admission.whenAdmitted().catch(() => this.#pause(20));
  }

  async #pause(attempt: number): Promise<void> {
    const delayMs = this.#options.retryDelayMs * Math.min(attempt, 20);
    await new Promise((done) => setTimeout(done, delayMs));
  }
}

/** In slices where it is much, so that checks and smaller groups have their turns. */
async function plannedGroup(
  writes: readonly ShardWrite[],
  rulesOf: RulesOf | undefined,
  areNew: boolean,
): Promise<PlannedGroup> {
  let updates = 0;
  for (const write of writes) updates += write.updates.length;
  if (updates <= LARGE_UPDATES) return planGroup(writes, rulesOf, areNew);
  return await runInSlices(planSteps(writes, rulesOf, areNew), DECODE_TURNS);
}

/** WRITE_OUTCOME_UNKNOWN, for callers that must be answered before the outcome is known. */
export function outcomeUnknown(cause?: unknown): AppError {
  return new AppError<AuthzReason>(
    'WRITE_OUTCOME_UNKNOWN',
    'the connection to the database was lost during the write: it may have been applied or not',
    {},
    cause,
  );
}

/** Results of a group that an earlier attempt applied: its change rows, found by commit id. */
async function readBack(client: PoolClient, writes: readonly ShardWrite[]): Promise<WriteResult[]> {
  const shards = distinctShards(writes);
  const rows = await selectCommits(
    client,
    shards,
    writes.map((write) => write.commitId),
  );
  const headRevisions = await selectHeadRevisions(client, shards);
  return writes.map((write) => {
    const row = rows.find(({ commitId }) => commitId === write.commitId);
    if (row !== undefined) {
      const { epoch, revision, changes, settingsVersion } = row;
      return { epoch, revision, changes, settingsVersion };
    }
    // No record: it had no effect. The head revision is at or above the revision that it reached.
    const headRevision = headRevisions.find((one) => isSameShard(one, write.shard));
    assert(headRevision !== undefined, 'every shard has a head');
    return {
      epoch: headRevision.epoch,
      revision: headRevision.revision,
      changes: null,
      settingsVersion: 0,
      // One with modes was refused, or found what it wanted: which of both is not known any more.
      ...(write.modes === undefined ? {} : { refusedAt: 0 }),
    };
  });
}

function distinctShards(writes: readonly ShardWrite[]): ShardKey[] {
  const shards: ShardKey[] = [];
  for (const { shard } of writes) {
    if (!shards.some((one) => isSameShard(one, shard))) shards.push(shard);
  }
  return shards;
}

function isSameShard(a: ShardKey, b: ShardKey): boolean {
  return a.projectId === b.projectId && a.tenantId === b.tenantId;
}
