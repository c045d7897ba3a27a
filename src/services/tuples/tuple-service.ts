import type { Pool } from 'pg';
import {
  type ConditionProblem,
  problemOfCondition,
} from '../../model/conditions/condition-admission.ts';
import type { ConditionDeclarations } from '../../model/conditions/model-conditions.ts';
import type { TokenCodec } from '../../model/consistency-token.ts';
import {
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkTenantId,
  checkUserId,
} from '../../model/names.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import {
  type RelationTuple,
  type ShardKey,
  subjectFromColumns,
  type TupleChange,
} from '../../model/relation-tuple.ts';
import { checkUpdatesInSlices } from '../../model/tuple-input.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { inTransaction } from '../../store/postgres/transaction.ts';
import {
  type HeadRevisionRow,
  selectHeadRevisions,
} from '../../store/sql/reads/select-head-revisions.ts';
import { selectSubjectGrants } from '../../store/sql/reads/select-subject-grants.ts';
import { selectSubjectTenants } from '../../store/sql/reads/select-subject-tenants.ts';
import {
  type TupleFilter,
  type StoredTupleRow,
  declareTupleCursor,
  fetchTuples,
  selectFirstTuples,
} from '../../store/sql/reads/select-tuples.ts';
import { type ProjectSettings, refusalOf } from '../projects/project-settings.ts';
import type { SettingsSource } from '../projects/settings-source.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import type { ReadPositions } from '../reads/read-positions.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';
import type { WriteRules } from '../writes/write-rules.ts';
import type {
  DeprovisionRequest,
  ExportRequest,
  ReadRequest,
  SubjectGrant,
  WriteRequest,
} from './tuple-requests.ts';

export type TupleServiceOptions = {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly settingsSource: SettingsSource;
  readonly codec: TokenCodec;
  readonly headRevisions: HeadRevisions;
  readonly positions: ReadPositions;
  readonly writer: TupleWrites;
  /** Declarations of models, to report tuples that can never grant anything. */
  readonly rules: Pick<WriteRules, 'peek'>;
  /** Counts tuples that were written although no request can decide their condition. */
  readonly onUndecidable: (field: ConditionProblem['field']) => void;
  /** GATEWAY_MAX_WRITE_UPDATES. */
  readonly updatesMax: number;
  /** Tuples of one ReadRelationTuples, at most. */
  readonly readTuplesMax: number;
  /** Deletes in one change of DeprovisionUser, at most: more take several revisions. */
  readonly deletesPerRevisionMax: number;
  /** Grants of one ExportSubjectGrants, at most. */
  readonly exportGrantsMax: number;
};

/** Rows that are parsed in one turn of the event loop. */
const PAGE_ROWS = 256;
const NO_CONDITIONS: ConditionDeclarations = new Map();

/** The four methods of AuthzService that read or write stored tuples without evaluating them. */
export class TupleService {
  readonly #options: TupleServiceOptions;

  constructor(options: TupleServiceOptions) {
    this.#options = options;
  }

  /**
   * WriteRelationTuples: returns the consistency token. Errors: FIELD_*, NAMESPACE_RESERVED,
   * BATCH_TOO_LARGE, those of the project and of TupleWrites.write.
   */
  async write(request: WriteRequest): Promise<string> {
    const { settingsSource, writer, codec, updatesMax } = this.#options;
    checkTenantId('tenant_id', request.tenantId);
    const projectId = settingsSource.resolveId(request.projectId);
    const shard = { projectId, tenantId: request.tenantId };
    const updates = await checkUpdatesInSlices(request.updates, shard, updatesMax);
    settingsSource.guard(
      settingsSource.peek(projectId) ?? (await settingsSource.load(projectId)),
      'data',
    );
    const { epoch, revision } = await writer.write(shard, updates, request.meta);
    this.#countUndecidable(projectId, updates);
    return codec.encode(shard, epoch, revision);
  }

