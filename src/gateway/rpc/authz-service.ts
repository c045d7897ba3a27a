import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type AuthzService,
  type BatchCheckRequest,
  BatchCheckResponseSchema,
  ExportSubjectGrantsResponseSchema,
  ListObjectsResponseSchema,
  ReadRelationTuplesResponseSchema,
} from '../../gen/workspace/v1/authz_service_pb.ts';
import { checkTenantId } from '../../model/names.ts';
import type { CheckQuery } from '../../model/relation-tuple.ts';
import type { ReadScope, ShardClient } from '../../protocol/shard-client.ts';
import { checkObjectRelation, checkQueryFromProto } from '../../requests/check-request.ts';
import { assertBatch, checkedItem, listedObjects } from '../../requests/decision-request.ts';
import { treeToProto, tupleToProto } from '../../requests/tuple-to-proto.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { TupleService } from '../../services/tuples/tuple-service.ts';
import { AppError } from '../../shared/app-error.ts';
import { deadlineOf, originOf, readTimeOf, type CallDefaults } from '../connect/call-context.ts';
import type { DecisionMeter } from '../reads/decision-meter.ts';
import type { QueryRecorder, RecordedQuery } from '../reads/query-recorder.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import { decisionAsk, messageOfAnswer } from './ask-decision.ts';
import { listAnswer } from './list-answer.ts';
import { writeMetaOf } from './write-meta.ts';

export type AuthzServiceOptions = CallDefaults & {
  readonly tuples: TupleService;
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  readonly batchItemsMax: number;
  /** Absent where no queries are recorded. */
  readonly recorder?: QueryRecorder | undefined;
};

/** The scope fields that every read carries. */
type ScopedRead = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly atLeastConsistencyToken: string;
};

/**
 * The handlers of AuthzService: checks arguments, resolves the scope, asks the workers or the
 * service, and puts the answer into its message. The general path of every method.
 */
export function createAuthzService(options: AuthzServiceOptions): ServiceImpl<typeof AuthzService> {
  return { ...decisionHandlers(options), ...tupleHandlers(options) };
}

type DecidingMethod = 'check' | 'batchCheck' | 'expand' | 'listObjects';

/** Resolves the scope of a call and asks within it. */
function decideBy(options: AuthzServiceOptions) {
  return <T>(
    request: ScopedRead,
    context: HandlerContext,
    ask: (scope: ReadScope) => Promise<T>,
  ): Promise<T> => {
    const { projectId, tenantId, atLeastConsistencyToken: token } = request;
    const time = readTimeOf(context, options);
    const asked = { projectId, tenantId, token, ...time, origin: originOf(context) };
    return options.scopes.decide(asked, context.signal, ask);
  };
}

function decisionHandlers(
  options: AuthzServiceOptions,
): Pick<ServiceImpl<typeof AuthzService>, DecidingMethod> {
  const { shards, scopes, meter } = options;
  const decide = decideBy(options);
  return {
    check: (request, context) =>
      meter.measure(request.subjectSet === undefined ? 'Check' : 'CheckSet', async () => {
        assertNoUnknownFields(request);
        const query = checkQueryFromProto(request);
        options.recorder?.offer(() => recordedCheck(scopes, request, query));
        const ask = await decisionAsk(shards, 'check', request, context);
        const { kind } = await decide(request, context, ask);
        return { allowed: kind === 'allowed' };
      }),

    batchCheck: (request, context) =>
      meter.measure('BatchCheck', async () => {
        assertNoUnknownFields(request);
        assertBatch(request, options.batchItemsMax);
        options.recorder?.offer(() => recordedItem(scopes, request));
        const ask = await decisionAsk(shards, 'batchCheck', request, context);
        const answer = await decide(request, context, ask);
        return messageOfAnswer(BatchCheckResponseSchema, answer, context);
      }),

    expand: (request, context) =>
      meter.measure('Expand', async () => {
        assertNoUnknownFields(request);
        checkObjectRelation(request);
        checkTenantId('tenant_id', request.tenantId);
        const { namespace, objectId, relation } = request;
        const args = { namespace, objectId, relation, contextual: [], context: '' };
        const { result } = await decide(request, context, (scope) =>
          shards.query(scope, 'expand', args, context.signal),
        );
        return { tree: treeToProto(result) };
      }),

    listObjects: (request, context) =>
      meter.measure('ListObjects', async () => {
        assertNoUnknownFields(request);
        listedObjects(request);
        const ask = await decisionAsk(shards, 'listObjects', request, context);
        const answer = await decide(request, context, ask);
        return messageOfAnswer(ListObjectsResponseSchema, answer, context);
      }),
  };
}

function recordedCheck(
  scopes: ReadScopes,
  { projectId, tenantId }: ScopedRead,
  { subject, ...query }: CheckQuery,
): RecordedQuery | undefined {
  if (subject.kind !== 'user') return undefined;
  const { userId } = subject;
  return { ...query, userId, projectId: scopes.projectIdOf(projectId), tenantId };
}

/** Draws one item of a batch to record: it serves as well as a check. */
function recordedItem(
  scopes: ReadScopes,
  { projectId, tenantId, items }: BatchCheckRequest,
): RecordedQuery | undefined {
  const item = items[Math.floor(Math.random() * items.length)];
  const checked = item && checkedItem(item);
  if (checked === undefined || checked instanceof AppError) return undefined;
  const shard = { projectId: scopes.projectIdOf(projectId), tenantId };
  return { ...checked, ...shard, contextJson: '' };
}

function tupleHandlers(
  options: AuthzServiceOptions,
): Omit<ServiceImpl<typeof AuthzService>, DecidingMethod> {
  const { tuples, scopes } = options;
  const metaOf = (context: HandlerContext): WriteMeta =>
    writeMetaOf(context, deadlineOf(context, options));
  return {
    async writeRelationTuples(request, context) {
      assertNoUnknownFields(request);
      const { projectId, tenantId, updates } = request;
      const meta = metaOf(context);
      return { consistencyToken: await tuples.write({ projectId, tenantId, updates, meta }) };
    },

    async readRelationTuples(request, context) {
      assertNoUnknownFields(request);
      const { projectId, tenantId, namespace, objectId, relation, subjectUserId } = request;
      const token = request.atLeastConsistencyToken;
      const filter = { namespace, objectId, relation, subjectUserId };
      const found = await tuples.read({ projectId, tenantId, ...filter, token });
      const shard = { projectId: scopes.projectIdOf(projectId), tenantId };
      return listAnswer(context, ReadRelationTuplesResponseSchema, found, (some) => ({
        tuples: some.map((tuple) => tupleToProto(shard, tuple)),
      }));
    },

    async deprovisionUser(request, context) {
      assertNoUnknownFields(request);
      const { projectId, userId } = request;
      const meta = metaOf(context);
      return { deletedCount: BigInt(await tuples.deprovisionUser({ projectId, userId, meta })) };
    },

    async exportSubjectGrants(request, context) {
      assertNoUnknownFields(request);
      const { projectId, userId } = request;
      const found = await tuples.exportSubjectGrants({ projectId, userId });
      return listAnswer(context, ExportSubjectGrantsResponseSchema, found, (some) => ({
        grants: [...some],
      }));
    },
  };
}
