import type { ItemsLimit } from '../decoding/decode-limits.ts';
import {
  BatchCheckRequestSchema as BatchedQueriesSchema,
  FilterObjectsRequestSchema,
  ListRelationsRequestSchema,
  QueryScopeSchema,
} from '../gen/gatehouse/v1/query_service_pb.ts';
import { BatchCheckRequestSchema } from '../gen/workspace/v1/authz_service_pb.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { AppError } from '../shared/app-error.ts';
import { RELATIONS_MAX } from './query-methods.ts';
import { CONTEXTUAL_TUPLES_MAX } from './scoped-query.ts';

/** Full name of the list of items in a BatchCheck. */
export const BATCH_ITEMS = `${BatchCheckRequestSchema.typeName}.items`;

/** Limits, by full name, of the lists in requests that workers decode; part of `DecodeLimits`. */
export function listLimits(batchItemsMax: number): ReadonlyMap<string, ItemsLimit> {
  const batch = { max: batchItemsMax };
  const contextual = { max: CONTEXTUAL_TUPLES_MAX, error: tooManyInRequest };
  return new Map<string, ItemsLimit>([
    [BATCH_ITEMS, batch],
    [`${BatchedQueriesSchema.typeName}.items`, batch],
    [`${FilterObjectsRequestSchema.typeName}.object_ids`, batch],
    [`${ListRelationsRequestSchema.typeName}.relations`, { max: RELATIONS_MAX }],
    [`${QueryScopeSchema.typeName}.contextual_tuples`, contextual],
  ]);
}

/** The BATCH_TOO_LARGE error of a list with more than `max` items in one request. */
export function tooManyInRequest(field: string, max: number): AppError {
  const metadata = { field, limit: String(max) };
  const message = `${field}: at most ${max} in one request`;
  return new AppError<AuthzReason>('BATCH_TOO_LARGE', message, metadata);
}
