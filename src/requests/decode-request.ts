import type { DescMessage, Message } from '@bufbuild/protobuf';
import { malformedBinary, malformedJson } from '../decoding/malformed-message.ts';
import type { MessageDecoder } from '../decoding/message-decoder.ts';
import { assertNoUnknownFields } from '../decoding/unknown-fields.ts';
import {
  type BatchCheckRequest,
  BatchCheckRequestSchema,
  type CheckRequest,
  CheckRequestSchema,
  type ListObjectsRequest,
  ListObjectsRequestSchema,
} from '../gen/workspace/v1/authz_service_pb.ts';
import type { CheckQuery } from '../model/relation-tuple.ts';
import type { QueryMethod } from '../protocol/queries.ts';
import type {
  DecisionMethod,
  RawMethod,
  RawScope,
  UserObjects,
  WireFormat,
} from '../protocol/shard-client.ts';
import { AppError } from '../shared/app-error.ts';
import { checkQueryFromProto } from './check-request.ts';
import { assertBatch, type CheckedItem, checkedItems, listedObjects } from './decision-request.ts';
import { type CheckedQuery, QUERY_METHODS, type QueryReading, readQuery } from './query-methods.ts';

const JSON_OPTIONS = { ignoreUnknownFields: false };
/** Request schema of each decision method. */
export const DECISION_REQUESTS = {
  check: CheckRequestSchema,
  batchCheck: BatchCheckRequestSchema,
  listObjects: ListObjectsRequestSchema,
} as const;

/** A checked decision request, and the scope that it names. */
export type DecodedDecision = { readonly named: RawScope } & (
  | { readonly method: 'check'; readonly query: CheckQuery }
  | { readonly method: 'batchCheck'; readonly items: readonly CheckedItem[] }
  | { readonly method: 'listObjects'; readonly query: UserObjects }
);

/** A checked query request of gatehouse.v1, and the scope that it names. */
export type DecodedQuery = {
  readonly named: RawScope;
  readonly method: QueryMethod;
  readonly asked: CheckedQuery;
};

export type DecodedRequest = DecodedDecision | DecodedQuery;

/** Whether a method belongs to QueryService. Hot. */
export function isQuery(method: RawMethod): method is QueryMethod {
  return method !== 'check' && method !== 'batchCheck' && method !== 'listObjects';
}

/**
 * Decodes and checks a request, in short steps that the caller runs to the end. Errors (the first one found):
 * BODY_MALFORMED, FIELD_REQUIRED, FIELD_INVALID, FIELD_TOO_LARGE, NAMESPACE_RESERVED, BATCH_TOO_LARGE.
 */
export function* decodeRequest(
  decoder: MessageDecoder,
  method: RawMethod,
  format: WireFormat,
  bytes: Uint8Array,
  reading: QueryReading,
): Generator<void, DecodedRequest> {
  const schema = isQuery(method) ? QUERY_METHODS[method].request : DECISION_REQUESTS[method];
  const message = yield* messageOf(decoder, schema, format, bytes);
  yield;
  // The decoder already rejects unknown fields in JSON.
  if (format === 'proto') assertNoUnknownFields(message);
  return isQuery(method)
    ? yield* queryOf(method, message, reading)
    : yield* decisionOf(method, message, reading.itemsMax);
}

function* queryOf(
  method: QueryMethod,
  message: Message,
  reading: QueryReading,
): Generator<void, DecodedQuery> {
  // The decoder returns a message of the requested schema.
  const request = message as Parameters<typeof readQuery>[1];
  const asked = yield* readQuery(method, request, reading);
  const { projectId, tenantId, token, head } = asked.query;
  const named = { projectId, tenantId, token, modelVersion: head.modelVersion };
  return { named, method, asked };
}

function* decisionOf(
  method: DecisionMethod,
  message: Message,
  itemsMax: number,
): Generator<void, DecodedDecision> {
  // The decoder returns a message of the requested schema.
  const request = message as CheckRequest | BatchCheckRequest | ListObjectsRequest;
  const { projectId, tenantId, atLeastConsistencyToken: token } = request;
  const named = { projectId, tenantId, token };
  switch (method) {
    case 'check':
      return { named, method, query: checkQueryFromProto(message as CheckRequest) };
    case 'listObjects':
      return { named, method, query: listedObjects(message as ListObjectsRequest) };
    case 'batchCheck': {
      const batch = message as BatchCheckRequest;
      assertBatch(batch, itemsMax);
      return { named, method, items: yield* checkedItems(batch.items) };
    }
  }
}

function* messageOf(
  decoder: MessageDecoder,
  schema: DescMessage,
  format: WireFormat,
  bytes: Uint8Array,
): Generator<void, Message> {
  const isBinary = format === 'proto';
  try {
    const begun = decoder.begin(schema, isBinary, bytes, JSON_OPTIONS);
    return 'next' in begun ? yield* begun : begun;
  } catch (error) {
    if (error instanceof AppError) throw error;
    const cause = error as Error; // thrown by protobuf's readers
    throw isBinary
      ? malformedBinary(cause.message, cause)
      : malformedJson(cause.message, cause, schema);
  }
}
