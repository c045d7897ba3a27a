import { ScalarType } from '@bufbuild/protobuf';
import {
  DEPTH_MAX,
  FIELDS_MAX,
  fieldTooLarge,
  ITEM_BYTES_MAX,
  malformed,
  REPEATS_MAX,
  STRUCT_BYTES_MAX,
  STRUCT_VALUES_MAX,
  TEXT_BYTES_MAX,
  tooManyItems,
  UNKNOWN_MAX,
} from './decode-limits.ts';
import type { FieldShape, MessageShape } from './message-shape.ts';
import { FieldPath, ListRuns } from './scan-results.ts';
import {
  END_GROUP,
  LENGTH_DELIMITED,
  START_GROUP,
  VARINT,
  VARINT_BYTES_MAX,
  WireTokens,
} from './wire-tokens.ts';

const LIST_VALUE = 'google.protobuf.ListValue';
/** Bytes and fields between two steps. */
const STEP_BYTES = 65_536;
const STEP_FIELDS = 1_024;

/** A piece of a message without its lists: a range of bytes, or a message that has lists itself. */
export type RestPiece =
  | { readonly field: null; readonly from: number; readonly to: number }
  | { readonly field: FieldShape; readonly pieces: readonly RestPiece[] };

/** Items of the lists of one message, which hangs on the root by `parents`. */
export type FoundRuns = {
  readonly parents: readonly FieldShape[];
  /** Alternating starts and ends, of whole fields. */
  readonly runs: readonly number[];
};

/** Fields of one message that were seen. */
class SeenFields {
  #bits = 0;
  #repeats = 0;

  /**
   * Adds a field and returns the number of repeats so far. Numbers above 31 are not counted:
   * callers' messages have them only for lists.
   */
  add(number: number): number {
    const bit = number > 31 ? 0 : 1 << number;
    if ((this.#bits & bit) !== 0) this.#repeats += 1;
    this.#bits |= bit;
    return this.#repeats;
  }
}

/**
 * Thrown if the bytes are not protobuf. The library gives the better message where it is called.
 */
export class ProtoSyntaxProblem extends Error {}

/**
 * Scans a body of protobuf, like JsonScan. It reads fields as the library does: by their declared
 * type, whatever the wire type says. A value that runs past its own end is not protobuf here.
 * Errors of `steps`: FIELD_TOO_LARGE, BODY_MALFORMED, ProtoSyntaxProblem.
 */
export class ProtoScan {
  readonly rest: RestPiece[] = [];
  readonly found: FoundRuns[] = [];
  /** Error for the first list with too many items, thrown once the caller has been admitted. */
  tooMany: (() => Error) | null = null;
  values = 0;
  /** Fields that their messages do not have. */
  unknown = 0;
  /** Bytes of the longest text outside of lists. */
  longestText = 0;
  readonly #tokens = new WireTokens();
  readonly #root: MessageShape;
  readonly #path = new FieldPath();
  /** Wire type of the field that was read last. */
  #wireType = 0;
  #steppedAt = 0;
  #fieldsSinceStep = 0;
  #itemFields = 0;
  #structDepth = 0;
  #structValues = 0;

  constructor(bytes: Uint8Array, root: MessageShape) {
    this.#tokens.open(bytes, 0, bytes.length);
    this.#root = root;
  }

  /** Short steps of the scan; the caller runs them to their end. */
  *steps(): Generator<void, void> {
    yield* this.#message(this.#root, this.#tokens.end, this.rest);
  }

  /** Scans a message that hangs on the root by single messages. */
  *#message(shape: MessageShape, end: number, rest: RestPiece[]): Generator<void, void> {
    this.#enter();
    const tokens = this.#tokens;
    const parents = this.#path.fields();
    const counts = new Map<FieldShape, number>();
    const runs = new ListRuns(Infinity, true);
    const seen = new SeenFields();
    let restFrom = tokens.at;
    const keepRest = (to: number): void => {
      if (restFrom < to) rest.push({ field: null, from: restFrom, to });
    };
    while (tokens.at < end) {
      const from = tokens.at;
      const field = this.#field(shape);
      if (field?.isList === true) {
        keepRest(from);
        const valuesBefore = this.values;
        this.#list(field, counts);
        runs.add(from, tokens.at, this.values - valuesBefore);
        restFrom = tokens.at;
      } else if (field !== null) {
        this.#countField();
        this.#countRepeats(seen, field);
        const isRest = field.kind !== 'message' || !field.message().reachesLists;
        const valueFrom = tokens.at;
        if (isRest) this.#value(field);
        else {
          keepRest(from);
          const pieces: RestPiece[] = [];
          yield* this.#message(field.message(), this.#length(end), pieces);
          rest.push({ field, pieces });
          restFrom = tokens.at;
        }
        if (field.kind === 'text') {
          this.longestText = Math.max(this.longestText, tokens.at - valueFrom);
        }
      }
      if (field !== null) this.#path.leave();
      if (this.#isStepOver()) yield;
    }
    this.#ended(end);
    keepRest(tokens.at);
    const found = runs.finish();
    if (found.length > 0) this.found.push({ parents, runs: found });
    this.#path.depth -= 1;
  }

  /** Scans one record of a list. `counts` holds the number of items of each list of its message. */
  #list(field: FieldShape, counts: Map<FieldShape, number>): void {
    const restFields = this.#itemFields;
    this.#itemFields = 0;
    const before = counts.get(field) ?? 0;
    this.#path.index = before;
    const count = before + this.#items(field);
    this.#path.index = -1;
    this.#itemFields = restFields;
    counts.set(field, count);
    if (count <= field.items.max || this.tooMany !== null) return;
    const name = this.#path.text();
    this.tooMany = () => tooManyItems(name, counts.get(field) ?? 0, field.items);
  }

  #items(field: FieldShape): number {
    if (field.kind !== 'token' || this.#wireType !== LENGTH_DELIMITED) {
      this.#value(field);
      return 1;
    }
    const tokens = this.#tokens;
    const end = this.#length();
    let count = 0;
    // Beyond the most items that are possible, the exact count does not matter.
    if (end - tokens.at > field.items.max * VARINT_BYTES_MAX) {
      count = field.items.max + 1;
      tokens.at = end;
    } else for (; tokens.at < end; count++) this.#scalar(field.fixedBytes);
    this.#ended(end);
    this.values += count;
    return count;
  }

