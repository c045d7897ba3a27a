import { type CelValue, celType, isCelList, isCelMap, isCelUint } from '@bufbuild/cel';
import type { Expr, Expr_Call } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { signOf } from './cel-checker.ts';
import { patternFault } from './cel-pattern.ts';
import type { CelFailure } from './cel-trace.ts';
import { partsOf } from './cel-tree.ts';
import { parseAddress } from './ip-address.ts';

/** Maximum number of characters shown of a key or a part of an expression. */
const KEY_SHOWN_MAX = 64;
/** Start of the library's message for an operator that has no form for the types of its operands. */
const NO_FORM = 'found no matching overload';
const COMPARISONS: ReadonlySet<string> = new Set(['_<_', '_<=_', '_>_', '_>=_']);
const TYPE_WORDS: { readonly [name: string]: string | undefined } = {
  'google.protobuf.Timestamp': 'timestamp',
  'google.protobuf.Duration': 'duration',
  null_type: 'null',
};
/** Names of the results of conversions, for messages about a text that cannot be converted. */
const CONVERSIONS: { readonly [name: string]: string | undefined } = {
  int: 'a whole number of 64 bits',
  uint: 'a whole number of 64 bits from 0',
  double: 'a number',
  bool: 'true or false',
  timestamp: 'a timestamp like 2026-01-31T00:00:00Z',
  duration: 'a duration like 1h30m',
  ipaddress: 'an address',
};

