import type { Expr, Expr_Call } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import type { ConditionType, ScalarKind } from '../condition-type.ts';
import { CelFault, typesOfNodes } from './cel-checker.ts';
import { parseExpression, placeOf } from './cel-program.ts';

/** A call that cel-go reads differently from CEL's own suite. */
export type PeerReading = {
  /** Line and column, both from 1, in UTF-16 units, as in a problem of the expression. */
  readonly line: number;
  readonly column: number;
  /** Name of the function or method, as written. */
  readonly name: string;
  /** Name that means here what the name means in cel-go; undefined if only the evaluation could decide. */
  readonly replacement: string | undefined;
  /** Description of the difference. */
  readonly difference: string;
  /** Offset of the name in the expression. */
  readonly at: number;
};

/** Kinds of values for which cel-go reads a function differently, and the name of cel-go's function here. */
type Otherwise = {
  readonly kinds: readonly ScalarKind[];
  readonly replacement: string;
  readonly difference: string;
  /** Whether `replacement` takes a value of any type. */
  readonly isDynamic: boolean;
};

const FUNCTIONS: { readonly [name: string]: Otherwise | undefined } = {
  string: {
    kinds: ['double', 'timestamp', 'duration'],
    replacement: 'goString',
    difference:
      'cel-go writes doubles as 1e+06, timestamps at their own offset, and durations as 1.5s',
    isDynamic: true,
  },
  int: {
    kinds: ['duration'],
    replacement: 'goInt',
    difference: 'cel-go counts the nanoseconds of a duration, not its seconds',
    isDynamic: false,
  },
};
const METHODS: { readonly [name: string]: Otherwise | undefined } = {
  getMilliseconds: {
    kinds: ['duration'],
    replacement: 'goMilliseconds',
    difference:
      'cel-go counts all milliseconds of a duration: 90500 of 1m30.5s, which are 500 here',
    isDynamic: false,
  },
};
/** Names of these functions. An expression without any of them need not be parsed. */
const NAMES = new RegExp(
  `\\b(?:${[...Object.keys(FUNCTIONS), ...Object.keys(METHODS)].join('|')})\\b`,
);
/** Text allowed between the place of a call and its name: the dot of a method, blanks, comments. */
const BEFORE_NAME = /(?:[.\s]|\/\/[^\n]*(?:\n|$))*/y;

/**
 * Calls of an expression that cel-go reads differently from CEL's own suite, in the order of the text. Describes cel-go
 * 0.31 (OpenFGA 1.22.1, SpiceDB 1.56.2). Empty if the expression over `parameters` is not valid. O(length).
 */
export function peerReadings(
  source: string,
  parameters: ReadonlyMap<string, ConditionType>,
): readonly PeerReading[] {
  if (!NAMES.test(source)) return [];
  const parsed = parsedOf(source);
  const types = parsed?.expr === undefined ? undefined : typesIn(parsed.expr, parameters);
  if (types === undefined) return [];
  const hasDurations = [...types.values()].some(({ kind }) => kind === 'duration');
  const found = new Map<number, PeerReading>();
  for (const [expr] of types) {
    if (expr.exprKind.case !== 'callExpr') continue;
    const call = expr.exprKind.value;
    const otherwise = otherwiseOf(call);
    const kind = types.get((call.target ?? call.args[0]) as Expr)?.kind as ScalarKind;
    if (otherwise === undefined || !isReadOtherwise(otherwise, kind, hasDurations)) continue;
    const start = parsed?.sourceInfo?.positions[String(expr.id)] ?? 0;
    const at = nameOffset(source, start);
    const isWritten = source.startsWith(call.function, at);
    const isRewritten = isWritten && (kind !== 'any' || otherwise.isDynamic);
    found.set(at, {
      ...placeOf(source, parsed?.sourceInfo, expr.id),
      name: call.function,
      replacement: isRewritten ? otherwise.replacement : undefined,
      difference: otherwise.difference,
      at,
    });
  }
  return [...found.values()].toSorted((a, b) => a.at - b.at);
}

/** Rewrites an expression: each reading gets the name that means the same here. O(length). */
export function asPeersRead(source: string, readings: readonly PeerReading[]): string {
  return readings.reduceRight((text, { at, name, replacement = name }) => {
    return text.slice(0, at) + replacement + text.slice(at + name.length);
  }, source);
}

/** Parses an expression; undefined if it has syntax errors, which its compiler reports. */
function parsedOf(source: string): ReturnType<typeof parseExpression> | undefined {
  try {
    return parseExpression(source);
  } catch {
    return undefined;
  }
}

function typesIn(
  expr: Expr,
  parameters: ReadonlyMap<string, ConditionType>,
): ReadonlyMap<Expr, ConditionType> | undefined {
  try {
    return typesOfNodes(expr, parameters);
  } catch (error) {
    if (!(error instanceof CelFault)) throw error;
    return undefined;
  }
}

function otherwiseOf({ function: name, target, args }: Expr_Call): Otherwise | undefined {
  const [known, operands] = target === undefined ? [FUNCTIONS, 1] : [METHODS, 0];
  return args.length === operands && Object.hasOwn(known, name) ? known[name] : undefined;
}

/**
 * Whether cel-go reads a value of this kind differently. A value of type `any` can be a duration only where the
 * expression itself has durations.
 */
function isReadOtherwise(
  { kinds, isDynamic }: Otherwise,
  kind: ScalarKind,
  hasDurations: boolean,
): boolean {
  return kinds.includes(kind) || (kind === 'any' && (isDynamic || hasDurations));
}

function nameOffset(source: string, start: number): number {
  BEFORE_NAME.lastIndex = start;
  return start + (BEFORE_NAME.exec(source)?.[0].length ?? 0);
}
