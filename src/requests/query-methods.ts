import { create, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import {
  type BatchCheckItem,
  BatchCheckRequestSchema,
  BatchCheckResponseSchema,
  BatchCheckResultSchema,
  CheckRequestSchema,
  CheckResponseSchema,
  ExplainRequestSchema,
  ExplainResponseSchema,
  FilterObjectsRequestSchema,
  FilterObjectsResponseSchema,
  ListRelationsRequestSchema,
  ListRelationsResponseSchema,
  type QueryScope,
  type Question as ProtoQuestion,
} from '../gen/gatehouse/v1/query_service_pb.ts';
import type { Subject as ProtoSubject } from '../gen/workspace/v1/authz_service_pb.ts';
import { checkNamespace, checkObjectId, checkRelation, requiredError } from '../model/names.ts';
import { type AuthzReason, fieldError } from '../model/reasons.ts';
import type { Subject } from '../model/relation-tuple.ts';
import { checkSubject } from '../model/tuple-input.ts';
import type {
  BatchedQuery,
  Query,
  QueryArgs,
  QueryMethod,
  QueryMethodKinds,
  QueryResults,
} from '../protocol/queries.ts';
import { AppError } from '../shared/app-error.ts';
import { structText } from './check-request.ts';
import { checkItems } from './checked-items.ts';
import { explanationToProto } from './explanation-to-proto.ts';
import { type ScopedQuery, scopedQuery } from './scoped-query.ts';

/** Maximum number of relations in one request: as many as a namespace may declare. */
export const RELATIONS_MAX = 256;
const REMEDIES_DEFAULT = 10;
const REMEDIES_MAX = 100;
const ITEMS_PER_STEP = 256;

/** Settings for reading requests. */
export type QueryReading = {
  /** Resolves the project that a request names. Errors: FIELD_INVALID. */
  readonly projectIdOf: (projectId: string) => string;
  /** Maximum number of items in a batch. */
  readonly itemsMax: number;
};

/** A request of QueryService, checked. */
export type CheckedQuery<M extends QueryMethod = QueryMethod> = {
  readonly query: ScopedQuery;
  readonly args: QueryArgs[QueryMethodKinds[M]];
  /** Errors of the invalid items, each of which is answered by its error. */
  readonly problems: readonly AppError[];
  /** Builds the answer to a result, without its consistency token, in steps that the caller runs to the end. */
  readonly answerOf: (result: QueryResults[QueryMethodKinds[M]]) => Generator<void, Message>;
};

type QueryMethodForm<M extends QueryMethod, In extends DescMessage, Out extends DescMessage> = {
  readonly kind: QueryMethodKinds[M];
  readonly request: In;
  readonly answer: Out;
  readonly read: (
    request: MessageShape<In>,
    scopeOf: (scope: QueryScope | undefined) => Generator<void, ScopedQuery>,
    itemsMax: number,
  ) => Generator<void, CheckedQuery<M>>;
};

/** Runs short work as a single step. */
// oxlint-disable-next-line require-yield -- it is one
function* inOneStep<T>(work: () => T): Generator<void, T> {
  return work();
}

const queryCheck: QueryMethodForm<
  'queryCheck',
  typeof CheckRequestSchema,
  typeof CheckResponseSchema
> = {
  kind: 'check',
  request: CheckRequestSchema,
  answer: CheckResponseSchema,
  *read(request, scopeOf) {
    const wanted = queryFromProto('question', request.question);
    const query = yield* scopeOf(request.scope);
    return {
      query,
      args: { ...query.head, query: wanted },
      problems: [],
      answerOf: (decision) => inOneStep(() => create(CheckResponseSchema, decision)),
    };
  },
};

const queryBatchCheck: QueryMethodForm<
  'queryBatchCheck',
  typeof BatchCheckRequestSchema,
  typeof BatchCheckResponseSchema
> = {
  kind: 'batchCheck',
  request: BatchCheckRequestSchema,
  answer: BatchCheckResponseSchema,
  *read(request, scopeOf, itemsMax) {
    const batch = yield* checkItems('items', request.items, itemsMax, batchedQuery, hasContext);
    const query = yield* scopeOf(request.scope);
    const failed = ({ message: error, reason: errorReason }: AppError) =>
      create(BatchCheckResultSchema, { error, errorReason });
    return {
      query,
      args: { ...query.head, items: batch.valid },
      problems: batch.problems,
      *answerOf(decisions) {
        const answer = create(BatchCheckResponseSchema);
        const placed = (decision: (typeof decisions)[number]) =>
          create(BatchCheckResultSchema, decision);
        answer.results = yield* batch.resultsOf(decisions, placed, failed);
        return answer;
      },
    };
  },
};

/** Whether an item has a context. One with thousands of members takes a millisecond to check. */
function hasContext({ context }: BatchCheckItem): boolean {
  return context !== undefined;
}

function batchedQuery({ question, context }: BatchCheckItem, field: string): BatchedQuery {
  const checked = queryFromProto(`${field}.question`, question);
  if (context === undefined) return checked;
  return { ...checked, context: structText(`${field}.context`, context) };
}

const listRelations: QueryMethodForm<
  'listRelations',
  typeof ListRelationsRequestSchema,
  typeof ListRelationsResponseSchema
> = {
  kind: 'listRelations',
  request: ListRelationsRequestSchema,
  answer: ListRelationsResponseSchema,
  *read(request, scopeOf) {
    const { namespace, objectId, relations } = request;
    checkNamespace('namespace', namespace);
    checkObjectId('object_id', objectId);
    const subject = askedSubject('subject', request.subject);
    yield* checkEach('relations', relations, RELATIONS_MAX, checkRelation);
    const query = yield* scopeOf(request.scope);
    return {
      query,
      args: { ...query.head, namespace, objectId, subject, relations },
      problems: [],
      answerOf: (found) =>
        inOneStep(() =>
          create(ListRelationsResponseSchema, {
            relations: [...found.relations],
            undecidedRelations: [...found.undecidedRelations],
          }),
        ),
    };
  },
};

const filterObjects: QueryMethodForm<
  'filterObjects',
  typeof FilterObjectsRequestSchema,
  typeof FilterObjectsResponseSchema
> = {
  kind: 'filterObjects',
  request: FilterObjectsRequestSchema,
  answer: FilterObjectsResponseSchema,
  *read(request, scopeOf, itemsMax) {
    const { namespace, relation, objectIds } = request;
    checkNamespace('namespace', namespace);
    checkRelation('relation', relation);
    const subject = askedSubject('subject', request.subject);
    yield* checkEach('object_ids', objectIds, itemsMax, checkObjectId);
    const query = yield* scopeOf(request.scope);
    const idAt = (position: number): string => objectIds[position] as string;
    return {
      query,
      args: { ...query.head, namespace, relation, subject, objectIds },
      problems: [],
      answerOf: (found) =>
        inOneStep(() => {
          const answer = create(FilterObjectsResponseSchema);
          answer.objectIds = found.positions.map(idAt);
          answer.undecidedObjectIds = found.undecidedPositions.map(idAt);
          answer.unknownRelation = found.unknownRelation;
          return answer;
        }),
    };
  },
};

const explain: QueryMethodForm<
  'explain',
  typeof ExplainRequestSchema,
  typeof ExplainResponseSchema
> = {
  kind: 'explain',
  request: ExplainRequestSchema,
  answer: ExplainResponseSchema,
  *read(request, scopeOf) {
    const wanted = queryFromProto('question', request.question);
    const remediesMax = remediesOf(request.remediesMax);
    const query = yield* scopeOf(request.scope);
    return {
      query,
      args: { ...query.head, query: wanted, remediesMax },
      problems: [],
      answerOf: (result) => inOneStep(() => explanationToProto(query.shard, result)),
    };
  },
};

/** Methods of QueryService that a worker decodes, with how each is read and answered. */
export const QUERY_METHODS = {
  queryCheck,
  queryBatchCheck,
  listRelations,
  filterObjects,
  explain,
} as const;

/**
 * Checks a request of `method`, in steps that the caller runs to the end. Errors (the first one found, naming the
 * field): FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE.
 */
export function readQuery<M extends QueryMethod>(
  method: M,
  request: MessageShape<(typeof QUERY_METHODS)[M]['request']>,
  { projectIdOf, itemsMax }: QueryReading,
): Generator<void, CheckedQuery<M>> {
  // The entry of `method`: its request type and its reader belong together.
  const { read } = QUERY_METHODS[method] as unknown as QueryMethodForm<M, DescMessage, DescMessage>;
  return read(request, (scope) => scopedQuery(projectIdOf, scope), itemsMax);
}

function remediesOf(value: number): number {
  if (value < 0 || value > REMEDIES_MAX) {
    throw fieldError('remedies_max', `must be between 0 and ${REMEDIES_MAX}`);
  }
  return value === 0 ? REMEDIES_DEFAULT : value;
}

/** Checks each item, in steps. Errors: BATCH_TOO_LARGE; those of `check`, which name the item. */
function* checkEach(
  field: string,
  items: readonly string[],
  itemsMax: number,
  check: (field: string, item: string) => void,
): Generator<void, void> {
  if (items.length > itemsMax) {
    throw new AppError<AuthzReason>(
      'BATCH_TOO_LARGE',
      `${field}: ${items.length} items, at most ${itemsMax}`,
      { field, limit: String(itemsMax) },
    );
  }
  for (const [index, item] of items.entries()) {
    check(`${field}[${index}]`, item);
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
  }
}

/**
 * Checks a query; `field` is its path in the request. Errors: FIELD_REQUIRED, FIELD_INVALID naming the first bad field.
 */
export function queryFromProto(field: string, query: ProtoQuestion | undefined): Query {
  if (query === undefined) throw requiredError(field);
  const { namespace, objectId, relation } = query;
  checkNamespace(`${field}.namespace`, namespace);
  checkObjectId(`${field}.object_id`, objectId);
  checkRelation(`${field}.relation`, relation);
  const subject = askedSubject(`${field}.subject`, query.subject);
  return { namespace, objectId, relation, subject };
}

/** Checks the subject of a query: a user or a userset. An empty relation names the object itself. Errors: FIELD_*. */
export function askedSubject(field: string, subject: ProtoSubject | undefined): Subject {
  const checked = checkSubject(field, subject?.kind);
  if (checked.kind !== 'user' && checked.kind !== 'set')
    throw fieldError(field, 'must be a user or a set');
  return checked;
}
