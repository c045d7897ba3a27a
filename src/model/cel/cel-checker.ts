import type {
  Constant,
  Expr,
  Expr_Call,
  Expr_Comprehension,
} from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import {
  ANY,
  type ConditionType,
  isComparable,
  isCompatible,
  joinTypes,
  listOf,
  mapOf,
  scalar,
  type ScalarKind,
  typeText,
} from '../condition-type.ts';
import { suggestion } from '../model-json.ts';
import { offsetMinutes } from './cel-functions.ts';
import { CostMeter } from './cel-meter.ts';
import { patternFault } from './cel-pattern.ts';
import { functionNames, type Signature, signaturesOf } from './cel-signatures.ts';
import { appendedElement, constantText, isEmptyList } from './cel-tree.ts';
import { celValueOf } from './cel-values.ts';
import { parseCidr } from './ip-address.ts';

/** Error in an expression, at one of its nodes. */
export class CelFault extends Error {
  /** Id of the node; positions are in the parsed source. */
  readonly exprId: bigint;

  constructor(exprId: bigint, message: string) {
    super(message);
    this.exprId = exprId;
  }
}

/** Maximum number of nodes in an expression, after macro expansion. */
const NODES_MAX = 1_000;
/** Maximum nesting depth of nodes. */
const DEPTH_MAX = 100;

const BOOL = scalar('bool');
const TYPE_NAMES: ReadonlySet<string> = new Set(
  'bool int uint double string bytes list map null_type type'.split(' '),
);
/** Conversions whose literal text arguments are checked. */
const LITERALS: { readonly [name: string]: ScalarKind | undefined } = {
  timestamp: 'timestamp',
  duration: 'duration',
  ipaddress: 'ipaddress',
};
/** Form of the names of operators. */
const OPERATOR = /^(?:@in|!_|-_|_.{1,2}_)$/;

type CelScope = {
  readonly name: string;
  readonly type: ConditionType;
  readonly above: CelScope;
} | null;

/** Result of `checkExpression`. */
export type CheckedExpression = {
  readonly type: ConditionType;
  /** Parameters that the expression names. */
  readonly parameters: ReadonlySet<string>;
  readonly nodes: number;
};

/**
 * Type of a parsed expression over `parameters`, by CEL's rules for names and types. Every name must be declared, and
 * every operator and function must have a form for its arguments. Literal patterns and time zones must be valid.
 * Stricter than CEL: values of types that are never equal cannot be compared. Errors: throws CelFault. Cost: O(nodes ·
 * forms of a function).
 */
export function checkExpression(
  expr: Expr,
  parameters: ReadonlyMap<string, ConditionType>,
): CheckedExpression {
  const checker = new Checker(parameters);
  const type = checker.typeOf(expr, null, 1);
  return { type, parameters: checker.named, nodes: checker.nodes };
}

/** Types of all nodes of a parsed expression. Errors and cost: those of `checkExpression`. */
export function typesOfNodes(
  expr: Expr,
  parameters: ReadonlyMap<string, ConditionType>,
): ReadonlyMap<Expr, ConditionType> {
  const checker = new Checker(parameters);
  checker.typeOf(expr, null, 1);
  return checker.known;
}

class Checker {
  readonly named = new Set<string>();
  nodes = 0;
  /** Types found so far. The element that a macro appends is checked before the step around it, and only once. */
  readonly known = new Map<Expr, ConditionType>();
  readonly #parameters: ReadonlyMap<string, ConditionType>;

  constructor(parameters: ReadonlyMap<string, ConditionType>) {
    this.#parameters = parameters;
  }

