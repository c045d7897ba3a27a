import { StructSchema } from '@bufbuild/protobuf/wkt';
import { JSON_BYTES } from '../shared/text/json-bytes.ts';
import { DEPTH_MAX, fieldTooLarge, malformed, TOKEN_BYTES_MAX } from './decode-limits.ts';
import { JsonScan, JsonSyntaxProblem } from './json-scan.ts';
import { MessageShapes } from './message-shape.ts';

/** Bounds of JSON that no message type describes. */
export type JsonBounds = {
  /** Members of objects and entries of lists, at any depth. */
  readonly valuesMax: number;
  readonly bytesMax: number;
};

/** JSON up to this size is not scanned: its contents cost next to nothing. */
const SHORT_BYTES = 4_096;
const STRUCT = new MessageShapes({}).of(StructSchema);

/**
 * Refuses JSON that holds too much, before it is parsed. Malformed JSON is left to the parser.
 * O(bytes), no allocation.
 * Errors: FIELD_TOO_LARGE; BODY_MALFORMED for more than 128 levels or numbers of more than 256
 * digits.
 */
export function assertJsonBounds(bytes: Uint8Array, { valuesMax, bytesMax }: JsonBounds): void {
  if (bytes.length <= SHORT_BYTES) return;
  try {
    new JsonScan(bytes, STRUCT).assertBounds(valuesMax, bytesMax);
  } catch (error) {
    if (!(error instanceof JsonSyntaxProblem)) throw error;
  }
}

/** Bounds of a large document whose structure is not known beforehand. */
export type DocumentBounds = JsonBounds & {
  /** Distinct names of members: each costs as much as some dozen values. */
  readonly namesMax: number;
};

const {
  QUOTE,
  BACKSLASH,
  COMMA,
  COLON,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
  SPACE,
} = JSON_BYTES;
/** Bytes between two steps. */
const STEP_BYTES = 65_536;

/**
 * Counts what a large JSON document holds before it is parsed, in short steps that the caller runs
 * to their end. Malformed JSON is left to the parser. O(bytes); holds the distinct names.
 * Errors: FIELD_TOO_LARGE; BODY_MALFORMED for more than 128 levels or a number of more than 256
 * digits.
 */
export function* countJson(bytes: Buffer, bounds: DocumentBounds): Generator<void, void> {
  const { valuesMax, namesMax, bytesMax } = bounds;
  if (bytes.length > bytesMax) throw fieldTooLarge('the text', bytesMax, 'bytes');
  const names = new Set<string>();
  let values = 1;
  let depth = 0;
  let wordBytes = 0;
  let isText = false;
  let textFrom = 0;
  let textTo = 0;
  let stepAt = STEP_BYTES;
  for (let at = 0; at < bytes.length; at++) {
    if (at >= stepAt) {
      stepAt = at + STEP_BYTES;
      yield;
    }
    const byte = bytes[at] ?? 0;
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) {
        isText = false;
        textTo = at;
      }
      continue;
    }
    if (byte <= SPACE) continue;
    switch (byte) {
      case QUOTE:
        isText = true;
        textFrom = at + 1;
        break;
      case COLON:
        names.add(bytes.toString('latin1', textFrom, textTo));
        if (names.size > namesMax) throw fieldTooLarge('the text', namesMax, 'different names');
        break;
      case OPENING_BRACE:
      case OPENING_BRACKET:
        depth += 1;
        if (depth > DEPTH_MAX) throw malformed(`nested deeper than ${DEPTH_MAX} levels`);
        values += 1;
        break;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        depth -= 1;
        break;
      case COMMA:
        values += 1;
        break;
      default:
        wordBytes += 1;
        if (wordBytes > TOKEN_BYTES_MAX) {
          throw malformed(`a value of more than ${TOKEN_BYTES_MAX} characters`);
        }
        continue;
    }
    wordBytes = 0;
    if (values > valuesMax) throw fieldTooLarge('the text', valuesMax, 'values');
  }
}
