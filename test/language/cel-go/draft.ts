/** A condition as OpenFGA declares it, with the context that it is asked in. */
export type CelQuestion = {
  /** What it is about: a group of the generator. */
  readonly topic: string;
  readonly parameters: { readonly [name: string]: string };
  readonly expression: string;
  readonly context: { readonly [name: string]: unknown };
};

/** Draws from a seed, the same each time: mulberry32. */
export class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number from 0 below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T;
  }

  chance(probability: number): boolean {
    return this.below(1_000_000) < probability * 1_000_000;
  }

  digits(count: number): string {
    return Array.from({ length: count }, () => String(this.below(10))).join('');
  }
}

/** An expression under way, with the parameters that it has asked for. */
export class Draft {
  readonly draw: Draw;
  readonly #parameters: Record<string, string> = {};
  readonly #context: Record<string, unknown> = {};

  constructor(draw: Draw) {
    this.draw = draw;
  }

  /** Names a new parameter of a type, with its value. */
  parameter(type: string, json: unknown): string {
    const name = `p${Object.keys(this.#parameters).length}`;
    this.#parameters[name] = type;
    this.#context[name] = json;
    return name;
  }

  /** Text as a parameter or a literal. */
  text(text: string): string {
    return this.draw.chance(0.5) ? this.parameter('string', text) : quoted(text);
  }

  question(topic: string, expression: string): CelQuestion {
    const [parameters, context] = [{ ...this.#parameters }, { ...this.#context }];
    return { topic, parameters, expression, context };
  }
}

/** A literal of CEL that says `text`. */
export function quoted(text: string): string {
  const escaped = text.replace(/[\\"]/g, (one) => `\\${one}`);
  return `"${escaped.replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r')}"`;
}

/** What may tell one value of a text from another: an equality with a plausible one, or a part of it. */
export function askText(draw: Draw, expression: string, plausible: readonly string[]): string {
  const text = draw.pick(plausible);
  const characters = Array.from(text);
  const start = characters.slice(0, 1 + draw.below(Math.max(1, characters.length))).join('');
  const end = characters.slice(draw.below(Math.max(1, characters.length))).join('');
  return draw.pick([
    `${expression} == ${quoted(text)}`,
    `${expression} == ${quoted(text)}`,
    `${expression} == ${quoted(text)}`,
    `size(${expression}) == ${characters.length}`,
    `${expression}.startsWith(${quoted(start)})`,
    `${expression}.endsWith(${quoted(end)})`,
    `${expression} in [${plausible.map(quoted).join(', ')}]`,
    `${expression} < ${quoted(text)}`,
  ]);
}

/** The same of a number: `==` with a plausible one, or an order. */
export function askNumber(draw: Draw, expression: string, plausible: readonly string[]): string {
  const number = draw.pick(plausible);
  return draw.pick([
    `${expression} == ${number}`,
    `${expression} == ${number}`,
    `${expression} == ${number}`,
    `${expression} <= ${number}`,
    `${expression} > ${number}`,
    `string(${expression}) == ${quoted(number.replace(/u$/, ''))}`,
  ]);
}
