import { ENTITY_ID_BYTES_MAX, type TupleReader } from '../../model/tuple-reader.ts';

const utf8 = new TextEncoder();

const JSON_RESULTS_START = utf8.encode('{"results":[');
const JSON_ALLOWED = utf8.encode('{"allowed":true,"error":""}');
const JSON_DENIED = utf8.encode('{"allowed":false,"error":""}');
const JSON_END = utf8.encode(']}');
const COMMA = 0x2c;

/** Memory into which an encoder writes `length` bytes; what it holds is overwritten. */
export type Space = (length: number) => Uint8Array;

const newBytes: Space = (length) => new Uint8Array(length);

const OUTCOME_ALLOWED = 1;
const OUTCOME_ERROR = 2;

/** Items between two clock reads. */
const ITEMS_PER_CLOCK_READ = 256;
const TAG_FIRST_MESSAGE = 0x0a; // field 1, length-delimited
const TAG_ALLOWED = 0x08; // field 1, varint
const TAG_ERROR = 0x12; // field 2, length-delimited

/**
 * Encodes a BatchCheck answer in slices, so that a long one stops nobody: in JSON exactly as the general path's encoder
 * writes it, every field, no spaces; in binary without defaults, as proto3 writes it. `outcomes`: 0 denied, 1 allowed,
 * 2 error with its text in `errors`. Written into what `space` gives. Hot. O(items + error texts).
 */
export class BatchEncoder {
  readonly #outcomes: Uint8Array;
  readonly #errors: ReadonlyMap<number, string>;
  readonly #isJson: boolean;
  readonly #space: Space;
  readonly #failures = new Map<number, Uint8Array>();
  #measured = 0;
  #length = 0;
  #written = 0;
  #at = 0;
  #body: Uint8Array | null = null;

  constructor(
    outcomes: Uint8Array,
    errors: ReadonlyMap<number, string>,
    isJson: boolean,
    space: Space = newBytes,
  ) {
    this.#outcomes = outcomes;
    this.#errors = errors;
    this.#isJson = isJson;
    this.#space = space;
  }

