import fc from 'fast-check';

/** Parameters of the generated conditions; `g` and `h` are lists. */
export const PARAMETERS = {
  a: 'int',
  b: 'int',
  s: 'string',
  u: 'string',
  p: 'bool',
  q: 'bool',
  g: 'list<string>',
  h: 'list<int>',
} as const;

/** A generated expression: how it is written, and its parts. */
export type Term = {
  readonly op: string;
  readonly parts: readonly Term[];
  /** Of a literal or a name. */
  readonly value: unknown;
};

/** What could not be decided: any error, of whatever kind. */
export const ERROR = Symbol('error');
export type ReferenceResult = bigint | string | boolean | readonly unknown[] | typeof ERROR;
export type ReferenceInputs = { readonly [name: string]: unknown };

const term = (op: string, parts: readonly Term[] = [], value?: unknown): Term => ({
  op,
  parts,
  value,
});
const name = (text: string): Term => term('name', [], text);
const NUMBERS = [0n, 1n, 2n, 3n, 7n];
const TEXTS = ['', 'a', 'b', 'ab'];

/** Expressions that are bool, with names of PARAMETERS and of the variables of macros. */
export const terms: fc.Arbitrary<Term> = fc.letrec<{ bool: Term; int: Term; text: Term }>(
  (tie) => ({
    bool: fc.oneof(
      { maxDepth: 5, depthSize: 'medium' },
      fc.constantFrom(name('p'), name('q'), term('literal', [], true), term('literal', [], false)),
      fc.tuple(fc.constantFrom('&&', '||'), tie('bool'), tie('bool')).map(binary),
      fc.tuple(fc.constantFrom('&&', '||'), tie('bool'), tie('bool')).map(binary),
      tie('bool').map((one) => term('!', [one])),
      fc.tuple(tie('bool'), tie('bool'), tie('bool')).map((parts) => term('?:', parts)),
      fc
        .tuple(fc.constantFrom('==', '!=', '<', '<=', '>', '>='), tie('int'), tie('int'))
        .map(binary),
      fc.tuple(fc.constantFrom('==', '!=', '<', '>='), tie('text'), tie('text')).map(binary),
      fc.tuple(fc.constantFrom('startsWith', 'contains'), tie('text'), tie('text')).map(binary),
      tie('text').map((one) => term('in', [one, name('g')])),
      tie('int').map((one) => term('in', [one, name('h')])),
      fc
        .tuple(fc.constantFrom('exists', 'all', 'exists_one'), tie('text'))
        .map(([op, text]) => term(op, [name('g'), term('==', [name('i'), text])])),
      fc
        .tuple(fc.constantFrom('exists', 'all', 'exists_one'), tie('int'))
        .map(([op, int]) => term(op, [name('h'), term('<', [name('j'), int])])),
    ),
    int: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom(name('a'), name('b')),
      fc.constantFrom(...NUMBERS.map((value) => term('literal', [], value))),
      fc.tuple(fc.constantFrom('+', '-', '*', '/', '%'), tie('int'), tie('int')).map(binary),
      tie('text').map((one) => term('size', [one])),
      tie('int').map((one) => term('at', [name('h'), one])),
      tie('int').map((one) => term('filtered', [name('h'), term('>', [name('j'), one])])),
    ),
    text: fc.oneof(
      { maxDepth: 2, depthSize: 'small' },
      fc.constantFrom(name('s'), name('u')),
      fc.constantFrom(...TEXTS.map((value) => term('literal', [], value))),
      fc.tuple(fc.constant('+'), tie('text'), tie('text')).map(binary),
    ),
  }),
).bool;

/** Values of parameters: of their type, of another one, or none. */
export const inputs: fc.Arbitrary<ReferenceInputs> = fc.record(
  {
    a: fc.oneof(fc.integer({ min: -2, max: 4 }), fc.constantFrom('3', 'x', 1.5, null, 2 ** 53)),
    b: fc.integer({ min: -2, max: 4 }),
    s: fc.constantFrom('', 'a', 'ab', 'b', 1),
    u: fc.constantFrom('a', 'b'),
    p: fc.constantFrom(true, false, 'true'),
    q: fc.boolean(),
    g: fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 }),
    h: fc.oneof(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }), fc.constant([1, 'x'])),
  },
  { requiredKeys: [] },
);

function binary([op, left, right]: readonly [string, Term, Term]): Term {
  return term(op, [left, right]);
}

/** The expression in CEL. */
export function celOf({ op, parts, value }: Term): string {
  const [x, y, z] = parts.map(celOf);
  switch (op) {
    case 'name':
      return String(value);
    case 'literal':
      return typeof value === 'bigint' ? String(value) : JSON.stringify(value);
    case '!':
      return `!(${x})`;
    case '?:':
      return `(${x} ? ${y} : ${z})`;
    case 'startsWith':
    case 'contains':
      return `(${x}).${op}(${y})`;
    case 'size':
      return `size(${x})`;
    case 'at':
      return `${x}[${y}]`;
    case 'filtered':
      return `size(${x}.filter(j, ${y}))`;
    case 'exists':
    case 'all':
    case 'exists_one':
      return `${x}.${op}(${x === 'g' ? 'i' : 'j'}, ${y})`;
    default:
      return `(${x} ${op} ${y})`;
  }
}

