import type { ClientBase, PoolClient } from 'pg';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import type { IdSource } from '../../shared/ids.ts';
import { type ObjectKey, deleteObjectTuples } from '../../store/sql/writes/delete-object-tuples.ts';
import {
  type DeleteWhere,
  type DeletedRow,
  deleteTuplesWhere,
} from '../../store/sql/writes/delete-tuples-where.ts';
import { writeGroup } from '../../store/sql/writes/write-group.ts';
import type { WriteMeta } from '../ports.ts';
import { refusalOfModes, type WriteOptions } from '../write-groups/update-modes.ts';
import {
  type ShardWrite,
  type WriteResult,
  planGroup,
  readGroupResults,
} from '../write-groups/write-group.ts';
import { NO_RULES, type ProjectRules, refusalOfUpdates } from './write-rules.ts';

/** Methods for the work of an exclusive transaction. */
export interface WriteTransaction {
  /** Inside the transaction; its shards' rows are locked. */
  readonly client: ClientBase;
  /** Writes like TupleWrites.write, within this transaction. */
  write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    options?: WriteOptions,
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

/** Rules of each project, or the error that kept them from being loaded. */
export type RulesByProject = ReadonlyMap<string, ProjectRules | Error>;

/** A write within the transaction, to be published after the commit. */
export type Recorded = {
  readonly write: Omit<ShardWrite, 'updates'>;
  readonly result: WriteResult;
};

export type WriteTransactionOptions = {
  readonly ids: IdSource;
  readonly answerTimeoutMs: number;
};

/** The transaction on `client`, whose shards are locked; what it writes is put into `recorded`. */
export function writeTransaction(
  client: PoolClient,
  instanceId: string | null,
  rules: RulesByProject,
  recorded: Recorded[],
  { ids, answerTimeoutMs }: WriteTransactionOptions,
): WriteTransaction {
  return {
    client,
    write: async (shard, updates, meta, { modes, isByVersion = false } = {}) => {
      const write = { shard, updates, modes, meta, commitId: ids.uuid(), forkId: ids.forkId() };
      const known = rules.get(shard.projectId) ?? NO_RULES;
      if (known instanceof Error) throw known;
      const refusal = refusalOfUpdates(known, updates, 'updates', isByVersion);
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
