import type { HandlerContext } from '@connectrpc/connect';
import type { QueryScope } from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { QueryAnswer, QueryArgs, QueryKind } from '../../protocol/queries.ts';
import type { ShardClient } from '../../protocol/shard-client.ts';
import { type ScopedQuery, scopedQuery } from '../../requests/scoped-query.ts';
import type { WriteRules } from '../../services/writes/write-rules.ts';
import { DECODE_TURNS, runSoon } from '../../shared/slice-queue.ts';
import { type CallDefaults, readTimeOf, originOf } from '../connect/call-context.ts';
import type { DecisionMeter } from '../reads/decision-meter.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';

/** Parts that the methods of QueryService work with. */
export type QueryOptions = CallDefaults & {
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  /** Queries of one request at most. */
  readonly batchItemsMax: number;
  /** Updates of one write at most. */
  readonly updatesMax: number;
  /** Rules for the tuples of projects. */
  readonly rules: WriteRules;
  /** Gives a version that a query names to every worker, and resolves to what a scope calls it. Errors: MODEL_VERSION_UNKNOWN. */
  readonly versions: { distribute(projectId: string, version: number): Promise<number> };
};

/** A result, or a part of it, with the token of the revision that it was computed at. */
export type QueryReply<K extends QueryKind> = QueryAnswer<K> & {
  readonly consistencyToken: string;
  /** Version of the project's settings, and with them its model, that the answer was computed under. */
  readonly settingsVersion: number;
};

/** The scope of a query. Errors: as of `scopedQuery`. */
export function resolvedScope(
  { scopes }: Pick<QueryOptions, 'scopes'>,
  scope: QueryScope | undefined,
): Promise<ScopedQuery> {
  const steps = scopedQuery((projectId) => scopes.projectIdOf(projectId), scope);
  return runSoon(steps, DECODE_TURNS);
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
    return replyOf(await shards.query(scope, kind, args, call.signal, toPart));
  });
}