  /** Encodes until done or until the monotonic clock passed `sliceEndMs`. */
  run(sliceEndMs: number): 'done' | 'more' {
    const count = this.#outcomes.length;
    while (this.#measured < count) {
      const to = Math.min(count, this.#measured + ITEMS_PER_CLOCK_READ);
      if (this.#isJson) this.#measureJson(to);
      else this.#measureProto(to);
      if (to < count && performance.now() >= sliceEndMs) return 'more';
    }
    this.#body ??= this.#begin();
    while (this.#written < count) {
      const to = Math.min(count, this.#written + ITEMS_PER_CLOCK_READ);
      if (this.#isJson) this.#writeJson(this.#body, to);
      else this.#writeProto(this.#body, to);
      if (to < count && performance.now() >= sliceEndMs) return 'more';
    }
    if (this.#isJson) this.#body.set(JSON_END, this.#at);
    return 'done';
  }

  /** Once done. */
  body(): Uint8Array {
    if (this.#body === null) throw new Error('an answer that was not encoded');
    return this.#body;
  }

  #begin(): Uint8Array {
    if (!this.#isJson) return this.#space(this.#length);
    const commas = Math.max(0, this.#outcomes.length - 1);
    const body = this.#space(JSON_RESULTS_START.length + this.#length + commas + JSON_END.length);
    body.set(JSON_RESULTS_START, 0);
    this.#at = JSON_RESULTS_START.length;
    return body;
  }

  #measureJson(to: number): void {
    const outcomes = this.#outcomes;
    let length = this.#length;
    for (let i = this.#measured; i < to; i++) {
      const outcome = outcomes[i];
      if (outcome === OUTCOME_ERROR) {
        const error = JSON.stringify(this.#errors.get(i) ?? '');
        const text = utf8.encode(`{"allowed":false,"error":${error}}`);
        this.#failures.set(i, text);
        length += text.length;
      } else length += outcome === OUTCOME_ALLOWED ? JSON_ALLOWED.length : JSON_DENIED.length;
    }
    this.#length = length;
    this.#measured = to;
  }

  #writeJson(body: Uint8Array, to: number): void {
    const outcomes = this.#outcomes;
    let at = this.#at;
    for (let i = this.#written; i < to; i++) {
      if (i > 0) {
        body[at] = COMMA;
        at += 1;
      }
      const outcome = outcomes[i];
      const text =
        outcome === OUTCOME_ERROR
          ? (this.#failures.get(i) ?? JSON_DENIED)
          : outcome === OUTCOME_ALLOWED
            ? JSON_ALLOWED
            : JSON_DENIED;
      body.set(text, at);
      at += text.length;
    }
    this.#at = at;
    this.#written = to;
  }

  #measureProto(to: number): void {
    const outcomes = this.#outcomes;
    let length = this.#length;
    for (let i = this.#measured; i < to; i++) {
      const outcome = outcomes[i];
      if (outcome === OUTCOME_ERROR) {
        const text = utf8.encode(this.#errors.get(i) ?? '');
        this.#failures.set(i, text);
        const inner = 1 + varintLength(text.length) + text.length;
        length += 1 + varintLength(inner) + inner;
      } else length += outcome === OUTCOME_ALLOWED ? 4 : 2;
    }
    this.#length = length;
    this.#measured = to;
  }

  #writeProto(body: Uint8Array, to: number): void {
    const outcomes = this.#outcomes;
    let at = this.#at;
    for (let i = this.#written; i < to; i++) {
      body[at] = TAG_FIRST_MESSAGE;
      const failure = outcomes[i] === OUTCOME_ERROR ? this.#failures.get(i) : undefined;
      if (failure !== undefined) {
        at = writeVarint(body, at + 1, 1 + varintLength(failure.length) + failure.length);
        body[at] = TAG_ERROR;
        at = writeVarint(body, at + 1, failure.length);
        body.set(failure, at);
        at += failure.length;
      } else if (outcomes[i] === OUTCOME_ALLOWED) {
        body[at + 1] = 2;
        body[at + 2] = TAG_ALLOWED;
        body[at + 3] = 1;
        at += 4;
      } else {
        body[at + 1] = 0; // an empty message
        at += 2;
      }
    }
    this.#at = at;
    this.#written = to;
  }
}

/** The whole answer in JSON at once: see BatchEncoder. */
export function jsonOfBatch(
  outcomes: Uint8Array,
  errors: ReadonlyMap<number, string>,
  space: Space = newBytes,
): Uint8Array {
  const encoder = new BatchEncoder(outcomes, errors, true, space);
  encoder.run(Infinity);
  return encoder.body();
}

/** The whole answer in binary at once: see BatchEncoder. */
export function protoOfBatch(
  outcomes: Uint8Array,
  errors: ReadonlyMap<number, string>,
  space: Space = newBytes,
): Uint8Array {
  const encoder = new BatchEncoder(outcomes, errors, false, space);
  encoder.run(Infinity);
  return encoder.body();
}

const JSON_LIST_START = utf8.encode('{"object_ids":[');
const JSON_LIST_END = utf8.encode(']}');
const IDS_PER_CLOCK_READ = 256;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bytes of an id in either form at most: each byte escaped, two quotes and a comma; tag and length take less. */
const ID_CAPACITY = 6 * ENTITY_ID_BYTES_MAX + 3;
const CAPACITY_FIRST = 32 * 1024;
const strictUtf8 = new TextDecoder();

/** A reader of the ids of entities. */
export type EntityIds = Pick<TupleReader, 'readEntityId'>;

/** Memory of the answer that ended last, for the next one. */
let spare: Uint8Array<ArrayBuffer> | null = null;

/**
 * Encodes a ListObjects answer in slices, so that a long list stops nobody: ids go from the index's bytes into the answer's,
 * without strings. In JSON as `JSON.stringify` writes them.
 */
export class ListEncoder {
  readonly #ids: EntityIds;
  readonly #entities: Uint32Array;
  readonly #isJson: boolean;
  #bytes: Uint8Array<ArrayBuffer>;
  #at = 0;
  #next = 0;

  /** `entities` are those of `ids` as long as this runs. */
  constructor(ids: EntityIds, entities: Uint32Array, isJson: boolean) {
    this.#ids = ids;
    this.#entities = entities;
    this.#isJson = isJson;
    this.#bytes = spare ?? new Uint8Array(CAPACITY_FIRST);
    spare = null;
    if (!isJson) return;
    this.#bytes.set(JSON_LIST_START);
    this.#at = JSON_LIST_START.length;
  }

  /** Works until all ids are encoded or the slice has ended. */
  run(sliceEndMs: number): 'done' | 'more' {
    const { length } = this.#entities;
    while (this.#next < length) {
      const end = Math.min(length, this.#next + IDS_PER_CLOCK_READ);
      for (; this.#next < end; this.#next++) {
        if (this.#at + ID_CAPACITY > this.#bytes.length) this.#grow();
        const entity = this.#entities[this.#next] as number; // below length
        if (this.#isJson) this.#addJson(entity);
        else this.#addProto(entity);
      }
      if (end < length && performance.now() >= sliceEndMs) return 'more';
    }
    if (this.#isJson) {
      this.#bytes.set(JSON_LIST_END, this.#at);
      this.#at += JSON_LIST_END.length;
    }
    return 'done';
  }

  /** The encoded body, once `run` returned 'done'. To be copied at once, unless `isLarge`: then a buffer of its own. */
  body(isLarge: (bytes: number) => boolean): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes;
    if (bytes.length <= SPARE_MAX) spare = bytes;
    return isLarge(this.#at) ? bytes.slice(0, this.#at) : bytes.subarray(0, this.#at);
  }

  #addJson(entity: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    if (this.#next > 0) bytes[at++] = COMMA;
    bytes[at++] = QUOTE;
    const end = this.#ids.readEntityId(entity, bytes, at);
    for (let i = at; i < end; i++) {
      const byte = bytes[i] as number;
      if (byte === QUOTE || byte === BACKSLASH || byte < 0x20) return this.#addEscaped(at, end);
    }
    bytes[end] = QUOTE;
    this.#at = end + 1;
  }

  /** Escapes an id from `start` to `end` that has a character which JSON escapes. Seldom. */
  #addEscaped(start: number, end: number): void {
    const text = JSON.stringify(strictUtf8.decode(this.#bytes.subarray(start, end)));
    const escaped = utf8.encode(text);
    this.#bytes.set(escaped, start - 1);
    this.#at = start - 1 + escaped.length;
  }

  #addProto(entity: number): void {
    const bytes = this.#bytes;
    // The length takes one byte or two; it is known once the id is there.
    const start = this.#at + 2;
    const end = this.#ids.readEntityId(entity, bytes, start);
    const length = end - start;
    bytes[this.#at] = TAG_FIRST_MESSAGE;
    if (length < 0x80) {
      bytes[this.#at + 1] = length;
      this.#at = end;
      return;
    }
    bytes.copyWithin(start + 1, start, end);
    writeVarint(bytes, this.#at + 1, length);
    this.#at = end + 1;
  }

  #grow(): void {
    const grown = new Uint8Array(this.#bytes.length * 2);
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}

/** Memory that is kept for the next answer, at most. */
const SPARE_MAX = 1024 * 1024;

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) length += 1;
  return length;
}

function writeVarint(body: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  while (rest > 0x7f) {
    body[at] = (rest & 0x7f) | 0x80;
    at += 1;
    rest >>>= 7;
  }
  body[at] = rest;
  return at + 1;
}
