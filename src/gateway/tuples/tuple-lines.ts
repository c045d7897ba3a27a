import { TextDecoder } from 'node:util';
import type { JsonValue } from '@bufbuild/protobuf';
import { STRUCT_VALUES_MAX, UNSCANNED_BYTES_MAX } from '../../decoding/decode-limits.ts';
import { assertJsonBounds, type JsonBounds } from '../../decoding/json-count.ts';
import { messageOfJson } from '../../decoding/json-values.ts';
import { RelationTupleSchema } from '../../gen/workspace/v1/authz_service_pb.ts';
import type { RawSubject, RawTimestamp, RawTuple } from '../../model/raw-tuple.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ImportedTuple } from '../../services/tuples/tuple-requests.ts';
import { AppError } from '../../shared/app-error.ts';
import { DECODE_TURNS } from '../../shared/slice-queue.ts';
import { nanosOf, parseTimestamp } from '../../shared/time/instant.ts';
import type { ExportReader } from './export-frame.ts';

const NEWLINE = 0x0a;
/** Lines of one batch: others get their turn between batches. */
const BATCH_LINES = 256;
/** Bytes of lines that are read in one go. */
const PIECE_BYTES = 32_768;
/** Bounds of a line; its parameters have at most 64 KiB, however they are written. */
const LINE_BOUNDS: JsonBounds = { valuesMax: STRUCT_VALUES_MAX + 64, bytesMax: 524_288 };

/** Bytes of a line at most, where a body has at most `bodyBytesMax`. */
export function lineBytesMaxOf(bodyBytesMax: number): number {
  return Math.min(bodyBytesMax, LINE_BOUNDS.bytesMax);
}

/** Only lines with one of these texts are about the export itself; tuples may have them as texts. */
const MARKS = ['"begin"', '"cursor"', '"end"'];

/**
 * Reads lines of JSON, each a RelationTuple, or `{"tuple":{…}}` as exports have it, perhaps with `written_at`. Lines of an
 * export that hold no tuple (`begin`, `cursor`, `end`) go to `reader`; empty ones are passed over; `error`, which marks an
 * export that was cut short, is refused. Errors: FIELD_INVALID that names the line, counted from 1; BODY_TOO_LARGE for a line
 * of more than `lineBytesMax`; those of `reader`.
 */
export async function* tuplesOfLines(
  chunks: AsyncIterable<Uint8Array>,
  lineBytesMax: number,
  reader: ExportReader,
): AsyncGenerator<readonly ImportedTuple[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let carry: Uint8Array[] = [];
  let carried = 0;
  let line = 0;
  const parse = function* parseAll(bytes: Buffer): Generator<readonly ImportedTuple[]> {
    let batch: ImportedTuple[] = [];
    const hasMarks = MARKS.some((mark) => bytes.includes(mark));
    for (const text of decoded(decoder, bytes, line + 1).split('\n')) {
      line += 1;
      const tuple = tupleOfLine(text, line, reader);
      if (hasMarks) reader.passed(text);
      if (tuple !== undefined) batch.push(tuple);
      if (batch.length < BATCH_LINES) continue;
      yield batch;
      batch = [];
    }
    if (!hasMarks) reader.passed(bytes);
    if (batch.length > 0) yield batch;
  };
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end < 0) {
      carry.push(chunk);
      carried += chunk.byteLength;
    } else {
      // Without the last newline: behind it begins what is carried on.
      const whole = Buffer.concat([...carry, chunk.subarray(0, end)]);
      carry = end + 1 < chunk.byteLength ? [chunk.subarray(end + 1)] : [];
      carried = chunk.byteLength - end - 1;
      for (const piece of piecesOf(whole)) {
        for (const batch of parse(piece)) {
          yield batch;
          await DECODE_TURNS.turn();
        }
        if (piece.length < whole.length) await DECODE_TURNS.turn();
      }
    }
    if (carried > lineBytesMax) throw lineTooLong(line + 1, lineBytesMax);
  }
  try {
    if (carried > 0) yield* parse(Buffer.concat(carry));
  } catch (error) {
    // A file is cut in the middle of a line, too.
    reader.ended();
    throw error;
  }
  reader.ended();
}

/** Whole lines, without the newline behind the last one; a long one is a piece of its own. */
function* piecesOf(lines: Buffer): Generator<Buffer> {
  for (let from = 0; ;) {
    const end = lines.indexOf(NEWLINE, from + PIECE_BYTES);
    const to = end < 0 ? lines.length : end;
    yield lines.subarray(from, to);
    if (to === lines.length) return;
    from = to + 1;
  }
}

