import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/** Bodies up to this are decoded as they are: nothing in them costs more than a few ms. */
export const UNSCANNED_BYTES_MAX = 4_096;
/** Bodies up to this are scanned in one go, which takes less than a millisecond. */
export const SCANNED_AT_ONCE_BYTES_MAX = 65_536;
/** Scanned messages with at most this many values are decoded in one go. */
export const DECODED_AT_ONCE_VALUES_MAX = 1_024;
/** Members and list entries of a google.protobuf.Struct, those within them counted too. */
export const STRUCT_VALUES_MAX = 8_192;
/** Bytes of one, as they come. */
export const STRUCT_BYTES_MAX = 262_144;
/** Bytes of one item of a list, as they come. */
export const ITEM_BYTES_MAX = 1_114_112;
/** Bytes of what is left of a message without its lists and long texts. */
export const REST_BYTES_MAX = 524_288;
/** Fields of one item of a list, those within it counted too, and of a message without its lists. */
export const FIELDS_MAX = 65_536;
/** Items of a list that has no limit of its own. */
export const LIST_ITEMS_MAX = 131_072;
/** Bytes of a text, as they come, that has no limit of its own. */
export const TEXT_BYTES_MAX = 131_072;
/** Bytes of a number, an enum's name, a timestamp. */
export const TOKEN_BYTES_MAX = 256;
/** Fields that the message does not have, and values where another kind belongs. */
export const UNKNOWN_MAX = 64;
/** Fields of one message that are no lists, and come again: no encoder writes such, and parts put behind one another few. */
export const REPEATS_MAX = 8;
/** Levels; protobuf itself takes 100 of messages. */
export const DEPTH_MAX = 128;

/** How many items a list may have, and what to say of one with more, of which `field` is the path from the request. */
export type ItemsLimit = {
  readonly max: number;
  /** Default: `tooManyItems`. */
  readonly error?: ((field: string, max: number) => AppError) | undefined;
};

/** Bounds of fields, by the full name of the field, as `workspace.v1.BatchCheckRequest.items`. */
export type DecodeLimits = {
  /** Items of lists; LIST_ITEMS_MAX where absent. */
  readonly items?: ReadonlyMap<string, ItemsLimit> | undefined;
  /** Bytes of texts; TEXT_BYTES_MAX where absent. */
  readonly textBytes?: ReadonlyMap<string, number> | undefined;
};

/** A list with more items than it may have; none of them is built. */
export function tooManyItems(
  field: string,
  count: number,
  { max: limit, error }: ItemsLimit,
): AppError {
  if (error !== undefined) return error(field, limit);
  return new AppError<SharedReason>(
    'BATCH_TOO_LARGE',
    `${field}: ${count} items, at most ${limit}`,
    { field, limit: String(limit) },
  );
}

/** A field with more of something than it may have, as "holds more than 8192 values". */
export function fieldTooLarge(field: string, limit: number, unit: string): AppError {
  return new AppError<SharedReason>(
    'FIELD_TOO_LARGE',
    `${field === '' ? 'the body' : field}: holds more than ${limit} ${unit}`,
    { field, limit: String(limit) },
  );
}

export function malformed(problem: string, field = ''): AppError {
  return new AppError<SharedReason>('BODY_MALFORMED', problem, field === '' ? {} : { field });
}

/** Reasons of the size of a message; a malformed one is not among them. */
const REFUSALS: ReadonlySet<string> = new Set([
  'BATCH_TOO_LARGE',
  'FIELD_TOO_LARGE',
  'BODY_MEMORY_EXHAUSTED',
]);

/** Whether `reason` refuses a message for its size, before it is built. */
export function isRefusedMessage(reason: string): boolean {
  return REFUSALS.has(reason);
}
