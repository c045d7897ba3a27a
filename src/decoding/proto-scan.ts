import { ScalarType } from '@bufbuild/protobuf';
import {
  DEPTH_MAX,
  FIELDS_MAX,
  fieldTooLarge,
  ITEM_BYTES_MAX,
  malformed,
  STRUCT_BYTES_MAX,
  STRUCT_VALUES_MAX,
  TEXT_BYTES_MAX,
  tooManyItems,
  UNKNOWN_MAX,
} from './decode-limits.ts';
import type { FieldShape, MessageShape } from './message-shape.ts';
import { FieldPath, ListRuns } from './scan-results.ts';

const LENGTH_DELIMITED = 2;
const START_GROUP = 3;
const END_GROUP = 4;
const LIST_VALUE = 'google.protobuf.ListValue';
const VARINT_BYTES_MAX = 10;
/** Bytes and fields between two steps. */
const STEP_BYTES = 65_536;
const STEP_FIELDS = 1_024;

/** What a message has besides its lists: ranges of bytes, and messages that have lists themselves. */
export type RestPiece =
  | { readonly field: null; readonly from: number; readonly to: number }
  | { readonly field: FieldShape; readonly pieces: readonly RestPiece[] };

/** Items of lists of one message, which hangs on the root by `parents`. */
export type FoundRuns = {
  readonly parents: readonly FieldShape[];
  /** Starts and ends, by turns, of whole fields. */
  readonly runs: readonly number[];
};

/** Thrown where the bytes are no protobuf; the library says what is wrong with them, where it is asked. */
export class ProtoSyntaxProblem extends Error {}

/**
 * As JsonScan, for protobuf. It reads fields as the library does: by the type that they have, whatever the wire type says.
 * Errors of `steps`: FIELD_TOO_LARGE, BODY_MALFORMED, ProtoSyntaxProblem.
 */
export class ProtoScan {
  readonly rest: RestPiece[] = [];
  readonly found: FoundRuns[] = [];
  /** The first list with too many items: what to say once it is known that the caller may ask at all. */
  tooMany: (() => Error) | null = null;
  values = 0;
  /** Fields that their messages do not have. */
  unknown = 0;
  /** Bytes of the longest text outside of lists. */
  longestText = 0;
  readonly #bytes: Uint8Array;
  readonly #root: MessageShape;
  readonly #path = new FieldPath();
  #at = 0;
  #steppedAt = 0;
  #fieldsSinceStep = 0;
  #itemFields = 0;
  #structDepth = 0;
  #structValues = 0;

  constructor(bytes: Uint8Array, root: MessageShape) {
    this.#bytes = bytes;
    this.#root = root;
  }

  /** To be run to its end. Each step is short. */
  *steps(): Generator<void, void> {
    yield* this.#message(this.#root, this.#bytes.length, this.rest);
  }