function decoded(decoder: TextDecoder, bytes: Uint8Array, line: number): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw lineError(line, 'this or one of the next lines is not UTF-8', error);
  }
}

function tupleOfLine(text: string, line: number, reader: ExportReader): ImportedTuple | undefined {
  if (text === '' || text.trim() === '') return undefined;
  let json: unknown;
  assertBounds(text, line);
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw lineError(line, 'is not JSON', error);
  }
  if (!isObject(json)) throw lineError(line, 'must be an object');
  if ('error' in json) throw lineError(line, 'says that the export was cut short');
  if ('tuple' in json) {
    const { tuple, written_at: writtenAt, ...rest } = json;
    if (!isObject(tuple) || Object.keys(rest).length > 0) {
      throw lineError(line, 'must hold a tuple and at most written_at beside it');
    }
    reader.tuple(true);
    if (writtenAt !== undefined)
      return { ...tupleOf(tuple, line), writtenAt: timeOf(writtenAt, line) };
    json = tuple;
  } else if (('cursor' in json || 'end' in json) && !('namespace' in json)) {
    reader.mark(json, line);
    return undefined;
  } else reader.tuple(false);
  return tupleOf(json as JsonObjectLike, line);
}

function tupleOf(json: JsonObjectLike, line: number): RawTuple {
  return plainTuple(json) ?? messageOf(json as JsonValue, line);
}

function timeOf(value: unknown, line: number): RawTimestamp {
  const instant = typeof value === 'string' ? parseTimestamp(value) : undefined;
  const nanos = instant && nanosOf(instant);
  if (instant === undefined || nanos === undefined) {
    throw lineError(line, 'written_at must be a time, as 2026-11-27T00:00:00Z');
  }
  return { seconds: BigInt(instant.seconds), nanos };
}

/** A line that is no short one holds at most what a Struct may. */
function assertBounds(text: string, line: number): void {
  if (text.length <= UNSCANNED_BYTES_MAX) return;
  try {
    assertJsonBounds(Buffer.from(text), LINE_BOUNDS);
  } catch (error) {
    throw lineError(line, (error as Error).message, error);
  }
}

type JsonObjectLike = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObjectLike {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A tuple in the form that nearly all have; undefined: the library decides what it is. Cost: a tenth of it. */
function plainTuple(json: JsonObjectLike): RawTuple | undefined {
  let [namespace, objectId, relation, tenantId, projectId] = ['', '', '', '', ''];
  let kind: RawSubject | undefined;
  for (const name in json) {
    const value = json[name];
    if (name === 'subject') {
      if (!isObject(value)) return undefined;
      kind = plainSubject(value);
      if (kind === undefined) return undefined;
      continue;
    }
    if (typeof value !== 'string') return undefined;
    if (name === 'namespace') namespace = value;
    else if (name === 'object_id') objectId = value;
    else if (name === 'relation') relation = value;
    else if (name === 'tenant_id') tenantId = value;
    else if (name === 'project_id') projectId = value;
    else return undefined;
  }
  const subject = kind === undefined ? undefined : { kind };
  return { projectId, tenantId, namespace, objectId, relation, subject };
}

function plainSubject(json: JsonObjectLike): RawSubject | undefined {
  const [name, ...others] = Object.keys(json);
  if (others.length > 0 || name === undefined) return undefined;
  const value = json[name];
  if (name === 'user_id') return typeof value === 'string' ? { case: 'userId', value } : undefined;
  if (name === 'wildcard_of') {
    return typeof value === 'string' ? { case: 'wildcardOf', value } : undefined;
  }
  if (name !== 'set' || !isObject(value)) return undefined;
  const { namespace, object_id: objectId, relation, ...rest } = value;
  const isPlain =
    typeof namespace === 'string' &&
    typeof objectId === 'string' &&
    (relation === undefined || typeof relation === 'string') &&
    Object.keys(rest).length === 0;
  if (!isPlain) return undefined;
  return { case: 'set', value: { namespace, objectId, relation: relation ?? '' } };
}

function messageOf(json: JsonValue, line: number): RawTuple {
  try {
    return messageOfJson(RelationTupleSchema, json);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw lineError(line, problem.slice(0, 200), error);
  }
}

function lineError(line: number, problem: string, cause?: unknown): AppError {
  const error = fieldError(`line ${line}`, problem);
  return cause === undefined ? error : Object.assign(error, { cause });
}

function lineTooLong(line: number, bytesMax: number): AppError {
  return new AppError<AuthzReason>(
    'BODY_TOO_LARGE',
    `line ${line}: has more than ${bytesMax} bytes`,
    { limit: String(bytesMax) },
  );
}
