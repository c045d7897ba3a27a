import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type BudgetService,
  type MeasuredQuestionSchema,
  ReadBudgetSource,
  type ReadUsage as ReadUsageMessage,
  ReadUsageSchema,
  type RefusedQuestion,
  RefusedQuestionSchema,
} from '../../gen/gatehouse/v1/budget_service_pb.ts';
import { fieldError } from '../../model/reasons.ts';
import type { Subject } from '../../model/relation-tuple.ts';
import type { ShardClient } from '../../protocol/shard-client.ts';
import type { ProjectService } from '../../services/projects/project-service.ts';
import type { SettingsSource } from '../../services/projects/settings-source.ts';
import { AppError } from '../../shared/app-error.ts';
import { type CallDefaults, readTimeOf, originOf } from '../connect/call-context.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import { type ReadLedger, type ReadUsage, readsAt, type RememberedRefusal } from './read-ledger.ts';

export type BudgetOptions = CallDefaults & {
  readonly ledger: ReadLedger;
  readonly projects: Pick<ProjectService, 'get'>;
  readonly settingsSource: Pick<SettingsSource, 'resolveId'>;
  readonly shards: Pick<ShardClient, 'query'>;
  readonly scopes: Pick<ReadScopes, 'decide'>;
  readonly readBudgetDefault: number;
  readonly readBudgetMin: number;
};

const LISTED_DEFAULT = 20;
const LISTED_MAX = 1_000;
/** So many times the budget in force a query may take where no ceiling is named. */
const CEILING_FACTOR = 64;
/** A second or so of a worker, in slices that let others pass. */
const CEILING_MAX = 10_000_000;

/** The handlers of BudgetService. The operator secret was checked before (authorization.ts). */
export function createBudgetService(options: BudgetOptions): ServiceImpl<typeof BudgetService> {
  const { ledger, projects, settingsSource, readBudgetDefault, readBudgetMin } = options;
  return {
    async getReadBudget(request) {
      assertNoUnknownFields(request);
      const project = await projects.get(settingsSource.resolveId(request.projectId));
      const { id: projectId, maxCheckReads } = project;
      const usage = ledger.usageOf(projectId);
      const isOwn = maxCheckReads > 0;
      return {
        projectId,
        maxCheckReads,
        effectiveMaxCheckReads: isOwn ? maxCheckReads : readBudgetDefault,
        source: isOwn ? ReadBudgetSource.PROJECT : ReadBudgetSource.DEFAULT,
        defaultMaxCheckReads: readBudgetDefault,
        lowestMaxCheckReads: readBudgetMin,
        ...(usage === undefined ? {} : { usage: usageToProto(usage, usage.buckets) }),
        refusedQuestions: ledger.refusedOf(projectId).map(refusalToProto),
      };
    },

    listReadUsage(request) {
      assertNoUnknownFields(request);
      const { limit } = request;
      if (limit < 0 || limit > LISTED_MAX) {
        throw fieldError('limit', `must be from 0 to ${LISTED_MAX}`);
      }
      const listed = ledger.list(limit === 0 ? LISTED_DEFAULT : limit);
      return {
        projects: listed.map((usage) => ({
          projectId: usage.projectId,
          budget: usage.budget,
          usage: usageToProto(usage, []),
          readsP99: BigInt(readsAt(usage.buckets, 0.99)),
        })),
      };
    },

    async measureRefusedQuestions(request, context) {
      assertNoUnknownFields(request);
      const project = await projects.get(settingsSource.resolveId(request.projectId));
      const budget = project.maxCheckReads > 0 ? project.maxCheckReads : readBudgetDefault;
      if (request.ceiling < 0 || request.ceiling > CEILING_MAX) {
        throw fieldError('ceiling', `must be from 0 to ${CEILING_MAX}`);
      }
      const wanted = request.ceiling === 0 ? budget * CEILING_FACTOR : request.ceiling;
      const ceiling = Math.min(wanted, CEILING_MAX);
      const queries: MessageInitShape<typeof MeasuredQuestionSchema>[] = [];
      for (const refusal of ledger.refusedOf(project.id)) {
        if (refusal.query === null) continue;
        // One after the other: an operator is in no hurry, and the project's callers are.
        queries.push(await measure(options, context, refusal, ceiling));
      }
      return { ceiling, questions: queries };
    },
  };
}

/** Evaluates one again. What concerns this query alone is its `error`; a caller that has gone ends all. */
async function measure(
  options: BudgetOptions,
  context: HandlerContext,
  refusal: RememberedRefusal,
  ceiling: number,
): Promise<MessageInitShape<typeof MeasuredQuestionSchema>> {
  const { shards, scopes } = options;
  const { projectId, tenantId, query: asked } = refusal;
  if (asked === null) throw new Error('a question that cannot be asked again');
  const query = refusalToProto(refusal);
  const time = readTimeOf(context, options);
  const request = { projectId, tenantId, token: '', ...time, origin: originOf(context) };
  try {
    const { result } = await scopes.decide(request, context.signal, (scope) =>
      shards.query(
        { ...scope, readBudget: ceiling },
        'measureReads',
        { contextual: [], context: '', asked },
        context.signal,
      ),
    );
    return { question: query, reads: BigInt(result.reads), exceeded: result.isExhausted };
  } catch (error) {
    if (!(error instanceof AppError) || context.signal.aborted) throw error;
    return { question: query, error: error.message };
  }
}

function usageToProto(usage: ReadUsage, buckets: ReadUsage['buckets']): ReadUsageMessage {
  return create(ReadUsageSchema, {
    since: timestampFromMs(usage.sinceMs),
    answered: BigInt(usage.answered),
    refused: BigInt(usage.refused),
    reads: BigInt(usage.reads),
    readsMax: BigInt(usage.readsMax),
    buckets: buckets.map(([readsMax, count]) => ({
      readsMax: BigInt(readsMax),
      count: BigInt(count),
    })),
  });
}

function refusalToProto(refusal: RememberedRefusal): RefusedQuestion {
  const { rpc, tenantId, relation, limit, bound, query, requestId, caller, atMs } = refusal;
  return create(RefusedQuestionSchema, {
    rpc,
    tenantId,
    relation,
    objectId: query === null || query.kind === 'listObjects' ? '' : query.objectId,
    subject: subjectOf(query),
    limit: BigInt(limit),
    batch: bound === 'batch',
    requestId,
    caller,
    refusedAt: timestampFromMs(atMs),
  });
}

function subjectOf(query: RememberedRefusal['query']): string {
  if (query === null || query.kind === 'expand') return '';
  return query.kind === 'check' ? subjectText(query.subject) : `user:${query.userId}`;
}

function subjectText(subject: Subject): string {
  switch (subject.kind) {
    case 'user':
      return `user:${subject.userId}`;
    case 'wildcard':
      return '*';
    case 'wildcardOf':
      return `${subject.namespace}:*`;
    case 'set':
      return `${subject.namespace}:${subject.objectId}#${subject.relation}`;
  }
}