  /** A message that hangs on the root by single messages. */
  *#message(shape: MessageShape, end: number, rest: RestPiece[]): Generator<void, void> {
    this.#enter();
    const parents = this.#path.fields();
    const counts = new Map<FieldShape, number>();
    const runs = new ListRuns(Infinity, true);
    const outer = this.#itemFields;
    let restFrom = this.#at;
    let restFields = outer;
    while (this.#at < end) {
      const from = this.#at;
      const tag = this.#tag();
      const field = shape.byNumber.get(tag >>> 3);
      if (field === undefined) this.#skip(shape, tag);
      else {
        this.#path.push(field);
        if (field.isList) {
          if (restFrom < from) rest.push({ field: null, from: restFrom, to: from });
          this.#itemFields = 0;
          const before = counts.get(field) ?? 0;
          this.#path.index = before;
          const valuesBefore = this.values;
          const count = before + this.#items(field, tag & 7);
          this.#path.index = -1;
          counts.set(field, count);
          runs.add(from, this.#at, this.values - valuesBefore);
          restFrom = this.#at;
          if (count > field.items.max) this.#isOver(field, counts);
        } else {
          this.#itemFields = restFields;
          this.#countField();
          restFields = this.#itemFields;
          if (field.kind === 'message' && field.message().reachesLists) {
            if (restFrom < from) rest.push({ field: null, from: restFrom, to: from });
            const inner = this.#length();
            if (inner > end) throw this.#syntax();
            const pieces: RestPiece[] = [];
            yield* this.#message(field.message(), inner, pieces);
            rest.push({ field, pieces });
            restFields = this.#itemFields;
            restFrom = this.#at;
          } else {
            const valueFrom = this.#at;
            this.#value(field, tag & 7);
            restFields = this.#itemFields;
            if (field.kind === 'text') {
              this.longestText = Math.max(this.longestText, this.#at - valueFrom);
            }
          }
        }
        this.#path.pop();
      }
      if (this.#isStepOver()) yield;
    }
    if (this.#at > end) throw this.#syntax();
    if (restFrom < this.#at) rest.push({ field: null, from: restFrom, to: this.#at });
    const found = runs.end();
    if (found.length > 0) this.found.push({ parents, runs: found });
    this.#itemFields = restFields;
    this.#leave();
  }

  #isOver(field: FieldShape, counts: ReadonlyMap<FieldShape, number>): void {
    if (this.tooMany !== null) return;
    const name = this.#path.text();
    this.tooMany = () => tooManyItems(name, counts.get(field) ?? 0, field.items);
  }

  /** One record of a list: how many items it has. */
  #items(field: FieldShape, wireType: number): number {
    if (field.kind !== 'token' || wireType !== LENGTH_DELIMITED) {
      this.#value(field, wireType);
      return 1;
    }
    const end = this.#length();
    const bytes = end - this.#at;
    let count = 0;
    // Of more than there can be it is enough to know that they are more.
    if (bytes > field.items.max * VARINT_BYTES_MAX) {
      count = field.items.max + 1;
      this.#at = end;
    } else for (; this.#at < end; count++) this.#scalar(field.fixedBytes);
    this.values += count;
    return count;
  }

  /** The fields of a message up to `end`; as the library does, a field may end behind it. */
  #fields(shape: MessageShape, end: number): void {
    this.#enter();
    const isList = this.#structDepth > 0 && shape.desc.typeName === LIST_VALUE;
    while (this.#at < end) {
      const tag = this.#tag();
      const field = shape.byNumber.get(tag >>> 3);
      if (field === undefined) this.#skip(shape, tag);
      else {
        this.#path.push(field);
        this.#countField();
        if (isList) this.#countStruct();
        this.#value(field, tag & 7);
        this.#path.pop();
      }
    }
    this.#leave();
  }

  #value(field: FieldShape, wireType: number): void {
    this.values += 1;
    if (field.isMap) return this.#entry(field);
    switch (field.kind) {
      case 'text':
        return this.#text(field.bytesMax);
      case 'token':
        if (!field.isList || wireType !== LENGTH_DELIMITED) return this.#scalar(field.fixedBytes);
        return this.#packed(field);
      case 'message':
        return this.#fields(field.message(), this.#boundedEnd(ITEM_BYTES_MAX));
      case 'struct':
        if (this.#structDepth === 0) this.#structValues = 0;
        this.#structDepth += 1;
        this.#fields(field.message(), this.#boundedEnd(STRUCT_BYTES_MAX));
        this.#structDepth -= 1;
    }
  }

  /** A list of numbers within an item. */
  #packed(field: FieldShape): void {
    for (const end = this.#length(); this.#at < end; this.values += 1) {
      this.#countField();
      this.#scalar(field.fixedBytes);
    }
  }

  /** One member of a map: key 1, value 2. */
  #entry(field: FieldShape): void {
    this.#countStruct();
    const { message } = field.field;
    const mapKey = field.field.fieldKind === 'map' ? field.field.mapKey : undefined;
    for (const end = this.#length(); this.#at < end;) {
      const tag = this.#tag();
      const number = tag >>> 3;
      this.#countField();
      if (number === 1 && mapKey === ScalarType.STRING) this.#text(TEXT_BYTES_MAX);
      else if (number === 2 && message !== undefined) {
        this.#fields(field.message(), this.#boundedEnd(STRUCT_BYTES_MAX));
      } else if (number === 2 && isText(field.field.scalar)) this.#text(TEXT_BYTES_MAX);
      else if (number === 2) this.#scalar(field.fixedBytes);
      else if (number === 1) this.#scalar(0);
      else this.#skip(null, tag);
    }
  }

