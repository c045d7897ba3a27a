import type { PoolClient } from 'pg';
import { SEAT_NAMESPACE, checkTenantId } from '../../model/names.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { inTransaction } from '../../store/postgres/transaction.ts';
import {
  type KeyRow,
  type TupleMatch,
  countDeletable,
  declareDeletable,
  deleteKeys,
  fetchDeletable,
} from '../../store/sql/reads/match-tuples.ts';
import { selectHeadRevisions } from '../../store/sql/reads/select-head-revisions.ts';
import { selectGuardedShard } from '../../store/sql/writes/tuple-write-keys.ts';
import type { WriteMeta } from '../ports.ts';
import { openShard } from '../projects/management-call.ts';
import type { BulkParts } from './bulk-ports.ts';
import { refused } from './guarded-write.ts';
import { checkTupleFilter, type RawFilter } from './tuple-filter.ts';

export type DeleteTuplesRequest = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly filter: RawFilter | undefined;
  /** Must be set for a filter with a namespace and no object, and for no other. */
  readonly wholeNamespace: boolean;
  /** Must be set for a filter without a namespace, and for no other. */
  readonly wholeTenant: boolean;
  readonly dryRun: boolean;
  /** '' if none. */
  readonly unchangedSince: string;
  /** 0 is no bound. */
  readonly countMax: bigint;
  readonly meta: WriteMeta;
  readonly signal: AbortSignal;
};

export type DeleteTuplesResult = { readonly count: number; readonly token: string };

type DeletePosition = { readonly epoch: number; readonly revision: number };

/** Keys of one chunk: its shard is held for about 10 ms. */
const CHUNK_KEYS = 500;

/** Deletes what a filter takes. */
export class TupleDelete {
  readonly #parts: BulkParts;

  constructor(parts: BulkParts) {
    this.#parts = parts;
  }

  /**
   * DeleteTuples: what the filter takes at one revision, but for what is written again meanwhile, in chunks that are one
   * change each. Tuples of the seat namespace are left. Errors: FIELD_*, NAMESPACE_RESERVED, TOKEN_INVALID, PRECONDITION_FAILED (nothing was
   * deleted), those of the project and of TupleWrites: then some chunks may have been deleted, and the same call continues.
   */
  async delete(request: DeleteTuplesRequest): Promise<DeleteTuplesResult> {
    const { pool, codec, slots, headRevisions, metrics, settingsSource } = this.#parts;
    const { tenantId, unchangedSince } = request;
    checkTenantId('tenant_id', tenantId);
    const match = checkRequest(request);
    const address = { projectId: settingsSource.resolveId(request.projectId), tenantId };
    const field = 'unchanged_since';
    const since = unchangedSince === '' ? undefined : codec.decode(address, unchangedSince, field);
    const shard = await openShard(this.#parts, request);
    await slots.acquire(request.signal);
    try {
      const done = await inTransaction(
        pool,
        async (client) => {
          const [headRevision] = await selectHeadRevisions(client, [shard]);
          if (headRevision === undefined) throw new Error('every shard has a head');
          headRevisions.raise(shard.projectId, tenantId, headRevision.epoch, headRevision.revision);
          if (since !== undefined) checkUnchanged(since, headRevision);
          if (request.dryRun || request.countMax > 0n) {
            const count = await countDeletable(client, shard, match);
            checkCount(count, request.countMax);
            if (request.dryRun) return { count, position: headRevision };
          }
          return await this.#chunks(client, shard, match, headRevision, since, request);
        },
        'repeatable read, read only',
      );
      if (!request.dryRun) metrics.deleted(done.count);
      const { epoch, revision } = done.position;
      return { count: done.count, token: codec.encode(shard, epoch, revision) };
    } catch (error) {
      throw storeError(error);
    } finally {
      slots.release();
    }
  }

  /** Looks up keys in the snapshot of `client`, and deletes them elsewhere. */
  async #chunks(
    client: PoolClient,
    shard: ShardKey,
    match: TupleMatch,
    headRevision: DeletePosition,
    since: DeletePosition | undefined,
    { meta, signal }: DeleteTuplesRequest,
  ): Promise<{ readonly count: number; readonly position: DeletePosition }> {
    await declareDeletable(client, shard, match);
    let count = 0;
    let position: DeletePosition = { epoch: headRevision.epoch, revision: headRevision.revision };
    for (let isFirst = true; ; isFirst = false) {
      const keys = await fetchDeletable(client, CHUNK_KEYS);
      if (keys.length === 0) return { count, position };
      if (signal.aborted) {
        throw new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
      }
      const mustBe = isFirst ? since : undefined;
      const chunk = await this.#chunk(shard, keys, headRevision, mustBe, meta);
      count += chunk.deleted;
      if (chunk.deleted > 0) position = chunk;
    }
  }

