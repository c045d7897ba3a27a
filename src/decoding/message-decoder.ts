import {
  type DescMessage,
  fromBinary,
  type JsonValue,
  type Message,
  mergeFromBinary,
  mergeFromJson,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { DECODE_TURNS, runInSlices } from '../shared/slice-queue.ts';
import {
  DECODED_AT_ONCE_VALUES_MAX,
  type DecodeLimits,
  fieldTooLarge,
  malformed,
  REST_BYTES_MAX,
  SCANNED_AT_ONCE_BYTES_MAX,
  tooManyItems,
  UNSCANNED_BYTES_MAX,
} from './decode-limits.ts';
import { JsonScan, JsonSyntaxProblem } from './json-scan.ts';
import { type JsonOptions, mergeJsonText, messageOfJsonText } from './json-values.ts';
import { type FieldShape, MessageShapes } from './message-shape.ts';
import { ProtoScan, ProtoSyntaxProblem, type RestPiece } from './proto-scan.ts';

/** Concatenates parts; a single part is returned as it is. O(bytes). */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The bytes of a message that consists of `pieces` of `bytes`. O(bytes). */
function wholeMessage(bytes: Uint8Array, pieces: readonly RestPiece[]): Uint8Array {
  return joined(
    pieces.map((piece) =>
      piece.field === null
        ? bytes.subarray(piece.from, piece.to)
        : asField(piece.field, wholeMessage(bytes, piece.pieces)),
    ),
  );
}

/** Wraps the fields of a message that hangs on another one by `parents` as fields of that one. */
function wrapped(parents: readonly FieldShape[], fields: Uint8Array): Uint8Array {
  return parents.reduceRight((inner, parent) => asField(parent, inner), fields);
}

function asField({ number }: FieldShape, message: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(message).finish();
}

/**
 * Called once with the message without its lists and long texts, before these are built. Throws to
 * refuse the message.
 */
export type Admit = (rest: Message) => void;

/**
 * Largest sizes at which a body is decoded without a scan (JSON only), scanned in one go, and then
 * decoded in one go.
 */
export type DecodeSizes = {
  readonly unscannedBytesMax: number;
  readonly scannedAtOnceBytesMax: number;
  readonly decodedAtOnceValuesMax: number;
};

const SIZES: DecodeSizes = {
  unscannedBytesMax: UNSCANNED_BYTES_MAX,
  scannedAtOnceBytesMax: SCANNED_AT_ONCE_BYTES_MAX,
  decodedAtOnceValuesMax: DECODED_AT_ONCE_VALUES_MAX,
};

/**
 * Decodes a whole text, which may begin with a byte order mark that is dropped. `strictPart` keeps
 * the mark.
 */
const strictUtf8 = new TextDecoder('utf-8', { fatal: true });
const strictPart = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes messages of callers within bounds. The values of a body are counted before anything is
 * built. Large messages are built in slices, so that other work on the thread does not wait.
 * The result equals that of `messageOfJsonText` and `fromBinary`. One difference: a nested binary
 * message that runs past its own end is refused, where `fromBinary` reads on.
 *
 * Small bodies are decoded and returned synchronously. Errors: FIELD_TOO_LARGE, BATCH_TOO_LARGE and
 * BODY_MALFORMED naming the field, those of `admit`, and those of the library.
 */
export class MessageDecoder {
  readonly #shapes: MessageShapes;
  readonly #sizes: DecodeSizes;

  constructor(limits: DecodeLimits = {}, sizes: DecodeSizes = SIZES) {
    this.#shapes = new MessageShapes(limits);
    this.#sizes = sizes;
  }

  /**
   * Decodes a message. Returns a promise if it is not small; it is then built in turns that all
   * decoders of the thread share.
   */
  decode(
    desc: DescMessage,
    isBinary: boolean,
    bytes: Uint8Array,
    json?: JsonOptions,
    admit?: Admit,
  ): Message | Promise<Message> {
    const decoded = this.begin(desc, isBinary, bytes, json, admit);
    return 'next' in decoded ? runInSlices(decoded, DECODE_TURNS) : decoded;
  }

  /**
   * Decodes a message. One that is not small is the result of short steps, which the caller runs to
   * their end.
   */
  begin(
    desc: DescMessage,
    isBinary: boolean,
    bytes: Uint8Array,
    json?: JsonOptions,
    admit?: Admit,
  ): Message | DecodeSteps {
    return isBinary
      ? this.#decodeBinary(desc, bytes, admit)
      : this.#decodeJson(desc, bytes, json, admit);
  }

  #decodeJson(
    desc: DescMessage,
    bytes: Uint8Array,
    json: JsonOptions,
    admit: Admit | undefined,
  ): Message | DecodeSteps {
    const whole = (): Message => messageOfJsonText(desc, textOf(strictUtf8, bytes), json);
    if (bytes.length <= this.#sizes.unscannedBytesMax) return whole();
    const scan = new JsonScan(bytes, this.#shapes.of(desc));
    const steps = scan.steps();
    if (bytes.length <= this.#sizes.scannedAtOnceBytesMax) {
      try {
        runWhole(steps);
      } catch (error) {
        // The library gives the better message.
        if (error instanceof JsonSyntaxProblem) return whole();
        throw error;
      }
      const isOver = tooLongIn(scan) !== null;
      if (scan.values <= this.#sizes.decodedAtOnceValuesMax && !isOver) return whole();
    }
    return buildJson(desc, bytes, json, scan, steps, admit);
  }

  #decodeBinary(
    desc: DescMessage,
    bytes: Uint8Array,
    admit: Admit | undefined,
  ): Message | DecodeSteps {
    const scan = new ProtoScan(bytes, this.#shapes.of(desc));
    const steps = scan.steps();
    if (bytes.length <= this.#sizes.scannedAtOnceBytesMax) {
      try {
        runWhole(steps);
      } catch (error) {
        if (!(error instanceof ProtoSyntaxProblem)) throw error;
        // The library gives the better message, if it refuses the message too.
        fromBinary(desc, bytes);
        throw notProtobuf(error);
      }
      if (scan.values <= this.#sizes.decodedAtOnceValuesMax && scan.tooMany === null) {
        return fromBinary(desc, bytes);
      }
    }
    return buildBinary(desc, bytes, scan, steps, admit);
  }
}

/** Steps that build a message. */
export type DecodeSteps = Generator<void, Message>;

/** Large messages whose fields are all known, so that they need no scan for unknown ones. */
const withoutUnknown = new WeakSet<Message>();

/**
 * True if a message is known to have no unknown fields at any depth; false: it was not checked.
 * O(1).
 */
export function isWithoutUnknown(message: Message): boolean {
  return withoutUnknown.has(message);
}

function runWhole(steps: Iterator<void, void>): void {
  while (steps.next().done !== true);
}

function* buildJson(
  desc: DescMessage,
  bytes: Uint8Array,
  json: JsonOptions,
  scan: JsonScan,
  steps: Generator<void, void>,
  admit: Admit | undefined,
): DecodeSteps {
  try {
    yield* steps;
  } catch (error) {
    if (!(error instanceof JsonSyntaxProblem)) throw error;
    throw malformed(`cannot decode message ${desc.typeName} from JSON: ${error.message}`);
  }
  yield;
  const message = messageOfJsonText(desc, textOf(strictUtf8, restOfJson(bytes, scan)), json);
  admit?.(message);
  const tooLong = tooLongIn(scan);
  if (tooLong !== null) throw tooLong;
  yield* jsonParts(desc, bytes, json, scan, message);
  withoutUnknown.add(message);
  return message;
}

function notProtobuf({ message }: ProtoSyntaxProblem): Error {
  return malformed(`the message cannot be decoded: ${message}`);
}

/** The body with its lists and long texts emptied, and without long white space. */
function restOfJson(bytes: Uint8Array, { lists, texts, spaces }: JsonScan): Uint8Array {
  const gaps = [
    ...spaces,
    ...lists.map(({ from, to }) => ({ from, to })),
    // Their quotes stay.
    ...texts.map(({ from, to }) => ({ from: from + 1, to: to - 1 })),
  ].toSorted((a, b) => a.from - b.from || b.to - a.to);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const { from, to } of gaps) {
    // This gap is inside of one that was left out.
    if (from < at) continue;
    parts.push(bytes.subarray(at, from));
    at = to;
  }
  parts.push(bytes.subarray(at));
  return mustBeShort(parts);
}

function* jsonParts(
  desc: DescMessage,
  bytes: Uint8Array,
  json: JsonOptions,
  { lists, texts }: JsonScan,
  message: Message,
): Generator<void, void> {
  for (const { path, from, to } of texts) {
    const text = JSON.parse(textOf(strictPart, bytes.subarray(from, to))) as JsonValue;
    mergeFromJson(desc, message, withinJson(path, text), json);
    yield;
  }
  for (const { path, runs } of lists) {
    const before = path.map(({ name }) => `{"${name}":`).join('');
    const after = '}'.repeat(path.length);
    for (let i = 0; i < runs.length; i += 2) {
      const items = textOf(strictPart, bytes.subarray(runs[i], runs[i + 1]));
      const text = `${before}[${items}]${after}`;
      mergeJsonText(desc, message, text, json, itemsOf(message, path));
      yield;
    }
  }
}

/** Number of items of a list that hangs on a message by single messages. */
function itemsOf(message: Message, path: readonly FieldShape[]): number {
  let at: unknown = message;
  for (const { field } of path) {
    const holder = at as Readonly<Record<string, unknown>>;
    const { oneof, localName } = field;
    at =
      oneof === undefined
        ? holder[localName]
        : (holder[oneof.localName] as { readonly value?: unknown }).value;
  }
  return (at as readonly unknown[] | undefined)?.length ?? 0;
}

function withinJson(path: readonly FieldShape[], value: JsonValue): JsonValue {
  return path.reduceRight<JsonValue>((inner, { name }) => ({ [name]: inner }), value);
}

function* buildBinary(
  desc: DescMessage,
  bytes: Uint8Array,
  scan: ProtoScan,
  steps: Generator<void, void>,
  admit: Admit | undefined,
): DecodeSteps {
  try {
    yield* steps;
  } catch (error) {
    if (!(error instanceof ProtoSyntaxProblem)) throw error;
    throw notProtobuf(error);
  }
  yield;
  const message = fromBinary(desc, mustBeShort([wholeMessage(bytes, scan.rest)], scan.longestText));
  admit?.(message);
  if (scan.tooMany !== null) throw scan.tooMany();
  yield* binaryParts(desc, bytes, scan, message);
  if (scan.unknown === 0) withoutUnknown.add(message);
  return message;
}

function* binaryParts(
  desc: DescMessage,
  bytes: Uint8Array,
  { found }: ProtoScan,
  message: Message,
): Generator<void, void> {
  for (const { parents, runs } of found) {
    for (let i = 0; i < runs.length; i += 2) {
      mergeFromBinary(desc, message, wrapped(parents, bytes.subarray(runs[i], runs[i + 1])));
      yield;
    }
  }
}

/**
 * Joins parts that are at most REST_BYTES_MAX long, plus `textBytes` for one text with its own
 * limit. Errors: FIELD_TOO_LARGE.
 */
function mustBeShort(parts: readonly Uint8Array[], textBytes = 0): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytesMax = REST_BYTES_MAX + textBytes;
  if (length > bytesMax) throw fieldTooLarge('the body', bytesMax, 'bytes besides its lists');
  return joined(parts);
}

/** The error for the first list with too many items, or null. */
function tooLongIn({ lists }: JsonScan): Error | null {
  for (const { path, count } of lists) {
    const items = path.at(-1)?.items;
    if (items === undefined || count <= items.max) continue;
    return tooManyItems(path.map(({ name }) => name).join('.'), count, items);
  }
  return null;
}

function textOf(decoder: typeof strictUtf8, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw Object.assign(malformed('the body is not valid UTF-8'), { cause: error });
  }
}