  #countStruct(): void {
    this.#structValues += 1;
    if (this.#structValues > STRUCT_VALUES_MAX) {
      throw fieldTooLarge(this.#structField(), STRUCT_VALUES_MAX, 'values');
    }
  }

  /** Without what it is made of. */
  #structField(): string {
    return this.#path.text().replace(/(\.(fields|values|struct_value|list_value))+$/, '');
  }

  #text(bytesMax: number): void {
    const from = this.#at;
    const end = this.#length();
    if (end - from > bytesMax + VARINT_BYTES_MAX) {
      throw fieldTooLarge(this.#path.text(), bytesMax, 'bytes of text');
    }
    this.#at = end;
  }

  #scalar(fixedBytes: number): void {
    if (fixedBytes === 0) this.#varint();
    else this.#at += fixedBytes;
    if (this.#at > this.#bytes.length) throw this.#syntax();
  }

  #boundedEnd(bytesMax: number): number {
    const end = this.#length();
    if (end - this.#at <= bytesMax) return end;
    throw fieldTooLarge(this.#structField(), bytesMax, 'bytes');
  }

  /** A field that the message does not have: of these there are only some. */
  #skip(shape: MessageShape | null, tag: number): void {
    const [number, wireType] = [tag >>> 3, tag & 7];
    this.unknown += 1;
    this.values += 1;
    if (this.unknown > UNKNOWN_MAX) {
      const name = shape?.desc.typeName ?? 'the message';
      throw malformed(`${name}: unknown field number ${number}`, this.#path.text());
    }
    switch (wireType) {
      case 0:
        return this.#scalar(0);
      case 1:
        return this.#scalar(8);
      case 5:
        return this.#scalar(4);
      case LENGTH_DELIMITED:
        this.#at = this.#length();
        return;
      case START_GROUP:
        return this.#group(shape, number);
      default:
        throw this.#syntax();
    }
  }

  #group(shape: MessageShape | null, number: number): void {
    this.#enter();
    for (;;) {
      const tag = this.#tag();
      if ((tag & 7) === END_GROUP) {
        if (tag >>> 3 !== number) throw this.#syntax();
        return this.#leave();
      }
      this.#skip(shape, tag);
    }
  }

  #tag(): number {
    const from = this.#at;
    const tag = this.#varint();
    const bytes = this.#at - from;
    const isTooLong = bytes > 5 || (bytes === 5 && (this.#bytes[this.#at - 1] as number) > 0x0f);
    if (isTooLong || tag >>> 3 === 0 || (tag & 7) > 5) throw this.#syntax();
    return tag;
  }

  /** Where what follows ends, by its length. */
  #length(): number {
    const length = this.#varint();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw this.#syntax();
    return end;
  }

  /** The low 32 bits of a number of at most ten bytes. */
  #varint(): number {
    const bytes = this.#bytes;
    let at = this.#at;
    let byte = bytes[at++];
    let value = (byte ?? 0) & 0x7f;
    for (let shift = 7; byte !== undefined && byte >= 0x80; shift += 7) {
      if (shift >= 7 * VARINT_BYTES_MAX) throw this.#syntax();
      byte = bytes[at++];
      if (shift < 32) value |= ((byte ?? 0) & 0x7f) << shift;
    }
    if (byte === undefined) throw this.#syntax();
    this.#at = at;
    return value >>> 0;
  }

  #enter(): void {
    this.#path.depth += 1;
    if (this.#path.depth > DEPTH_MAX) {
      const field = this.#structField();
      throw malformed(`${field}: nested deeper than ${DEPTH_MAX} levels`, field);
    }
  }

  #leave(): void {
    this.#path.depth -= 1;
  }

  #countField(): void {
    this.#itemFields += 1;
    if (this.#itemFields > FIELDS_MAX) {
      throw fieldTooLarge(this.#structField(), FIELDS_MAX, 'fields');
    }
  }

  #isStepOver(): boolean {
    this.#fieldsSinceStep += 1;
    const isOver = this.#at - this.#steppedAt >= STEP_BYTES || this.#fieldsSinceStep >= STEP_FIELDS;
    if (!isOver) return false;
    this.#steppedAt = this.#at;
    this.#fieldsSinceStep = 0;
    return true;
  }

  #syntax(): ProtoSyntaxProblem {
    return new ProtoSyntaxProblem(`no protobuf at byte ${this.#at}`);
  }
}

function isText(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
}
