import type { HandlerContext } from '@connectrpc/connect';
import type { QueryScope } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkTenantId } from '../../model/names.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type {
  QuestionAnswer,
  QuestionArgs,
  QuestionHead,
  QuestionKind,
} from '../../protocol/questions.ts';
import type { ShardClient } from '../../protocol/shard-client.ts';
import { checkContextualTuples } from '../../services/tuple-input.ts';
import type { WriteRules } from '../../services/write-rules.ts';
import { type CallDefaults, deadlineOf, originOf } from '../connect/call-context.ts';
import type { DecisionMeter } from '../reads/decision-meter.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import { structText } from '../rpc/query-from-proto.ts';

/** Contextual tuples of one request at most. */
export const CONTEXTUAL_TUPLES_MAX = 100;

/** What the methods of QueryService work with. */
export type QueryOptions = CallDefaults & {
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  /** Questions of one request at most. */
  readonly batchItemsMax: number;
  /** Updates of one write at most. */
  readonly updatesMax: number;
  /** What tuples of projects must fit. */
  readonly rules: WriteRules;
};

/** A validated QueryScope: where a question is asked, and what it carries. */
export type ScopedQuery = {
  /** As the request addresses it; '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly token: string;
  /** What that resolves to. */
  readonly shard: ShardKey;
  readonly head: QuestionHead;
};

/** A result, or a part of it, with the token of the revision that it was computed at. */
export type QueryReply<K extends QuestionKind> = QuestionAnswer<K> & {
  readonly consistencyToken: string;
  /** Of the project's settings, and with them its model, that the answer was computed under. */
  readonly settingsVersion: number;
};

const EMPTY = { projectId: '', tenantId: '', atLeastConsistencyToken: '' };

/**
 * The scope of a question; an absent one is empty: default project and tenant. Contextual tuples are held to the
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
  const tuples = scope.contextualTuples;
  const contextual = checkContextualTuples(field, tuples, shard, CONTEXTUAL_TUPLES_MAX);
  return { projectId, tenantId, token, shard, head: { contextual, context } };
}

/**
 * Asks the owner of the shard at a revision that Check would answer from. `onPart` takes the parts of a long result
 * that come before the last one. Errors: those of ReadScopes.decide and of ShardClient.
 */
export function askQuestion<K extends QuestionKind>(
  options: QueryOptions,
  call: HandlerContext,
  query: ScopedQuery,
  kind: K,
  args: QuestionArgs[K],
  onPart?: (part: QueryReply<K>) => void,
): Promise<QueryReply<K>> {
  const { shards, scopes } = options;
  const { projectId, tenantId, token } = query;
  const deadlineMs = deadlineOf(call, options);
  const request = { projectId, tenantId, token, deadlineMs, origin: originOf(call) };
  return scopes.decide(request, call.signal, async (scope) => {
    const replyOf = (answer: QuestionAnswer<K>): QueryReply<K> => ({
      ...answer,
      consistencyToken: scopes.tokenOf(scope, answer.revision),
      settingsVersion: scope.settingsVersion,
    });
    const toPart = onPart && ((part: QuestionAnswer<K>): void => onPart(replyOf(part)));
    const asked = scope.refusesUnknown === true ? { ...args, refusesUnknown: true } : args;
    return replyOf(await shards.ask(scope, kind, asked, call.signal, toPart));
  });
}