  typeOf(expr: Expr | undefined, scope: CelScope, depth: number): ConditionType {
    if (expr === undefined) throw new CelFault(0n, 'is no expression');
    let type = this.known.get(expr);
    if (type === undefined) this.known.set(expr, (type = this.#typeOf(expr, scope, depth)));
    return type;
  }

  #typeOf(expr: Expr, scope: CelScope, depth: number): ConditionType {
    if (++this.nodes > NODES_MAX) throw new CelFault(expr.id, `has more than ${NODES_MAX} parts`);
    if (depth > DEPTH_MAX) throw new CelFault(expr.id, `is nested more than ${DEPTH_MAX} deep`);
    const { exprKind: kind } = expr;
    switch (kind.case) {
      case 'constExpr':
        return typeOfConstant(expr.id, kind.value);
      case 'identExpr':
        return this.#identType(expr.id, kind.value.name, scope);
      case 'selectExpr': {
        const operand = this.typeOf(kind.value.operand, scope, depth + 1);
        const value = fieldType(operand);
        if (value === undefined) {
          const problem = `a ${typeText(operand)} has no field ${kind.value.field}`;
          throw new CelFault(expr.id, problem);
        }
        return kind.value.testOnly ? BOOL : value;
      }
      case 'callExpr':
        return this.#callType(expr.id, kind.value, scope, depth + 1);
      case 'listExpr':
        return listOf(
          kind.value.elements
            .map((element) => this.typeOf(element, scope, depth + 1))
            .reduce(joinIfAny, undefined) ?? ANY,
        );
      case 'structExpr': {
        if (kind.value.messageName !== '') {
          throw new CelFault(expr.id, 'messages cannot be made: there are none');
        }
        let key: ConditionType | undefined;
        let value: ConditionType | undefined;
        for (const entry of kind.value.entries) {
          const mapKey = entry.keyKind.case === 'mapKey' ? entry.keyKind.value : undefined;
          if (entry.optionalEntry) throw new CelFault(entry.id, 'optional values are not known');
          key = joinIfAny(key, this.typeOf(mapKey, scope, depth + 1));
          value = joinIfAny(value, this.typeOf(entry.value, scope, depth + 1));
        }
        return mapOf(key ?? ANY, value ?? ANY);
      }
      case 'comprehensionExpr':
        return this.#comprehensionType(expr.id, kind.value, scope, depth + 1);
      default:
        throw new CelFault(expr.id, 'is no expression');
    }
  }

  #identType(id: bigint, name: string, scope: CelScope): ConditionType {
    for (let one = scope; one !== null; one = one.above) if (one.name === name) return one.type;
    const type = this.#parameters.get(name);
    if (type !== undefined) {
      this.named.add(name);
      return type;
    }
    if (TYPE_NAMES.has(name)) return scalar('type');
    const near = suggestion(name, this.#parameters.keys());
    throw new CelFault(id, `"${name}" is not a declared parameter${near}`);
  }

  #comprehensionType(
    id: bigint,
    fold: Expr_Comprehension,
    scope: CelScope,
    depth: number,
  ): ConditionType {
    const range = this.typeOf(fold.iterRange, scope, depth);
    const item = itemType(range);
    if (item === undefined) throw new CelFault(id, `a ${typeText(range)} cannot be gone through`);
    if (fold.iterVar2 !== '') throw new CelFault(id, 'macros have one variable');
    const init = this.typeOf(fold.accuInit, scope, depth);
    const inner = { name: fold.iterVar, type: item, above: scope };
    const element = isEmptyList(fold.accuInit) ? appendedElement(fold.loopStep) : undefined;
    // The list of such a macro has the type of the elements that its step appends.
    const accu = element === undefined ? init : listOf(this.typeOf(element, inner, depth));
    const within = {
      name: fold.iterVar,
      type: item,
      above: { name: fold.accuVar, type: accu, above: scope },
    };
    this.#want(fold.loopCondition, BOOL, within, depth);
    this.#want(fold.loopStep, accu, within, depth);
    return this.typeOf(fold.result, { name: fold.accuVar, type: accu, above: scope }, depth);
  }

  #want(expr: Expr | undefined, type: ConditionType, scope: CelScope, depth: number): void {
    const found = this.typeOf(expr, scope, depth);
    if (isCompatible(found, type)) return;
    throw new CelFault(
      expr?.id ?? 0n,
      `is a ${typeText(found)}, where a ${typeText(type)} is wanted`,
    );
  }

  #callType(id: bigint, call: Expr_Call, scope: CelScope, depth: number): ConditionType {
    const { function: name } = call;
    const target = call.target === undefined ? undefined : this.typeOf(call.target, scope, depth);
    const args = call.args.map((arg) => this.typeOf(arg, scope, depth));
    const special = target === undefined ? specialType(id, name, args) : undefined;
    if (special !== undefined) return special;
    const forms = signaturesOf(name);
    if (forms === undefined) {
      throw new CelFault(id, `there is no function ${name}${suggestion(name, functionNames())}`);
    }
    const fitting = forms.filter((form) => fits(form, target, args));
    const first = fitting[0];
    if (first === undefined) {
      throw new CelFault(id, `${callText(name, target, args)}: there is no such form`);
    }
    checkLiterals(call, target);
    const { result } = first;
    return fitting.every((form) => form.result === result) ? result : ANY;
  }
}

function typeOfConstant(id: bigint, { constantKind }: Constant): ConditionType {
  switch (constantKind.case) {
    case 'boolValue':
      return BOOL;
    case 'int64Value':
      return scalar('int');
    case 'uint64Value':
      return scalar('uint');
    case 'doubleValue':
      return scalar('double');
    case 'stringValue':
      return scalar('string');
    case 'bytesValue':
      return scalar('bytes');
    case 'nullValue':
      return scalar('null');
    default:
      throw new CelFault(id, 'is no constant');
  }
}