  /** Models that declare conditions refuse such tuples; elsewhere they are stored, and deny. */
  #countUndecidable(projectId: string, updates: readonly TupleChange[]): void {
    const { rules, onUndecidable } = this.#options;
    const conditions = rules.peek(projectId)?.models[0]?.conditions ?? NO_CONDITIONS;
    for (const update of updates) {
      if (update.op === 'delete') continue;
      const problem = problemOfCondition(conditions, update.tuple);
      if (problem !== undefined) onUndecidable(problem.field);
    }
  }

  /**
   * ReadRelationTuples: stored tuples that match, expired ones too, in order of identity, from one
   * snapshot. Errors: FIELD_*, TOKEN_INVALID, RESULT_TOO_LARGE, STORE_UNAVAILABLE, the project's.
   */
  async read(request: ReadRequest): Promise<readonly RelationTuple[]> {
    const { settingsSource, positions, headRevisions, readTuplesMax, pool } = this.#options;
    checkTenantId('tenant_id', request.tenantId);
    const projectId = settingsSource.resolveId(request.projectId);
    const filter = checkFilter(request, projectId);
    const settings = await this.#settingsForRead(projectId);
    const shard = { projectId, tenantId: request.tenantId };
    // PostgreSQL has every commit, so a valid token needs no waiting; an invalid one is refused before anything is read.
    const { token } = request;
    if (token !== '') positions.decode(shard, token);
    const first = await selectFirstTuples(pool, filter, PAGE_ROWS + 1).catch(rethrowStoreError);
    headRevisions.raise(projectId, shard.tenantId, first.epoch, first.revision);
    if (first.settingsVersion > settings.version) {
      // Changed by another instance: as the rows are shown, so are the settings in force.
      settingsSource.guard(await settingsSource.atLeast(projectId, first.settingsVersion), 'data');
    }
    checkRead(positions, shard, token, first);
    if (first.rows.length <= PAGE_ROWS) return first.rows.map(tupleFromRow);
    const { tuples, headRevision } = await this.#readPages(filter, readTuplesMax).catch(
      rethrowStoreError,
    );
    checkRead(positions, shard, token, headRevision);
    return tuples;
  }

  /**
   * DeprovisionUser: deletes every tuple of the user in all tenants of the project, in one transaction, and
   * returns how many. Every `deletesPerRevisionMax` tuples of a tenant take a revision. Errors: FIELD_*,
   * REGION_REFUSED, those of TupleWrites.
   */
  async deprovisionUser(request: DeprovisionRequest): Promise<number> {
    const { settingsSource, writer, pool, deletesPerRevisionMax: rowsMax } = this.#options;
    checkUserId('user_id', request.userId);
    const projectId = settingsSource.resolveId(request.projectId);
    settingsSource.guard(await settingsSource.settings(projectId), 'subject-rights');
    const tenantIds = await selectSubjectTenants(pool, projectId, request.userId).catch(
      rethrowStoreError,
    );
    if (tenantIds.length === 0) return 0;
    const shards = tenantIds.map((tenantId) => ({ projectId, tenantId }));
    const { userId, meta } = request;
    return await writer.exclusive(shards, meta, async (transaction) => {
      let deleted = 0;
      let left: readonly string[] = tenantIds;
      while (left.length > 0) {
        const where = { projectId, tenantIds: left, userId, expiredByUs: null, rowsMax };
        const rows = await transaction.deleteWhere(where, meta);
        for (const row of rows) deleted += row.deleted;
        left = rows.filter((row) => row.deleted === rowsMax).map((row) => row.tenantId);
      }
      return deleted;
    });
  }

  /**
   * ExportSubjectGrants: what the user holds directly or through groups, in all tenants; sorted.
   * Errors: FIELD_*, REGION_REFUSED, RESULT_TOO_LARGE, STORE_UNAVAILABLE.
   */
  async exportSubjectGrants(request: ExportRequest): Promise<readonly SubjectGrant[]> {
    const { settingsSource, pool, clock, headRevisions, exportGrantsMax } = this.#options;
    checkUserId('user_id', request.userId);
    const projectId = settingsSource.resolveId(request.projectId);
    settingsSource.guard(await settingsSource.settings(projectId), 'subject-rights');
    const nowUs = BigInt(Math.floor(clock.nowMs() * 1000));
    const { rows, positions } = await inTransaction(
      pool,
      async (client) => {
        const limit = exportGrantsMax + 1;
        const found = await selectSubjectGrants(client, projectId, request.userId, nowUs, limit);
        const tenantIds = [...new Set(found.map((row) => row.tenant_id))];
        const shards = tenantIds.map((tenantId) => ({ projectId, tenantId }));
        return { rows: found, positions: await selectHeadRevisions(client, shards) };
      },
      'repeatable read, read only',
    ).catch(rethrowStoreError);
    for (const { tenantId, epoch, revision } of positions)
      headRevisions.raise(projectId, tenantId, epoch, revision);
    if (rows.length > exportGrantsMax) {
      throw new AppError<AuthzReason>(
        'RESULT_TOO_LARGE',
        `there are more than ${exportGrantsMax} grants`,
        {
          limit: String(exportGrantsMax),
        },
      );
    }
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      namespace: row.namespace,
      objectId: row.object_id,
      relation: row.relation,
      viaGroup: row.via_group,
    }));
  }

  /**
   * Settings that let the project be read. A known refusal is checked anew, since it may have
   * changed elsewhere.
   */
  async #settingsForRead(projectId: string): Promise<ProjectSettings> {
    const { settingsSource } = this.#options;
    const known = await settingsSource.settings(projectId);
    const settings =
      refusalOf(known, 'data') === undefined ? known : await settingsSource.atLeast(projectId, 0);
    settingsSource.guard(settings, 'data');
    return settings;
  }

  /** A long list page by page, so that the event loop turns in between; all from one snapshot. */
  async #readPages(
    filter: TupleFilter,
    tuplesMax: number,
  ): Promise<{
    readonly tuples: readonly RelationTuple[];
    readonly headRevision: HeadRevisionRow;
  }> {
    const { pool, headRevisions } = this.#options;
    const { tuples, headRevision } = await inTransaction(
      pool,
      async (client) => {
        const [position] = await selectHeadRevisions(client, [filter]);
        assert(position !== undefined, 'every shard that is asked for has a head');
        await declareTupleCursor(client, filter, tuplesMax + 1);
        const all: RelationTuple[] = [];
        for (;;) {
          const rows = await fetchTuples(client, PAGE_ROWS);
          for (const row of rows) all.push(tupleFromRow(row));
          if (rows.length < PAGE_ROWS) return { tuples: all, headRevision: position };
        }
      },
      'repeatable read, read only',
    );
    headRevisions.raise(
      filter.projectId,
      filter.tenantId,
      headRevision.epoch,
      headRevision.revision,
    );
    if (tuples.length > tuplesMax) {
      throw new AppError<AuthzReason>(
        'RESULT_TOO_LARGE',
        `more than ${tuplesMax} tuples match: filter by namespace, object_id, relation or subject_user_id`,
        { limit: String(tuplesMax) },
      );
    }
    return { tuples, headRevision };
  }
}

