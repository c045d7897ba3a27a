import {
  celEnv,
  celError,
  type CelEnv,
  type CelResult,
  type CelValue,
  isCelError,
  isCelList,
  isCelMap,
  parse,
  plan,
} from '@bufbuild/cel';
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { withoutStacks } from '../../shared/app-error.ts';
import type { ConditionType } from '../condition-type.ts';
import { CelFault, type CheckedExpression, checkExpression } from './cel-checker.ts';
import { gatehouseFunctions, INDEX, RANGE, TICK } from './cel-functions.ts';
import type { CostMeter } from './cel-meter.ts';
import { patternStates } from './cel-pattern.ts';
import { withCosts } from './cel-tree.ts';

/** Values of the parameters that an expression names, by name. A parameter without a value has an error. */
export type CelBindings = { readonly [parameter: string]: CelResult };

/** A checked and planned expression. */
export type CelProgram = CheckedExpression & {
  /**
   * Evaluates the expression to a value or an error. Cost is counted before the work is done. Once `meter` is
   * exhausted, no more work begins and the result is meaningless.
   */
  readonly evaluate: (bindings: CelBindings, meter: CostMeter) => CelResult;
};

/** Error in an expression, with its place in the source. */
export type CelProblem = {
  readonly line: number;
  readonly column: number;
  readonly message: string;
};

const EXHAUSTED = celError('the evaluation costs too much');
const UNPAID: Pick<CostMeter, 'spend' | 'left'> = { spend: () => false, left: 0 };
/** Meter of the current evaluation. Evaluations run one at a time, and none is interrupted. */
let meterNow: Pick<CostMeter, 'spend' | 'left'> = UNPAID;

/** Additional cost of a call that results in an error. */
const ERROR_COST = 20;
/** Cost of parsing an address. */
const ADDRESS_COST = { v4: 8, v6: 48 };
/** Number of characters that one unit pays for where text is copied or compared. */
const CHARACTERS_PER_UNIT = 16;
/** Length beyond which a longer substring costs nothing more: the search uses its first characters. */
const NEEDLE_MAX = 256;
/** Number of pattern states that one unit pays for, per character of text. */
const STATES_PER_UNIT = 8;

/** Parses an expression. Errors: throws those of the library. O(length). */
export function parseExpression(source: string): ReturnType<typeof parse> {
  // The library ends a comment only at a line feed, which a comment at the end of the text lacks.
  return parse(`${source}\n`);
}

/**
 * Checks and plans an expression. Returns a problem if the expression is not valid. Cost: O(length); callers keep the
 * result, since this takes a millisecond and more.
 */
export function compileExpression(
  source: string,
  parameters: ReadonlyMap<string, ConditionType>,
): CelProgram | CelProblem {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parseExpression(source);
  } catch (error) {
    return syntaxProblem(error);
  }
  const { expr, sourceInfo } = parsed;
  if (expr === undefined) return { line: 1, column: 1, message: 'is empty' };
  try {
    const checked = checkExpression(expr, parameters);
    return { ...checked, evaluate: planExpression(expr, checked.nodes) };
  } catch (error) {
    if (!(error instanceof CelFault)) throw error;
    return { ...placeOf(source, sourceInfo, error.exprId), message: error.message };
  }
}

/**
 * Plans the evaluation of a checked expression with `nodes` nodes. An unknown name is an error only when it is
 * evaluated. O(nodes).
 */
export function planExpression(expr: Expr, nodes: number): CelProgram['evaluate'] {
  const run = plan(environment(), withCosts(expr)) as (bindings: CelBindings) => CelResult;
  return (bindings, meter) => {
    if (!meter.spend(nodes)) return EXHAUSTED;
    const before = meterNow;
    meterNow = meter;
    try {
      return withoutStacks(() => run(bindings));
    } finally {
      meterNow = before;
    }
  };
}

/** Whether `compileExpression` found a problem. */
export function isProblem(compiled: CelProgram | CelProblem): compiled is CelProblem {
  return 'message' in compiled;
}

function syntaxProblem(error: unknown): CelProblem {
  // The text is nested deeper than the parser can recurse.
  if (error instanceof RangeError) return { line: 1, column: 1, message: 'is nested too deeply' };
  if (!(error instanceof Error)) throw error;
  const { location, rawMessage } = error as {
    readonly location?: { readonly start: { readonly line: number; readonly column: number } };
    readonly rawMessage?: string;
  };
  const { line = 1, column = 1 } = location?.start ?? {};
  return { line, column, message: `syntax error: ${rawMessage ?? error.message}` };
}

/**
 * Line and column of a node of a parsed source, in UTF-16 units, both from 1. The place of an operator is its sign, of
 * a method its dot, of anything else its start.
 */
