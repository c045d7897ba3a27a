import { checkTenantId } from '../../model/names.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { ROW_BOUNDS, streamTuples, type TuplePage } from '../../store/feed/tuple-stream.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { matchText } from '../../store/sql/reads/match-tuples.ts';
import { selectTenants } from '../../store/sql/reads/select-head-revisions.ts';
import { openShard } from '../projects/management-call.ts';
import { ServedProject } from '../projects/served-project.ts';
import type { BulkParts } from './bulk-ports.ts';
import type { StreamCursors, StreamPosition, StreamScope } from './stream-cursor.ts';
import { checkTupleFilter, type RawFilter } from './tuple-filter.ts';

/** Parts of the export. */
export type TupleExportParts = BulkParts & { readonly clock: Pick<Clock, 'monotonicMs'> };

export type ExportTuplesRequest = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly allTenants: boolean;
  readonly filter: RawFilter | undefined;
  /** '' if none. */
  readonly token: string;
  /** '' from the start. */
  readonly cursor: string;
};

/** A part of an export: rows of one shard. */
export type ExportedPart = {
  readonly shard: ShardKey;
  readonly page: TuplePage;
  readonly cursor: string;
  readonly token: string;
  readonly isRevisionChanged: boolean;
};

const KEY_COLUMNS = 6;
const TENANTS_PAGE = 256;
/** A caller that takes nothing for this long loses the snapshot, and may continue by its cursor. */
const STALL_MS = 60_000;

/** Streams stored tuples, expired ones too, in order of tenant and key. */
export class TupleExport {
  readonly #parts: TupleExportParts;
  readonly #cursors: StreamCursors;

  constructor(parts: TupleExportParts, cursors: StreamCursors) {
    this.#parts = parts;
    this.#cursors = cursors;
  }

  /**
   * StreamTuples: each shard from one snapshot. A connection is taken from the first part of a shard until its last.
   * Errors: FIELD_*, TOKEN_INVALID, those of the project (also later on), QUEUE_FULL, STORE_UNAVAILABLE; SHARD_UNAVAILABLE
   * where the caller takes nothing for a minute; CANCELLED.
   */
  async *stream(
    request: ExportTuplesRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ExportedPart, void, undefined> {
    const { positions, slots, pool } = this.#parts;
    const { allTenants, tenantId, token } = request;
    checkTenantId('tenant_id', tenantId);
    if (allTenants && tenantId !== '') throw fieldError('tenant_id', 'excludes all_tenants');
    if (allTenants && token !== '') {
      throw fieldError('at_least_consistency_token', 'is of one tenant, and excludes all_tenants');
    }
    const match = checkTupleFilter('filter', request.filter);
    const { projectId } = await openShard(this.#parts, request);
    const scope = { projectId, tenantId: allTenants ? null : tenantId, match };
    const served = new ServedProject(
      () => this.#parts.clock.monotonicMs(),
      () => openShard(this.#parts, request),
    );
    const from = request.cursor === '' ? undefined : this.#cursors.decode(scope, request.cursor);
    // The database has every commit, so a token that is valid needs no waiting.
    if (token !== '') positions.decode({ projectId, tenantId }, token);
    if (!allTenants) {
      await slots.acquire(signal);
      try {
        yield* this.#shard({ projectId, tenantId }, scope, from, served, signal, token);
      } finally {
        slots.release();
      }
      return;
    }
    for (let after: string | null = null, isFirst = true; ; isFirst = false) {
      const start: string | null = isFirst && from !== undefined ? from.tenantId : after;
      const isInclusive = isFirst && from !== undefined;
      const tenantIds: readonly string[] = await selectTenants(
        pool,
        projectId,
        start,
        isInclusive,
        TENANTS_PAGE,
      ).catch(rethrowStoreError);
      for (const id of tenantIds) {
        await slots.acquire(signal);
        try {
          await served.refresh();
          const position = from?.tenantId === id ? from : undefined;
          for await (const part of this.#shard(
            { projectId, tenantId: id },
            scope,
            position,
            served,
            signal,
          )) {
            if (part.page.rows > 0) yield part;
          }
        } finally {
          slots.release();
        }
      }
      after = tenantIds.at(-1) ?? null;
      if (tenantIds.length < TENANTS_PAGE) return;
    }
  }

  async *#shard(
    shard: ShardKey,
    scope: StreamScope,
    from: StreamPosition | undefined,
    served: ServedProject,
    signal: AbortSignal,
    token = '',
  ): AsyncGenerator<ExportedPart, void, undefined> {
    const { pool, headRevisions, codec, metrics, positions } = this.#parts;
    const { match } = scope;
    const pages = streamTuples(
      pool,
      {
        shard,
        clauses: (client) => matchText(match, (value) => client.escapeLiteral(value)),
        isByKey: match.subject === null,
        after: from?.key ?? null,
        stallMs: STALL_MS,
      },
      signal,
    );
    let key = from?.key ?? null;
    let isFirst = true;
    try {
      for await (const page of pages) {
        await served.refresh();
        const { epoch, revision } = page.headRevision;
        if (isFirst) {
          headRevisions.raise(shard.projectId, shard.tenantId, epoch, revision);
          // Checked against the page just read, not against cached heads: the server may have another history by now.
          positions.checkToken(shard, token, { epoch, minRevision: revision, forkId: '' });
        }
        if (page.rows > 0) key = lastKey(page);
        metrics.exported(page.rows);
        yield {
          shard,
          page,
          cursor: this.#cursors.encode(scope, { tenantId: shard.tenantId, epoch, revision, key }),
          token: codec.encode(shard, epoch, revision),
          isRevisionChanged:
            isFirst && from !== undefined && (from.epoch !== epoch || from.revision !== revision),
        };
        isFirst = false;
      }
    } catch (error) {
      if (signal.aborted) throw new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
      throw storeError(error);
    }
  }
}

function lastKey({ bytes, bounds, rows }: TuplePage): readonly string[] {
  const at = (rows - 1) * ROW_BOUNDS;
  return Array.from({ length: KEY_COLUMNS }, (_, i) =>
    bytes.toString('utf8', bounds[at + 2 * i], bounds[at + 2 * i + 1]),
  );
}

function rethrowStoreError(error: unknown): never {
  throw storeError(error);
}