  async #chunk(
    shard: ShardKey,
    keys: readonly KeyRow[],
    headRevision: DeletePosition,
    mustBe: DeletePosition | undefined,
    meta: WriteMeta,
  ): Promise<DeletePosition & { readonly deleted: number }> {
    const { writer, metrics } = this.#parts;
    let heldFromMs = 0;
    const chunk = await writer.exclusive([shard], meta, async (transaction) => {
      heldFromMs = performance.now();
      const { client } = transaction;
      if (mustBe !== undefined) {
        checkUnchanged(mustBe, await selectGuardedShard(client, shard, ''));
      }
      let deleted = 0;
      const result = await transaction.change(shard, meta, async (commit) => {
        const row = await deleteKeys(client, shard, keys, headRevision.revision, {
          ...meta,
          ...commit,
        });
        // Tuples of an ended epoch have no revision to compare with.
        if (row.epoch !== headRevision.epoch)
          throw refused('filter', 'the history has changed: try again');
        deleted = row.deleted;
        return row;
      });
      return { epoch: result.epoch, revision: result.revision, deleted };
    });
    metrics.held((performance.now() - heldFromMs) / 1_000);
    return chunk;
  }
}

function checkRequest(request: DeleteTuplesRequest): TupleMatch {
  const { filter, countMax } = request;
  const match = checkTupleFilter('filter', filter);
  if (match.namespace === SEAT_NAMESPACE) {
    throw new AppError<AuthzReason>(
      'NAMESPACE_RESERVED',
      'filter.namespace: tuples of the seat namespace are deleted by RevokeSeat and DeprovisionUser only',
      { field: 'filter.namespace' },
    );
  }
  checkExtent(match, request);
  if (countMax < 0n) throw fieldError('count_max', 'must not be negative');
  return match;
}

/**
 * Checks that the request states its extent, which alone counts: an id that is empty by a caller's
 * fault must not widen a delete.
 */
function checkExtent(
  { namespace, objectId }: TupleMatch,
  { wholeNamespace, wholeTenant }: DeleteTuplesRequest,
): void {
  if (wholeTenant && namespace !== null) {
    throw fieldError('whole_tenant', 'excludes filter.namespace');
  }
  if (wholeNamespace && objectId !== null) {
    throw fieldError('whole_namespace', 'excludes filter.object_id');
  }
  if (namespace === null) {
    if (wholeNamespace) throw fieldError('filter.namespace', 'is required with whole_namespace');
    if (!wholeTenant) {
      throw fieldError('filter.namespace', 'is empty: every namespace needs whole_tenant');
    }
  } else if (objectId === null && !wholeNamespace) {
    throw fieldError(
      'filter.object_id',
      `is empty: every object of "${namespace}" needs whole_namespace`,
    );
  }
}

function checkUnchanged(since: DeletePosition, { epoch, revision }: DeletePosition): void {
  if (since.epoch !== epoch || since.revision !== revision) {
    throw refused('unchanged_since', 'the tenant has changed since');
  }
}

function checkCount(count: number, countMax: bigint): void {
  if (countMax > 0n && BigInt(count) > countMax) {
    throw refused('count_max', `${count} tuples would be deleted`);
  }
}