function joinIfAny(joined: ConditionType | undefined, type: ConditionType): ConditionType {
  return joined === undefined ? type : joinTypes(joined, type);
}

function fieldType(operand: ConditionType): ConditionType | undefined {
  if (operand.kind === 'any') return ANY;
  if (operand.kind !== 'map') return undefined;
  return isCompatible(operand.key, scalar('string')) ? operand.value : undefined;
}

function itemType(range: ConditionType): ConditionType | undefined {
  if (range.kind === 'any') return ANY;
  if (range.kind === 'list') return range.element;
  return range.kind === 'map' ? range.key : undefined;
}

/** Type of an operator whose result depends on its operands; undefined for other functions. */
function specialType(
  id: bigint,
  name: string,
  args: readonly ConditionType[],
): ConditionType | undefined {
  const [a = ANY, b = ANY, c = ANY] = args;
  switch (name) {
    case '_==_':
    case '_!=_':
      if (!isComparable(a, b)) {
        throw new CelFault(id, `a ${typeText(a)} never equals a ${typeText(b)}`);
      }
      return BOOL;
    case '@in': {
      const items = itemType(b);
      if (items === undefined) throw new CelFault(id, `a ${typeText(b)} holds nothing`);
      if (!isComparable(a, items)) {
        throw new CelFault(id, `a ${typeText(a)} is never in a ${typeText(b)}`);
      }
      return BOOL;
    }
    case '_?_:_':
      if (!isCompatible(a, BOOL)) throw new CelFault(id, `a ${typeText(a)} is no condition`);
      return joinTypes(b, c);
    case '_[_]':
      return indexType(id, a, b);
    case '_+_':
      return a.kind === 'list' && b.kind === 'list' ? joinTypes(a, b) : undefined;
    default:
      return undefined;
  }
}

function indexType(id: bigint, container: ConditionType, key: ConditionType): ConditionType {
  if (container.kind === 'any') return ANY;
  const wanted =
    container.kind === 'list'
      ? scalar('int')
      : container.kind === 'map'
        ? container.key
        : undefined;
  if (wanted === undefined || !isComparable(key, wanted)) {
    throw new CelFault(id, `a ${typeText(container)} has no place ${typeText(key)}`);
  }
  return container.kind === 'list'
    ? container.element
    : (container as { value: ConditionType }).value;
}

function fits(
  form: Signature,
  target: ConditionType | undefined,
  args: readonly ConditionType[],
): boolean {
  if ((form.target === undefined) !== (target === undefined)) return false;
  if (form.target !== undefined && !isCompatible(form.target, target ?? ANY)) return false;
  if (form.args.length !== args.length) return false;
  return form.args.every((wanted, index) => isCompatible(wanted, args[index] ?? ANY));
}

/** Notation of an operator or function, by its name in CEL. */
export function signOf(name: string): string {
  return OPERATOR.test(name) ? name.replaceAll('_', '').replace('@', '') : name;
}

/** Text of a call with the types of its arguments. */
function callText(
  name: string,
  target: ConditionType | undefined,
  args: readonly ConditionType[],
): string {
  const texts = args.map(typeText);
  if (OPERATOR.test(name)) {
    const sign = signOf(name);
    return texts.length === 1 ? `${sign}${texts[0]}` : texts.join(` ${sign} `);
  }
  return `${target === undefined ? '' : `${typeText(target)}.`}${name}(${texts.join(', ')})`;
}

/** Rejects literals that always fail at evaluation. */
function checkLiterals(call: Expr_Call, target: ConditionType | undefined): void {
  const isMethod = target !== undefined;
  // `matches(text, pattern)` is the method's other form.
  const arg = call.args[call.function === 'matches' && !isMethod ? 1 : 0];
  const text = constantText(arg);
  if (arg === undefined || text === undefined) return;
  const fault = literalFault(call.function, text, isMethod);
  if (fault !== undefined) throw new CelFault(arg.id, fault);
}

function literalFault(name: string, text: string, isMethod: boolean): string | undefined {
  if (name === 'matches') return patternFault(text);
  if (isMethod && name === 'in_cidr' && parseCidr(text) === undefined) {
    return 'is no network like 10.0.0.0/8';
  }
  if (isMethod && name.startsWith('get') && offsetMinutes(text) === undefined) {
    return 'a time zone is UTC or an offset like +02:00';
  }
  const kind = isMethod ? undefined : LITERALS[name];
  if (kind === undefined) return undefined;
  const value = celValueOf(scalar(kind), text, new CostMeter(Number.MAX_SAFE_INTEGER));
  return value === undefined ? `is no ${kind}` : undefined;
}
