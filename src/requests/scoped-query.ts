import { type QueryScope, UsersetMode } from '../gen/gatehouse/v1/query_service_pb.ts';
import { checkTenantId } from '../model/names.ts';
import { fieldError } from '../model/reasons.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import { checkContextualTuples } from '../model/tuple-input.ts';
import type { QueryStart } from '../protocol/queries.ts';
import { structText } from './check-request.ts';

/** Contextual tuples of one request at most. */
export const CONTEXTUAL_TUPLES_MAX = 100;

/** A validated QueryScope: where a query is asked, and what it carries. */
export type ScopedQuery = {
  /** Project as the request names it; '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly token: string;
  /** The shard that these names resolve to. */
  readonly shard: ShardKey;
  readonly head: QueryStart;
};

const EMPTY = { projectId: '', tenantId: '', atLeastConsistencyToken: '' };

/**
 * The scope of a query, in steps to be run to their end; an absent one is empty: default project and tenant. `projectIdOf` resolves the
 * project that it names. Contextual tuples are held to the rules of tuples that are written. Errors: FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE, naming the field.
 */
export function* scopedQuery(
  projectIdOf: (projectId: string) => string,
  scope: QueryScope | undefined,
): Generator<void, ScopedQuery> {
  const { projectId, tenantId, atLeastConsistencyToken: token } = scope ?? EMPTY;
  checkTenantId('scope.tenant_id', tenantId);
  const shard = { projectId: projectIdOf(projectId), tenantId };
  if (scope === undefined) {
    return { projectId, tenantId, token, shard, head: { contextual: [], context: '' } };
  }
  const context = scope.context === undefined ? '' : structText('scope.context', scope.context);
  const field = 'scope.contextual_tuples';
  const isExact = isExactMode('scope.userset_mode', scope.usersetMode);
  const modelVersion = versionOf('scope.model_version', scope.modelVersion);
  const tuples = scope.contextualTuples;
  const contextual = yield* checkContextualTuples(field, tuples, shard, CONTEXTUAL_TUPLES_MAX);
  const head = {
    contextual,
    context,
    ...(isExact ? { isExact } : {}),
    ...(modelVersion === 0 ? {} : { modelVersion }),
  };
  return { projectId, tenantId, token, shard, head };
}

/** Errors: FIELD_INVALID, for what is no number of a version. */
function versionOf(field: string, version: bigint): number {
  if (version >= 0n && version <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(version);
  throw fieldError(field, 'must be 0 or the number of a version');
}

/** Whether usersets are asked about as such. Errors: FIELD_INVALID, for a number that is no mode. */
function isExactMode(field: string, mode: UsersetMode): boolean {
  switch (mode) {
    case UsersetMode.UNSPECIFIED:
    case UsersetMode.MEMBERS_TOO:
      return false;
    case UsersetMode.EXACT:
      return true;
  }
  // A number in JSON may be any.
  throw fieldError(field, `${String(mode)} is no mode`);
}
