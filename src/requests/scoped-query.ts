import { type QueryScope, UsersetMode } from '../gen/gatehouse/v1/query_service_pb.ts';
import { checkTenantId } from '../model/names.ts';
import { fieldError } from '../model/reasons.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import { checkContextualTuples } from '../model/tuple-input.ts';
import type { QueryStart } from '../protocol/queries.ts';
import { structText } from './check-request.ts';

/** Maximum number of contextual tuples in one request. */
export const CONTEXTUAL_TUPLES_MAX = 100;

/** A validated QueryScope: the shard that a query addresses, and what the query carries. */
export type ScopedQuery = {
  /** Project as named by the request; '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly token: string;
  /** Shard that the project and the tenant resolve to. */
  readonly shard: ShardKey;
  readonly head: QueryStart;
};

const EMPTY = { projectId: '', tenantId: '', atLeastConsistencyToken: '' };

/**
 * Checks the scope of a query, in steps that the caller runs to the end. An absent scope is empty: default project and
 * tenant. `projectIdOf` resolves the project that it names. Contextual tuples follow the rules of written tuples.
 * Errors: FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE, naming the field.
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

/** Converts a model version to a number. Errors: FIELD_INVALID unless it is 0 or the number of a version. */
function versionOf(field: string, version: bigint): number {
  if (version >= 0n && version <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(version);
  throw fieldError(field, 'must be 0 or the number of a version');
}

/**
 * Whether a userset subject stands only for itself, not for its members. Errors: FIELD_INVALID for a number that is no
 * mode.
 */
function isExactMode(field: string, mode: UsersetMode): boolean {
  switch (mode) {
    case UsersetMode.UNSPECIFIED:
    case UsersetMode.MEMBERS_TOO:
      return false;
    case UsersetMode.EXACT:
      return true;
  }
  // An enum on the wire may have any number.
  throw fieldError(field, `${String(mode)} is no mode`);
}