/** A JSON value as the declared type makes it; ERROR where it is no such value. */
function typed(parameter: string, json: unknown): ReferenceResult {
  const isInt = (one: unknown): boolean =>
    Number.isSafeInteger(one) || (typeof one === 'string' && /^-?\d+$/.test(one));
  switch (parameter) {
    case 'a':
    case 'b':
      return isInt(json) ? BigInt(json as number) : ERROR;
    case 's':
    case 'u':
      return typeof json === 'string' ? json : ERROR;
    case 'p':
    case 'q':
      return typeof json === 'boolean' ? json : ERROR;
    case 'g':
      return (json as unknown[]).every((one) => typeof one === 'string')
        ? (json as string[])
        : ERROR;
    default:
      return (json as unknown[]).every(isInt) ? (json as number[]).map(BigInt) : ERROR;
  }
}

/** Whether a tuple may be given these parameters. */
export function areTyped(params: ReferenceInputs): boolean {
  return Object.entries(params).every(([parameter, json]) => typed(parameter, json) !== ERROR);
}

/**
 * What an expression comes to, in the most obvious way: CEL's rules for errors, where `&&` and `||` are
 * decided by one side if that is enough, and everything else is an error when a part of it is.
 */
export function referenceResult(
  { op, parts, value }: Term,
  params: ReferenceInputs,
  context: ReferenceInputs,
  variables: ReferenceInputs = {},
): ReferenceResult {
  const of = (part: number, more: ReferenceInputs = {}): ReferenceResult =>
    referenceResult(parts[part] as Term, params, context, { ...variables, ...more });
  switch (op) {
    case 'literal':
      return value as ReferenceResult;
    case 'name': {
      const key = String(value);
      if (Object.hasOwn(variables, key)) return variables[key] as ReferenceResult;
      const source = Object.hasOwn(params, key) ? params : context;
      return Object.hasOwn(source, key) ? typed(key, source[key]) : ERROR;
    }
    case '&&':
    case '||': {
      const ending = op === '||';
      const sides = [of(0), of(1)];
      if (sides.includes(ending)) return ending;
      return sides.includes(ERROR) ? ERROR : !ending;
    }
    case '!':
      return of(0) === ERROR ? ERROR : !(of(0) as boolean);
    case '?:':
      return of(0) === ERROR ? ERROR : of(of(0) === true ? 1 : 2);
    case 'exists':
    case 'all':
    case 'exists_one':
    case 'filtered':
      return overList(op, of(0), (item) => of(1, { i: item, j: item }));
    default: {
      const [x, y] = parts.map((_, index) => of(index));
      return x === ERROR || y === ERROR ? ERROR : operation(op, x, y);
    }
  }
}

function overList(
  op: string,
  list: ReferenceResult,
  holds: (item: unknown) => ReferenceResult,
): ReferenceResult {
  if (list === ERROR) return ERROR;
  const found = (list as readonly unknown[]).map(holds);
  if (op === 'exists' || op === 'all') {
    const ending = op === 'exists';
    if (found.includes(ending)) return ending;
    return found.includes(ERROR) ? ERROR : !ending;
  }
  if (found.includes(ERROR)) return ERROR;
  const count = found.filter((one) => one === true).length;
  return op === 'exists_one' ? count === 1 : BigInt(count);
}

const INT_MAX = 2n ** 63n;

function operation(op: string, x: unknown, y: unknown): ReferenceResult {
  const [n, m] = [x as bigint, y as bigint];
  switch (op) {
    case '==':
      return x === y;
    case '!=':
      return x !== y;
    case '<':
      return n < m;
    case '<=':
      return n <= m;
    case '>':
      return n > m;
    case '>=':
      return n >= m;
    case 'in':
      return (y as readonly unknown[]).includes(x);
    case 'startsWith':
      return String(x).startsWith(String(y));
    case 'contains':
      return String(x).includes(String(y));
    case 'size':
      return BigInt(String(x).length);
    case 'at': {
      const item = (x as readonly unknown[])[Number(y)];
      return item === undefined ? ERROR : (item as bigint);
    }
    case '+':
      return typeof x === 'string' ? x + String(y) : inRange(n + m);
    case '-':
      return inRange(n - m);
    case '*':
      return inRange(n * m);
    case '/':
      return m === 0n ? ERROR : inRange(n / m);
    case '%':
      return m === 0n ? ERROR : n % m;
    default:
      throw new Error(`no operation ${op}`);
  }
}

function inRange(value: bigint): ReferenceResult {
  return value >= -INT_MAX && value < INT_MAX ? value : ERROR;
}
