import { randomInt } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  PreviewQuestion,
  PreviewQuestions,
  PreviewQuestionSchema,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import {
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkTenantId,
  checkUserId,
} from '../../model/names.ts';
import { fieldError } from '../../model/reasons.ts';
import { structText } from '../../requests/check-request.ts';
import type { RecordedQuery } from '../reads/query-recorder.ts';

/** Queries that a preview asks, validated. */
export type AskedQueries = {
  readonly given: readonly RecordedQuery[];
  readonly sampled: number;
  readonly recorded: number;
  /** Seed of the draw; never 0. */
  readonly seed: bigint;
  /** Tenant of the draw. */
  readonly tenantId: string;
};

/** Queries that a request may give. */
export const GIVEN_MAX = 10_000;
const SAMPLED_MAX = 100_000;
const RECORDED_MAX = 100_000;
/** Fresh seeds stay exact in JSON readers that know no 64-bit integers. */
const SEED_MAX = 2 ** 47;

/**
 * The queries of a preview of a project. Errors: FIELD_*, naming the field; FIELD_REQUIRED where there are none at
 * all.
 */
export function askedQueries(
  field: string,
  projectId: string,
  queries: PreviewQuestions | undefined,
): AskedQueries {
  const { given = [], sampled = 0, recorded = 0, seed = 0n, tenantId = '' } = queries ?? {};
  checkTenantId(`${field}.tenant_id`, tenantId);
  if (given.length > GIVEN_MAX) {
    throw fieldError(`${field}.given`, `holds more than ${GIVEN_MAX} questions`);
  }
  checkCount(`${field}.sampled`, sampled, SAMPLED_MAX);
  checkCount(`${field}.recorded`, recorded, RECORDED_MAX);
  if (given.length === 0 && sampled === 0 && recorded === 0) {
    throw fieldError(
      field,
      'asks nothing: give questions, or a number of sampled or recorded ones',
    );
  }
  return {
    given: given.map((one, index) =>
      givenQuery(`${field}.given[${index}]`, one, projectId, tenantId),
    ),
    sampled,
    recorded,
    seed: seed === 0n ? BigInt(randomInt(1, SEED_MAX)) : seed,
    tenantId,
  };
}

function givenQuery(
  at: string,
  query: PreviewQuestion,
  projectId: string,
  tenantIdOfAll: string,
): RecordedQuery {
  const { namespace, objectId, relation, subjectUserId: userId, context } = query;
  checkNamespace(`${at}.namespace`, namespace);
  checkObjectId(`${at}.object_id`, objectId);
  checkRelation(`${at}.relation`, relation);
  checkUserId(`${at}.subject_user_id`, userId);
  checkTenantId(`${at}.tenant_id`, query.tenantId);
  const tenantId = query.tenantId === '' ? tenantIdOfAll : query.tenantId;
  const contextJson = context === undefined ? '' : structText(`${at}.context`, context);
  return { projectId, tenantId, namespace, objectId, relation, userId, contextJson };
}

function checkCount(field: string, count: number, max: number): void {
  if (!Number.isInteger(count) || count < 0 || count > max) {
    throw fieldError(field, `must lie between 0 and ${max}`);
  }
}

/** The response form of a query. */
export function queryToProto(query: RecordedQuery): MessageInitShape<typeof PreviewQuestionSchema> {
  const { tenantId, namespace, objectId, relation, userId: subjectUserId, contextJson } = query;
  const fields = { tenantId, namespace, objectId, relation, subjectUserId };
  return contextJson === '' ? fields : { ...fields, context: JSON.parse(contextJson) };
}
