import type { Random } from './random-choice.ts';
import {
  chosenFields,
  countOf,
  type Field,
  memberName,
  type Method,
  textOf,
} from './random-fields.ts';

const NUMBERS: readonly number[] = [0, 1, -1, 0.5, -1.25, 1e300, 12345678901];
const ODD_NUMBERS: readonly number[] = [-0, Number.NaN, Infinity, -Infinity, 5e-324];
const BROKEN_UTF8: readonly string[] = [
  '\xff',
  '\xc2',
  '\xed\xa0\x80',
  '\xc0\x80',
  'a\xf4\x90\x80\x80',
];

/** Tags of google.protobuf.Value, in the order of their numbers. */
const VALUE = { null: 0x08, number: 0x11, text: 0x1a, flag: 0x20, struct: 0x2a, list: 0x32 };

/** Writes bytes of messages one into another; each varint may be longer than it must be. */
class ProtobufWriter {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  message(name: Parameters<typeof chosenFields>[1]): Buffer {
    const parts: Buffer[] = [];
    const random = this.#random;
    for (const field of chosenFields(random, name)) {
      if (random.odd()) parts.push(this.#oddField(random.oneIn(3) ? field.number : undefined));
      parts.push(...this.#field(field));
    }
    if (random.odd()) parts.push(this.#oddField());
    return Buffer.concat(parts);
  }

  #field(field: Field): Buffer[] {
    const random = this.#random;
    if (!field.isList) return [this.#single(field)];
    const count = countOf(random, field);
    const drawn = Array.from({ length: Math.min(count, 8) }, () => this.#single(field));
    return Array.from({ length: count }, (_, i) => drawn[i] ?? random.pick(drawn));
  }

  #single({ kind, number }: Field): Buffer {
    const random = this.#random;
    switch (kind) {
      case 'name':
      case 'id':
      case 'scope':
        return this.#delimited(number, this.#text(textOf(random, kind)));
      case 'op':
        return this.#varintField(number, random.odd() ? random.next(200) : 1 + random.next(2));
      case 'flag':
        return this.#varintField(number, random.odd() ? random.next(300) : 1);
      case 'time':
        return this.#delimited(number, this.#varintField(1, 1_900_000_000));
      case 'context':
        return this.#delimited(number, this.#struct(0));
      default:
        return this.#delimited(number, this.message(kind));
    }
  }

  #text(text: string): Buffer {
    if (!this.#random.odd()) return Buffer.from(text);
    const broken = Buffer.from(this.#random.pick(BROKEN_UTF8), 'latin1');
    return Buffer.concat([Buffer.from(text), broken]);
  }

  #varint(value: number): Buffer {
    const bytes: number[] = [];
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
    bytes.push(rest);
    if (this.#random.odd()) {
      const more = 1 + this.#random.next(this.#random.oneIn(4) ? 10 : 4);
      bytes.push((bytes.pop() as number) | 0x80);
      for (let i = 1; i < more; i++) bytes.push(0x80);
      bytes.push(this.#random.oneIn(6) ? 1 : 0);
    }
    return Buffer.from(bytes);
  }

  #tag(number: number, wireType: number): Buffer {
    return this.#varint(number * 8 + wireType);
  }

  #varintField(number: number, value: number): Buffer {
    return Buffer.concat([this.#tag(number, 0), this.#varint(value)]);
  }

  #delimited(number: number, bytes: Uint8Array): Buffer {
    let { length } = bytes;
    if (this.#random.odd())
      length = this.#random.pick([length + 1, length - 1, 0, 2 ** 31, 2 ** 32 - 1]);
    return Buffer.concat([this.#tag(number, 2), this.#varint(Math.max(0, length)), bytes]);
  }

  /** An unknown field, or a known one in a wire type that is not its own. */
  #oddField(known?: number): Buffer {
    const random = this.#random;
    const number = known ?? random.pick([0, 5, 10, 15, 16, 100, 2 ** 28, 2 ** 29 - 1, 2 ** 29]);
    switch (random.next(8)) {
      case 0:
        return this.#varintField(number, random.pick([0, 1, 127, 300, 2 ** 32]));
      case 1:
        return Buffer.concat([this.#tag(number, 1), Buffer.from('12345678')]);
      case 2:
        return Buffer.concat([this.#tag(number, 5), Buffer.from('1234')]);
      case 3:
        return Buffer.concat([this.#tag(number, 3), this.message('item'), this.#tag(number, 4)]);
      case 4:
        return Buffer.concat([
          this.#tag(number, 3),
          this.#varintField(1, 7),
          this.#tag(number + 1, 4),
        ]);
      case 5:
        return this.#tag(number, random.next(8));
      case 6:
        return Buffer.from([0, 0]);
      default:
        return this.#delimited(
          number,
          random.oneIn(2) ? this.#struct(3) : Buffer.from([8, 1, 150, 1]),
        );
    }
  }

  #struct(depth: number): Buffer {
    const random = this.#random;
    const seen = new Set<string>();
    const entries: Buffer[] = [];
    const count = random.oneIn(200) ? 31 + random.next(4) : random.next(4);
    for (let i = 0; i < count; i++) {
      const name = count > 5 ? `m${i}` : memberName(random);
      // The same name twice is rare.
      if (seen.has(name) && !random.oneIn(6)) continue;
      seen.add(name);
      const parts = [this.#delimited(1, this.#text(name)), this.#delimited(2, this.#value(depth))];
      if (random.odd()) random.shuffle(parts);
      if (random.odd()) parts.splice(random.next(2), 1);
      if (random.odd() || random.oneIn(80)) parts.push(this.#delimited(2, this.#value(depth)));
      entries.push(this.#delimited(1, Buffer.concat(parts)));
    }
    return Buffer.concat(entries);
  }

  /** A value within a struct; `depth`: of what holds it. */
  #value(depth: number): Buffer {
    const random = this.#random;
    const value = this.#oneValue(depth);
    if (!random.odd()) return value;
    return random.oneIn(3) ? Buffer.alloc(0) : Buffer.concat([value, this.#oneValue(depth)]);
  }

  #oneValue(depth: number): Buffer {
    const random = this.#random;
    const isDeepest = depth > 3 && !random.oneIn(8);
    switch (random.next(isDeepest ? 5 : 8)) {
      case 0:
        return Buffer.from([VALUE.null, random.odd() ? random.next(256) : 0]);
      case 1:
        return Buffer.from([VALUE.flag, random.odd() ? random.next(256) : random.next(2)]);
      case 2: {
        const bytes = Buffer.alloc(9, VALUE.number);
        bytes.writeDoubleLE(random.pick(random.oneIn(6) ? ODD_NUMBERS : NUMBERS), 1);
        return bytes;
      }
      case 3:
      case 4:
        return this.#delimited(VALUE.text >> 3, this.#text(textOf(random, 'id')));
      case 5: {
        const values = Array.from({ length: random.next(3) }, () =>
          this.#delimited(1, this.#value(depth + 1)),
        );
        return this.#delimited(VALUE.list >> 3, Buffer.concat(values));
      }
      default:
        return this.#delimited(
          VALUE.struct >> 3,
          depth > 6 ? Buffer.alloc(0) : this.#struct(depth + 1),
        );
    }
  }
}

/** The bytes of a request. */
export function protobufOf(random: Random, method: Method): Buffer {
  return new ProtobufWriter(random).message(method);
}