  /** Scans the fields of a message, or of a struct. */
  #fields(shape: MessageShape, bytesMax: number): void {
    const end = this.#length();
    this.#atMost(bytesMax, end - this.#tokens.at, 'bytes');
    this.#enter();
    const isList = this.#structDepth > 0 && shape.desc.typeName === LIST_VALUE;
    const seen = new SeenFields();
    while (this.#tokens.at < end) {
      const field = this.#field(shape);
      if (field === null) continue;
      this.#countField();
      if (isList) this.#countStruct();
      this.#countRepeats(seen, field);
      this.#value(field);
      this.#path.leave();
    }
    this.#ended(end);
    this.#path.depth -= 1;
  }

  /**
   * Refuses a field that ends behind its message: the library would read on and take bytes of what
   * follows.
   */
  #ended(end: number): void {
    if (this.#tokens.at > end) throw this.#syntax();
  }

  /**
   * The field that a tag names, now on the path; null if the message has no such field, which is
   * then skipped.
   */
  #field(shape: MessageShape): FieldShape | null {
    const tag = this.#tag();
    const field = shape.byNumber.get(tag >>> 3) ?? null;
    this.#wireType = tag & 7;
    if (field === null) this.#skip(shape, tag);
    else this.#path.enter(field);
    return field;
  }

  #value(field: FieldShape): void {
    this.values += 1;
    if (field.isMap) return this.#entry(field);
    switch (field.kind) {
      case 'text':
        return this.#text(field.bytesMax);
      case 'token':
        if (!field.isList || this.#wireType !== LENGTH_DELIMITED) {
          return this.#scalar(field.fixedBytes);
        }
        return this.#packed(field);
      case 'message':
        return this.#fields(field.message(), ITEM_BYTES_MAX);
      case 'struct':
        if (this.#structDepth === 0) this.#structValues = 0;
        this.#structDepth += 1;
        this.#fields(field.message(), STRUCT_BYTES_MAX);
        this.#structDepth -= 1;
    }
  }

  /** Scans packed numbers of a list within a message within a list. */
  #packed({ fixedBytes }: FieldShape): void {
    const end = this.#length();
    for (; this.#tokens.at < end; this.values += 1) {
      this.#countField();
      this.#scalar(fixedBytes);
    }
    this.#ended(end);
  }

  /** Scans one member of a map: key 1, value 2. */
  #entry(field: FieldShape): void {
    this.#countStruct();
    const { message, scalar } = field.field;
    const mapKey = field.field.fieldKind === 'map' ? field.field.mapKey : undefined;
    const end = this.#length();
    while (this.#tokens.at < end) {
      const tag = this.#tag();
      const number = tag >>> 3;
      this.#countField();
      if (number > 2) this.#skip(null, tag);
      else if (number === 2 && message !== undefined) {
        this.#fields(field.message(), STRUCT_BYTES_MAX);
      } else if (isText(number === 1 ? mapKey : scalar)) this.#text(TEXT_BYTES_MAX);
      else this.#scalar(number === 1 ? 0 : field.fixedBytes);
    }
    this.#ended(end);
  }

  #countField(): void {
    this.#itemFields += 1;
    this.#atMost(FIELDS_MAX, this.#itemFields, 'fields');
  }

  /**
   * Bounds repeated fields: the library reads each, and copies the map of a message that it merges
   * with another one.
   */
  #countRepeats(seen: SeenFields, { number, isList, isMap }: FieldShape): void {
    if (!isList && !isMap) this.#atMost(REPEATS_MAX, seen.add(number), 'fields that come again');
  }

  #countStruct(): void {
    this.#structValues += 1;
    this.#atMost(STRUCT_VALUES_MAX, this.#structValues, 'values');
  }

  #atMost(max: number, count: number, unit: string): void {
    if (count > max) throw fieldTooLarge(this.#structField(), max, unit);
  }

  /** The path without the fields that a struct is made of. */
  #structField(): string {
    return this.#path.text().replace(/(\.(fields|values|struct_value|list_value))+$/, '');
  }

  #text(bytesMax: number): void {
    const end = this.#tokens.at + bytesMax + VARINT_BYTES_MAX;
    this.#tokens.at = this.#length();
    if (this.#tokens.at > end) throw fieldTooLarge(this.#path.text(), bytesMax, 'bytes of text');
  }

  #scalar(fixedBytes: number): void {
    const tokens = this.#tokens;
    const isRead = fixedBytes > 0 || tokens.varint() >= 0;
    tokens.at += fixedBytes;
    if (!isRead || tokens.at > tokens.end) throw this.#syntax();
  }

  /** Skips a field that the message does not have; at most UNKNOWN_MAX of these are accepted. */
  #skip(shape: MessageShape | null, tag: number): void {
    this.unknown += 1;
    this.values += 1;
    if (this.unknown > UNKNOWN_MAX) {
      const name = shape?.desc.typeName ?? 'the message';
      throw malformed(`${name}: unknown field number ${tag >>> 3}`, this.#path.text());
    }
    const wireType = tag & 7;
    if (wireType === VARINT) this.#scalar(0);
    else if (wireType === START_GROUP) this.#group(shape, tag >>> 3);
    else if (!this.#tokens.skip(tag)) throw this.#syntax();
  }

  #group(shape: MessageShape | null, number: number): void {
    this.#enter();
    let tag = this.#tag();
    for (; (tag & 7) !== END_GROUP; tag = this.#tag()) this.#skip(shape, tag);
    if (tag >>> 3 !== number) throw this.#syntax();
    this.#path.depth -= 1;
  }

  #tag(): number {
    const tag = this.#tokens.tag();
    if (tag < 0) throw this.#syntax();
    return tag;
  }

  /** Reads a length and returns the end of the value behind it, which is at most `limit`. */
  #length(limit = this.#tokens.end): number {
    const end = this.#tokens.valueEnd(limit);
    if (end < 0) throw this.#syntax();
    return end;
  }

  #enter(): void {
    this.#path.depth += 1;
    if (this.#path.depth > DEPTH_MAX) {
      const field = this.#structField();
      throw malformed(`${field}: nested deeper than ${DEPTH_MAX} levels`, field);
    }
  }

  #isStepOver(): boolean {
    const { at } = this.#tokens;
    this.#fieldsSinceStep += 1;
    if (at - this.#steppedAt < STEP_BYTES && this.#fieldsSinceStep < STEP_FIELDS) return false;
    this.#steppedAt = at;
    this.#fieldsSinceStep = 0;
    return true;
  }

  #syntax(): ProtoSyntaxProblem {
    return new ProtoSyntaxProblem(`no protobuf at byte ${this.#tokens.at}`);
  }
}

function isText(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
}
