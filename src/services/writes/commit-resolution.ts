import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { isUnavailable } from '../../store/postgres/pg-errors.ts';
import { type BackendIdentity, terminateBackend } from '../../store/sql/writes/backend-identity.ts';
import { selectCommits } from '../../store/sql/writes/select-commits.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import { outcomeUnknown } from './group-runner.ts';
import type { Recorded } from './write-transaction.ts';

export type CommitResolutionOptions = {
  readonly pool: Pool;
  readonly headRevisions: HeadRevisions;
  readonly answerTimeoutMs: number;
  readonly retryDelayMs: number;
};

/**
 * Returns when a COMMIT whose answer was lost turns out to have been applied. Errors: the given one
 * when it was not; WRITE_OUTCOME_UNKNOWN when the outcome does not show in time, or no tuple was
 * written: rows alone carry no commit id. Where tuples were written, reads of the shards then query
 * PostgreSQL for the rest of this process's life.
 */
export async function resolveCommit(
  options: CommitResolutionOptions,
  shards: readonly ShardKey[],
  recorded: readonly Recorded[],
  lost: BackendIdentity,
  cause: Error,
): Promise<void> {
  if (!isUnavailable(cause)) throw cause;
  const { answerTimeoutMs, retryDelayMs, headRevisions } = options;
  const effective = recorded.find(({ result }) => result.changes !== null);
  if (effective === undefined) throw outcomeUnknown(cause);
  for (const { projectId, tenantId } of shards) headRevisions.markUnknown(projectId, tenantId);
  const endMs = performance.now() + answerTimeoutMs;
  while (performance.now() < endMs) {
    // A check that fails is no answer, whatever it fails with: the next one may be.
    const isApplied = await isCommitted(options, lost, effective).catch(() => undefined);
    if (isApplied === undefined) {
      await new Promise((done) => setTimeout(done, retryDelayMs * 5));
      continue;
    }
    for (const { projectId, tenantId } of shards) headRevisions.clearUnknown(projectId, tenantId);
    if (isApplied) return;
    throw cause;
  }
  throw outcomeUnknown(cause);
}

async function isCommitted(
  { pool, answerTimeoutMs }: CommitResolutionOptions,
  lost: BackendIdentity,
  { write }: Recorded,
): Promise<boolean> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await terminateBackend(client, lost, answerTimeoutMs);
    return (await selectCommits(client, [write.shard], [write.commitId])).length > 0;
  } catch (error) {
    broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}