/** Adds the article to a type: `an int`, `a list<string>`. `null` has none. */
export function withArticle(type: string): string {
  return type === 'null' ? type : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`;
}

/** Cause for which a part has no value, and its own part that is to blame. If several are, that is the whole part. */
export type CelCause = { readonly text: string; readonly blamed: Expr };

/**
 * Describes why a part of an expression has no value. Values of inputs are not shown, for they may be secrets. Shown
 * are only positions, and what the expression itself contains. `textOf` formats an expression.
 */
export function causeOf(failure: CelFailure, textOf: (expr: Expr) => string): CelCause {
  const { expr, values, error, wanted } = failure;
  const { exprKind: kind } = expr;
  if (wanted !== undefined) {
    const text = `it is ${typeOf(values[0])}, not ${wanted === 'bool' ? 'a bool' : 'a list or a map'}`;
    return { text, blamed: expr };
  }
  const message = error?.message ?? '';
  const isCall = kind.case === 'callExpr' && kind.value.function !== '_[_]';
  if (isCall && !message.startsWith(NO_FORM)) {
    const parts = partsOf(expr);
    const { text, part } = callCause(kind.value, parts.map(textOf), values);
    return { text, blamed: (part === undefined ? undefined : parts[part]) ?? expr };
  }
  return { text: causeText(failure, message, textOf), blamed: expr };
}

function causeText(
  { expr, values }: CelFailure,
  message: string,
  textOf: (expr: Expr) => string,
): string {
  const { exprKind: kind } = expr;
  switch (kind.case) {
    case 'selectExpr': {
      const key = cut(kind.value.field);
      return isCelMap(values[0]) ? `no such key: ${key}` : `${typeOf(values[0])} has no key ${key}`;
    }
    case 'callExpr':
      return kind.value.function === '_[_]'
        ? placeCause(values, partsOf(expr)[1], textOf)
        : formCause(kind.value, values);
    case 'structExpr':
      return message.startsWith('map key conflict')
        ? 'a key is there twice'
        : 'a key of a map must be a string, a whole number or a bool';
    default:
      return 'it has no value';
  }
}

function placeCause(
  [container, key]: readonly CelValue[],
  keyExpr: Expr | undefined,
  textOf: (expr: Expr) => string,
): string {
  if (isCelList(container)) {
    const position = numberOf(key);
    return position === undefined || !Number.isSafeInteger(position)
      ? `a place of a list must be a whole number, not ${typeOf(key)}`
      : `index ${position} is out of range of a list of ${container.size}`;
  }
  if (!isCelMap(container)) return `${typeOf(container)} is neither a list nor a map`;
  const isKey = typeof key === 'string' || typeof key === 'boolean' || numberOf(key) !== undefined;
  if (!isKey) return `${typeOf(key)} is no key of a map`;
  if (keyExpr?.exprKind.case === 'constExpr') return `no such key: ${cut(String(keyText(key)))}`;
  const number = numberOf(key);
  const shown = keyExpr === undefined ? '' : cut(textOf(keyExpr));
  return `no such key: ${number === undefined ? `the value of ${shown}` : number}`;
}

function keyText(key: CelValue | undefined): unknown {
  return isCelUint(key) ? key.value : key;
}

function numberOf(value: CelValue | undefined): number | undefined {
  if (isCelUint(value)) return Number(value.value);
  return typeof value === 'bigint' || typeof value === 'number' ? Number(value) : undefined;
}

/** Cause text if no form of an operator or function takes values of these types. */
function formCause({ function: name, target }: Expr_Call, values: readonly CelValue[]): string {
  const types = values.map(typeOf);
  const [first = '', second = ''] = types;
  if (COMPARISONS.has(name)) return `${first} cannot be compared with ${second}`;
  if (name === '@in') {
    const isHolder = isCelList(values[1]) || isCelMap(values[1]);
    return isHolder ? `${first} is no key of a map` : `${second} is neither a list nor a map`;
  }
  const on = target === undefined ? types : types.slice(1);
  const of = target === undefined ? '' : ` of ${first}`;
  const given = on.length === 0 ? '' : ` for ${on.join(' and ')}`;
  return `there is no ${signOf(name)}${of}${given}`;
}

type CallCause = {
  readonly text: string;
  /** Index of the operand that alone is to blame: the others could have any value. */
  readonly part?: number;
};

/** Cause if a form takes the types, but fails for the values. */
function callCause(
  { function: name }: Expr_Call,
  texts: readonly string[],
  values: readonly CelValue[],
): CallCause {
  const [a, b] = values;
  const [first = '', second = ''] = texts.map(cut);
  switch (name) {
    case '_/_':
    case '_%_':
      if (numberOf(b) === 0) return { text: 'division by zero', part: 1 };
      return { text: beyondRange(a) };
    case '_+_':
    case '_-_':
    case '_*_':
    case '-_':
      return { text: beyondRange(a) };
    case 'matches':
      return { text: `${second} is no valid pattern: ${patternCause(b)}`, part: 1 };
    case 'in_cidr':
      return typeof a === 'string' && parseAddress(a) === undefined
        ? { text: `${first} is no address`, part: 0 }
        : { text: `${second} is no network like 10.0.0.0/8`, part: 1 };
    case 'string':
    case 'goString':
      return { text: a instanceof Uint8Array ? `${first} is not UTF-8` : beyondRange(a) };
    default:
      if (!name.startsWith('get')) return { text: conversionCause(name, first, a) };
      return { text: 'a time zone is UTC or an offset like +02:00', part: 1 };
  }
}

function conversionCause(name: string, text: string, value: CelValue | undefined): string {
  const wanted = CONVERSIONS[name];
  if (wanted === undefined) return 'it has no value';
  return typeof value === 'string'
    ? `${text} is not ${wanted}`
    : `${text} is beyond the range of ${withArticle(name)}`;
}

/** Cause text for arithmetic whose result is out of range. */
function beyondRange(value: CelValue | undefined): string {
  return numberOf(value) === undefined
    ? 'the result is beyond the range of timestamps and durations'
    : 'integer overflow';
}

/** Problem of a pattern, as the library or our limits report it, without the quoted piece of the pattern. */
function patternCause(pattern: CelValue | undefined): string {
  const fault = typeof pattern === 'string' ? patternFault(pattern) : undefined;
  return (fault ?? 'it is not valid').replace(/^error parsing regexp: /, '').replace(/: `.*$/s, '');
}

/** Type of a value, with its article. Numbers of an input of type `any` are doubles. */
function typeOf(value: CelValue | undefined): string {
  if (value === undefined) return 'nothing';
  const { name } = celType(value);
  return withArticle(TYPE_WORDS[name] ?? name);
}

function cut(text: string): string {
  return shortened(text, KEY_SHOWN_MAX);
}

/** Shortens a text to `unitsMax` UTF-16 units, with `…` where something was cut off. */
export function shortened(text: string, unitsMax: number): string {
  return text.length <= unitsMax ? text : `${text.slice(0, unitsMax - 1).toWellFormed()}…`;
}