/** Refuses a token that is not of what was read: the server may have become another one, with another history, since anybody knew. */
function checkRead(
  positions: ReadPositions,
  shard: ShardKey,
  token: string,
  { epoch, revision }: { readonly epoch: number; readonly revision: number },
): void {
  positions.checkToken(shard, token, { epoch, minRevision: revision, forkId: '' });
}

function checkFilter(request: ReadRequest, projectId: string): TupleFilter {
  const { tenantId, namespace, objectId, relation, subjectUserId } = request;
  if (namespace !== '') checkNamespace('namespace', namespace);
  if (objectId !== '') checkObjectId('object_id', objectId);
  if (relation !== '') checkRelation('relation', relation);
  if (subjectUserId !== '') checkUserId('subject_user_id', subjectUserId);
  return {
    projectId,
    tenantId,
    namespace: namespace || null,
    objectId: objectId || null,
    relation: relation || null,
    userId: subjectUserId || null,
  };
}

function tupleFromRow(row: StoredTupleRow): RelationTuple {
  return {
    namespace: row.namespace,
    objectId: row.object_id,
    relation: row.relation,
    subject: subjectFromColumns(row.subject_namespace, row.subject_id, row.subject_relation),
    expiresAtUs: row.expires_at_us === null ? undefined : BigInt(row.expires_at_us),
    conditionName: row.condition_name ?? undefined,
    conditionParams: row.condition_params ?? undefined,
  };
}

function rethrowStoreError(error: unknown): never {
  throw storeError(error);
}
