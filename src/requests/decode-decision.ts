import type { Message } from '@bufbuild/protobuf';
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
import type { CheckQuery } from '../model/check-query.ts';
import type { RawMethod, RawScope, UserObjects, WireFormat } from '../protocol/shard-client.ts';
import { AppError } from '../shared/app-error.ts';
import { checkQueryFromProto } from './check-request.ts';
import { assertBatch, type CheckedItem, checkedItems, listedObjects } from './decision-request.ts';

const JSON_OPTIONS = { ignoreUnknownFields: false };
/** The request of each method. */
export const DECISION_REQUESTS = {
  check: CheckRequestSchema,
  batchCheck: BatchCheckRequestSchema,
  listObjects: ListObjectsRequestSchema,
} as const;
/** The one list of a decision, by its full name: of `DecodeLimits`. */
export const BATCH_ITEMS = `${BatchCheckRequestSchema.typeName}.items`;

/** What a decision asks, checked, and the scope that it names. */
export type DecodedDecision = { readonly named: RawScope } & (
  | { readonly method: 'check'; readonly query: CheckQuery }
  | { readonly method: 'batchCheck'; readonly items: readonly CheckedItem[] }
  | { readonly method: 'listObjects'; readonly query: UserObjects }
);

/**
 * Decodes and checks a request for a decision, in steps to be run to their end, each of which is short. Errors: BODY_MALFORMED,
 * FIELD_REQUIRED, FIELD_INVALID, FIELD_TOO_LARGE, BATCH_TOO_LARGE; the first of what is wrong.
 */
export function* decodeDecision(
  decoder: MessageDecoder,
  method: RawMethod,
  format: WireFormat,
  bytes: Uint8Array,
  itemsMax: number,
): Generator<void, DecodedDecision> {
  // The decoder gives a message of the schema that it was asked for.
  const message = (yield* messageOf(decoder, method, format, bytes)) as
    | CheckRequest
    | BatchCheckRequest
    | ListObjectsRequest;
  yield;
  assertNoUnknownFields(message);
  const { projectId, tenantId, atLeastConsistencyToken: token } = message;
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
  method: RawMethod,
  format: WireFormat,
  bytes: Uint8Array,
): Generator<void, Message> {
  const schema = DECISION_REQUESTS[method];
  const isBinary = format === 'proto';
  try {
    const begun = decoder.begin(schema, isBinary, bytes, JSON_OPTIONS);
    return 'next' in begun ? yield* begun : begun;
  } catch (error) {
    if (error instanceof AppError) throw error;
    const cause = error as Error; // of protobuf's readers
    throw isBinary
      ? malformedBinary(cause.message, cause)
      : malformedJson(cause.message, cause, schema);
  }
}