export function placeOf(
  source: string,
  sourceInfo: { readonly positions: { readonly [id: string]: number } } | undefined,
  id: bigint,
): { readonly line: number; readonly column: number } {
  // The parser places an operator at the space before it.
  const position = sourceInfo?.positions[String(id)] ?? 0;
  const offset = position + (/^\s*/.exec(source.slice(position))?.[0].length ?? 0);
  const before = source.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

let known: CelEnv | undefined;

/** Functions of the library and our own. Each call is paid for before it runs. Created at first use. */
function environment(): CelEnv {
  if (known !== undefined) return known;
  const env = celEnv({ funcs: gatehouseFunctions() });
  const groups = new Map<string, FuncGroup>();
  const find = (name: string): FuncGroup | undefined => {
    const group = env.funcs.find(name);
    if (group === undefined) return undefined;
    let paid = groups.get(name);
    if (paid === undefined) groups.set(name, (paid = withCost(group)));
    return paid;
  };
  const { namespace, registry, variables } = env;
  const funcs = { find, [Symbol.iterator]: () => env.funcs[Symbol.iterator]() };
  // The planner needs nothing else from its environment, and the library lets no other code construct one.
  known = { namespace, registry, variables, funcs } as unknown as CelEnv;
  return known;
}

type FuncGroup = NonNullable<ReturnType<CelEnv['funcs']['find']>>;

function withCost(group: FuncGroup): FuncGroup {
  const { name } = group;
  const costOf = COSTS[name];
  const call = (
    id: number,
    target: CelValue | undefined,
    args: CelValue[],
  ): CelResult | undefined => {
    try {
      const units = costOf === undefined ? 0 : costOf(target, args);
      // A comprehension ends at the first iteration that is not paid for.
      if (units > 0 && !meterNow.spend(units)) return name === TICK ? false : EXHAUSTED;
      const result = group.call(id, target, args);
      if (isCelError(result)) meterNow.spend(ERROR_COST);
      return result;
    } catch (error) {
      return celError(error, id);
    }
  };
  return { name, call, [Symbol.iterator]: () => group[Symbol.iterator]() };
}

type Cost = (target: CelValue | undefined, args: readonly CelValue[]) => number;

const ofTexts: Cost = (target, args) =>
  args.reduce<number>((sum, arg) => sum + textCost(arg), textCost(target));
const ofOperands: Cost = (_, [a, b]) => Math.min(depthCost(a), depthCost(b));

/** Costs of calls that depend on their arguments, in addition to the cost of the operator. */
const COSTS: { readonly [name: string]: Cost | undefined } = {
  '_==_': ofOperands,
  '_!=_': ofOperands,
  '_<_': ofTexts,
  '_<=_': ofTexts,
  '_>_': ofTexts,
  '_>=_': ofTexts,
  '_+_': (_, args) => args.reduce<number>((sum, arg) => sum + textCost(arg) + sizeCost(arg), 0),
  '@in': (_, [needle, range]) =>
    isCelMap(range) ? keyCost(needle, range) : sizeCost(range) * (1 + depthCost(needle)),
  size: (target, args) => 4 * textCost(target ?? args[0]),
  contains: (target, [needle]) =>
    textCost(target) *
    Math.max(1, Math.ceil(Math.min(lengthOf(needle), NEEDLE_MAX) / CHARACTERS_PER_UNIT)),
  startsWith: (_, args) => textCost(args[0]),
  endsWith: (_, args) => textCost(args[0]),
  matches: (target, args) => matchCost(target ?? args[0], args[target === undefined ? 1 : 0]),
  in_cidr: (target, [network]) => addressCost(target) + addressCost(network),
  ipaddress: (_, [text]) => addressCost(text),
  string: ofTexts,
  goString: ofTexts,
  bytes: ofTexts,
  timestamp: (_, args) => 10 + textCost(args[0]),
  duration: (_, args) => 10 + textCost(args[0]),
  [INDEX]: (_, [container, key]) => (isCelMap(container) ? keyCost(key, container) : 0),
  [RANGE]: (_, [range]) => sizeCost(range),
  [TICK]: (_, [units]) => Number(units),
};

function lengthOf(value: CelValue | undefined): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0;
}

function textCost(value: CelValue | undefined): number {
  return Math.ceil(lengthOf(value) / CHARACTERS_PER_UNIT);
}

function addressCost(value: CelValue | undefined): number {
  if (typeof value !== 'string') return 0;
  return textCost(value) + (value.includes(':') ? ADDRESS_COST.v6 : ADDRESS_COST.v4);
}

function sizeCost(value: CelValue | undefined): number {
  return isCelList(value) || isCelMap(value) ? value.size : 0;
}

/** Cost of finding a key. Numbers are compared with all keys, since an int equals a uint. */
function keyCost(key: CelValue | undefined, map: { readonly size: number }): number {
  return typeof key === 'string' || typeof key === 'boolean' ? textCost(key) : map.size;
}

function matchCost(target: CelValue | undefined, pattern: CelValue | undefined): number {
  if (typeof target !== 'string' || typeof pattern !== 'string') return 0;
  const states = patternStates(pattern);
  return Math.ceil((target.length + 8) * (1 + states / STATES_PER_UNIT));
}

/** Cost of visiting all parts of a value, counted no further than what is left to spend. */
function depthCost(value: CelValue | undefined): number {
  if (!isCelList(value) && !isCelMap(value)) return textCost(value);
  const most = meterNow.left + 1;
  const open: (CelValue | undefined)[] = [value];
  let cost = 0;
  while (open.length > 0 && cost <= most) {
    const next = open.pop();
    if (!isCelList(next) && !isCelMap(next)) {
      cost += 1 + textCost(next);
      continue;
    }
    cost += 1 + next.size;
    if (cost <= most) open.push(...next.values());
  }
  return cost;
}
