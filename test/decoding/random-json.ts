import type { Random } from './random-choice.ts';
import {
  chosenFields,
  countOf,
  type Field,
  memberName,
  type Method,
  textOf,
} from './random-fields.ts';

type Member = readonly [name: string, value: string];

/** What stands where something else belongs; some is no JSON. */
const WRONG: readonly string[] = [
  ['null', 'null', 'null', 'true', 'false', '0', '1', '-0', '1e400', '{}', '[]', '""', '"x"'],
  ['[null]', '[[]]', '[{}]', '{"a":[1,{"b":"]}"}]}', '["x"]', '{"namespace":"doc"}'],
  ['nul', 'NaN', '01', "'x'", '', ',', '"\\x"', '"\n"', '"\\ud800"', 'undefined'],
].flat();
const NUMBERS: readonly string[] = ['0', '1', '-1', '0.5', '-1.25', '1234567890', '0.0', '12.340'];
const ODD_NUMBERS: readonly string[] = [
  ['-0', '-0', '-0.0', '1e400', '-1e400', '1e400', '1e-400', '1E3', '5e-324', '1e+2', '0e', '-'],
  ['9007199254740993', '12345678901234567890123456', '0.1234567890123456789012345', '1e', '0x10'],
  ['123456789012345678901234', '1234567890123456789012345', '0E1', '01', '-01', '1.', '.5', '+1'],
].flat();
const UNKNOWN: readonly string[] = [
  ['other', '__proto__', 'constructor', 'item', 'Items', 'items ', 'projectid', 'project-id'],
  ['tenant_Id', 'toString', '', '1', 'n'.repeat(40), 'käse'],
].flat();

/** Writes one body in one manner: spellings, space and how often strings are escaped are those of a body. */
class JsonWriter {
  readonly #random: Random;
  readonly #spelling: number;
  readonly #spaces: readonly string[];

  constructor(random: Random) {
    this.#random = random;
    this.#spelling = random.next(5);
    this.#spaces = random.pick([[''], [''], [''], ['', ' '], ['', ' ', '\n', '\t', '\r\n  ']]);
  }

  space(): string {
    if (this.#random.odd()) return this.#random.pick([' ', '\t \n', '\u00a0', '\f', '\u{feff}']);
    return this.#spaces.length === 1 ? '' : this.#random.pick(this.#spaces);
  }

  message(name: Parameters<typeof chosenFields>[1]): string {
    const members = chosenFields(this.#random, name).map((field): Member => [
      this.#name(field),
      this.#value(field),
    ]);
    if (this.#random.odd()) this.#addOddMember(members);
    return this.#object(members);
  }

  #addOddMember(members: Member[]): void {
    const random = this.#random;
    const at = random.next(members.length + 1);
    const [name, value] = random.pick(members.length === 0 ? [['"x"', '1'] as Member] : members);
    const other = random.pick([name, value, this.#context(3)]);
    const unknown = JSON.stringify(random.pick(UNKNOWN));
    members.splice(at, 0, random.oneIn(2) ? [name, other] : [unknown, other]);
  }

  #object(members: readonly Member[]): string {
    const texts = members.map(
      ([name, value]) => `${this.space()}${name}${this.space()}:${this.space()}${value}`,
    );
    const random = this.#random;
    // A comma too many, and what is no comma.
    const end = random.odd() && random.oneIn(3) ? ',' : '';
    const comma = random.odd() && random.oneIn(3) ? random.pick([';', ',,', '']) : ',';
    return `{${texts.join(`${this.space()}${comma}`)}${end}${this.space()}}`;
  }

  #list(items: readonly string[]): string {
    const texts = items.map((item) => `${this.space()}${item}${this.space()}`);
    return `[${texts.join(',')}${this.space()}]`;
  }

  #name({ name, camel }: Field): string {
    const isCamel = this.#spelling === 4 ? this.#random.oneIn(2) : this.#spelling > 1;
    return this.#random.odd()
      ? this.#escaped(isCamel ? camel : name)
      : `"${isCamel ? camel : name}"`;
  }

  #value(field: Field): string {
    const random = this.#random;
    if (random.odd()) return random.pick(WRONG);
    if (!field.isList) return this.#single(field);
    const count = countOf(random, field);
    // Long lists repeat some items.
    const drawn = Array.from({ length: Math.min(count, 8) }, () => this.#single(field));
    return this.#list(Array.from({ length: count }, (_, i) => drawn[i] ?? random.pick(drawn)));
  }

  #single({ kind }: Field): string {
    const random = this.#random;
    switch (kind) {
      case 'name':
      case 'id':
      case 'scope':
        return this.#string(textOf(random, kind));
      case 'op':
        if (random.odd()) return random.pick(['"OP_UNSPECIFIED"', '"OP_X"', '1', '2', '9', '"1"']);
        return random.pick(['"OP_INSERT"', '"OP_DELETE"']);
      case 'flag':
        return random.odd() ? random.pick(['false', '"true"', '1']) : 'true';
      case 'time':
        return random.pick(['"2030-01-01T00:00:00Z"', '"2030-01-01T00:00:00.5+01:00"', 'null']);
      case 'context':
        return this.#contextObject(0);
      default:
        return this.message(kind);
    }
  }

  #string(text: string): string {
    return this.#random.odd() ? this.#escaped(text) : JSON.stringify(text);
  }

  /** Some of its characters, or all, as escapes. */
  #escaped(text: string): string {
    const share = this.#random.pick([1, 3, 8]);
    const units = text.split('').map((unit) => {
      if (unit === '/' && this.#random.oneIn(2)) return '\\/';
      if (!this.#random.oneIn(share)) return JSON.stringify(unit).slice(1, -1);
      const code = unit.charCodeAt(0).toString(16).padStart(4, '0');
      return `\\u${this.#random.oneIn(2) ? code : code.toUpperCase()}`;
    });
    return `"${units.join('')}"`;
  }

  #contextObject(depth: number): string {
    const random = this.#random;
    const count = random.oneIn(200) ? 31 + random.next(4) : random.next(4);
    const members: Member[] = [];
    for (let i = 0; i < count; i++) {
      const name = count > 5 ? `m${i}` : memberName(random);
      // The same name twice is rare.
      if (members.some(([other]) => other === JSON.stringify(name)) && !random.oneIn(6)) continue;
      members.push([this.#string(name), this.#context(depth)]);
    }
    return this.#object(members);
  }

  /** A value within a context; `depth`: of what holds it. */
  #context(depth: number): string {
    const random = this.#random;
    if (random.odd()) return random.pick(WRONG);
    const isDeepest = depth > 3 && !random.oneIn(8);
    switch (random.next(isDeepest ? 5 : 8)) {
      case 0:
        return random.pick(['null', 'true', 'false']);
      case 1:
      case 2:
        return random.pick(random.oneIn(6) ? ODD_NUMBERS : NUMBERS);
      case 3:
      case 4:
        return this.#string(
          textOf(random, random.oneIn(200) ? 'name' : 'id').repeat(random.oneIn(500) ? 65 : 1),
        );
      case 5:
        return this.#list(Array.from({ length: random.next(3) }, () => this.#context(depth + 1)));
      default:
        return depth > 6 ? '{}' : this.#contextObject(depth + 1);
    }
  }
}

/** The text of a request. */
export function jsonOf(random: Random, method: Method): string {
  const writer = new JsonWriter(random);
  const mark = random.oneIn(80) ? '\u{feff}' : '';
  return `${mark}${writer.space()}${writer.message(method)}${writer.space()}`;
}
