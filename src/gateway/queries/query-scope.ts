import type { HandlerContext } from '@connectrpc/connect';
import { type QueryScope, UsersetMode } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { fieldError } from '../../model/field-error.ts';
import { checkTenantId } from '../../model/names.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { checkContextualTuples } from '../../model/tuple-input.ts';
import type { QueryAnswer, QueryArgs, QueryStart, QueryKind } from '../../protocol/queries.ts';
import type { ShardClient } from '../../protocol/shard-client.ts';
import { structText } from '../../requests/check-request.ts';
import type { WriteRules } from '../../services/write-rules.ts';
import { type CallDefaults, readTimeOf, originOf } from '../connect/call-context.ts';
import type { DecisionMeter } from '../reads/decision-meter.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';

/** Contextual tuples of one request at most. */
export const CONTEXTUAL_TUPLES_MAX = 100;

/** What the methods of QueryService work with. */
export type QueryOptions = CallDefaults & {
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  /** Queries of one request at most. */
  readonly batchItemsMax: number;
  /** Updates of one write at most. */
  readonly updatesMax: number;
  /** What tuples of projects must fit. */
  readonly rules: WriteRules;
  /** Gives a version that a query names to every worker, and resolves to what a scope calls it. Errors: MODEL_VERSION_UNKNOWN. */
  readonly versions: { distribute(projectId: string, version: number): Promise<number> };
};

/** A validated QueryScope: where a query is asked, and what it carries. */
export type ScopedQuery = {
  /** As the request addresses it; '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly token: string;
  /** What that resolves to. */
  readonly shard: ShardKey;
  readonly head: QueryStart;
};

/** A result, or a part of it, with the token of the revision that it was computed at. */
export type QueryReply<K extends QueryKind> = QueryAnswer<K> & {
  readonly consistencyToken: string;
  /** Of the project's settings, and with them its model, that the answer was computed under. */
  readonly settingsVersion: number;
};

const EMPTY = { projectId: '', tenantId: '', atLeastConsistencyToken: '' };

/**
 * The scope of a query; an absent one is empty: default project and tenant. Contextual tuples are held to the
 * rules of tuples that are written. Errors: FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE, naming the field.
 */
export function scopedQuery(
  { scopes }: Pick<QueryOptions, 'scopes'>,
  scope: QueryScope | undefined,
): ScopedQuery {
  const { projectId, tenantId, atLeastConsistencyToken: token } = scope ?? EMPTY;
  checkTenantId('scope.tenant_id', tenantId);
  const shard = { projectId: scopes.projectIdOf(projectId), tenantId };
  if (scope === undefined) {
    return { projectId, tenantId, token, shard, head: { contextual: [], context: '' } };
  }
  const context = scope.context === undefined ? '' : structText('scope.context', scope.context);
  const field = 'scope.contextual_tuples';
  const isExact = isExactMode('scope.userset_mode', scope.usersetMode);
  const modelVersion = versionOf('scope.model_version', scope.modelVersion);
  const tuples = scope.contextualTuples;
  const contextual = checkContextualTuples(field, tuples, shard, CONTEXTUAL_TUPLES_MAX);
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
  // What came as a number may be any.
  throw fieldError(field, `${String(mode)} is no mode`);
}

/**
 * Asks the owner of the shard at a revision that Check would answer from. `onPart` takes the parts of a long result
 * that come before the last one. Errors: MODEL_VERSION_UNKNOWN, those of ReadScopes.decide and of ShardClient.
 */
export function askQuery<K extends QueryKind>(
  options: QueryOptions,
  call: HandlerContext,
  query: ScopedQuery,
  kind: K,
  args: QueryArgs[K],
  onPart?: (part: QueryReply<K>) => void,
): Promise<QueryReply<K>> {
  const { shards, scopes, versions } = options;
  const { projectId, tenantId, token, head } = query;
  const time = readTimeOf(call, options);
  const request = { projectId, tenantId, token, ...time, origin: originOf(call) };
  return scopes.decide(request, call.signal, async (found) => {
    const { modelVersion: named = 0 } = head;
    const scope =
      named === 0
        ? found
        : { ...found, modelVersion: await versions.distribute(found.projectId, named) };
    const replyOf = (answer: QueryAnswer<K>): QueryReply<K> => ({
      ...answer,
      consistencyToken: scopes.tokenOf(scope, answer.revision),
      settingsVersion: scope.settingsVersion,
    });
    const toPart = onPart && ((part: QueryAnswer<K>): void => onPart(replyOf(part)));
    const asked = scope.refusesUnknown === true ? { ...args, refusesUnknown: true } : args;
    return replyOf(await shards.ask(scope, kind, asked, call.signal, toPart));
  });
}
