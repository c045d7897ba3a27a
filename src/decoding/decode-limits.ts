import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/**
 * JSON bodies up to this size are decoded without a scan: nothing in them costs more than a few ms.
 */
export const UNSCANNED_BYTES_MAX = 4_096;
/** Bodies up to this size are scanned in one go, which takes less than a millisecond. */
export const SCANNED_AT_ONCE_BYTES_MAX = 65_536;
/** Scanned messages with no more values than this are decoded in one go. */
export const DECODED_AT_ONCE_VALUES_MAX = 1_024;
/** Members and list entries of a google.protobuf.Struct, nested ones included. */
export const STRUCT_VALUES_MAX = 8_192;
/** Bytes of one google.protobuf.Struct, as received. */
export const STRUCT_BYTES_MAX = 262_144;
/** Bytes of one item of a list, as received. */
export const ITEM_BYTES_MAX = 1_114_112;
/** Bytes of a message without its lists and long texts. */
export const REST_BYTES_MAX = 524_288;
/** Fields of one item of a list, nested ones included, and of a message without its lists. */
export const FIELDS_MAX = 65_536;
/** Items of a list that `DecodeLimits` does not name. */
export const LIST_ITEMS_MAX = 131_072;
/** Bytes of a text, as received, that `DecodeLimits` does not name. */
export const TEXT_BYTES_MAX = 131_072;
/** Bytes of a number, an enum's name or a timestamp. */
export const TOKEN_BYTES_MAX = 256;
/** Fields that the message does not have, and values of a kind that does not fit their field. */
export const UNKNOWN_MAX = 64;
/**
 * Repeats of the fields of one message that are not lists. No encoder repeats them, and
 * concatenated messages repeat few.
 */
export const REPEATS_MAX = 8;
/** Levels of nesting. Protobuf itself accepts 100 levels of messages. */
export const DEPTH_MAX = 128;

/**
 * The most items of a list, and the error for a list with more. `field` is its path from the
 * request.
 */
export type ItemsLimit = {
  readonly max: number;
  /** Default: `tooManyItems`. */
  readonly error?: ((field: string, max: number) => AppError) | undefined;
};

/**
 * Bounds of fields by the full name of the field, such as `workspace.v1.BatchCheckRequest.items`.
 */
export type DecodeLimits = {
  /** Items of lists; LIST_ITEMS_MAX if absent. */
  readonly items?: ReadonlyMap<string, ItemsLimit> | undefined;
  /** Bytes of texts; TEXT_BYTES_MAX if absent. */
  readonly textBytes?: ReadonlyMap<string, number> | undefined;
};

/**
 * BATCH_TOO_LARGE, or the limit's own error, for a list with more items than it may have. None of
 * its items is built.
 */
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

/** FIELD_TOO_LARGE for a field that exceeds a limit, worded like "holds more than 8192 values". */
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

/** Reasons of refusals that are reported. BODY_MALFORMED is left out: it needs no report. */
const REFUSALS: ReadonlySet<string> = new Set([
  'BATCH_TOO_LARGE',
  'FIELD_TOO_LARGE',
  'BODY_MEMORY_EXHAUSTED',
]);

/** True if `reason` is a refusal for the size of a message, made before the message was built. */
export function isRefusedMessage(reason: string): boolean {
  return REFUSALS.has(reason);
}
