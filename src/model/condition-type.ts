/** Type of a condition's parameters and of the parts of its expression. `any` is known only at evaluation. */
export type ConditionType =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'list'; readonly element: ConditionType }
  | { readonly kind: 'map'; readonly key: ConditionType; readonly value: ConditionType };

/** Kinds of scalars. `uint`, `bytes`, `null` and `type` exist only within expressions. */
export type ScalarKind =
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'null'
  | 'timestamp'
  | 'duration'
  | 'ipaddress'
  | 'type'
  | 'any';

/** Scalar types of parameters. A parameter may also be a `list<…>` or `map<…>` of a type. */
export const PARAMETER_SCALARS = [
  'bool',
  'int',
  'double',
  'string',
  'timestamp',
  'duration',
  'ipaddress',
  'any',
] as const;

/** Maximum nesting of lists and maps. */
const NESTING_MAX = 8;
const PARAMETER_SCALAR_NAMES: ReadonlySet<string> = new Set(PARAMETER_SCALARS);

const scalars = new Map<ScalarKind, ConditionType>();

/** Returns the only object of a scalar type. */
export function scalar(kind: ScalarKind): ConditionType {
  let type = scalars.get(kind);
  if (type === undefined) scalars.set(kind, (type = { kind }));
  return type;
}

export const ANY = scalar('any');

export function listOf(element: ConditionType): ConditionType {
  return { kind: 'list', element };
}

export function mapOf(key: ConditionType, value: ConditionType): ConditionType {
  return { kind: 'map', key, value };
}

/**
 * Parses the declared type of a parameter: `bool`, `int`, `double`, `string`, `timestamp`, `duration`, `ipaddress`,
 * `any`, `list<T>` or `map<T>` (with text keys). Undefined for any other text.
 */
export function parseParameterType(text: string, nesting = 0): ConditionType | undefined {
  if (PARAMETER_SCALAR_NAMES.has(text)) return scalar(text as ScalarKind);
  const match = /^(list|map)<(.+)>$/.exec(text);
  if (match === null || nesting >= NESTING_MAX) return undefined;
  const inner = parseParameterType(match[2] as string, nesting + 1);
  if (inner === undefined) return undefined;
  return match[1] === 'list' ? listOf(inner) : mapOf(scalar('string'), inner);
}

/** Formats a type as it is declared. A map shows the type of its keys only if it is not text. */
export function typeText(type: ConditionType): string {
  switch (type.kind) {
    case 'list':
      return `list<${typeText(type.element)}>`;
    case 'map': {
      const key = type.key.kind === 'string' ? '' : `${typeText(type.key)}, `;
      return `map<${key}${typeText(type.value)}>`;
    }
    default:
      return type.kind;
  }
}

/** Whether a value of one type may be used where the other is wanted: `any` may be anything. */
export function isCompatible(a: ConditionType, b: ConditionType): boolean {
  if (a.kind === 'any' || b.kind === 'any') return true;
  if (a.kind === 'list' && b.kind === 'list') return isCompatible(a.element, b.element);
  if (a.kind === 'map' && b.kind === 'map') {
    return isCompatible(a.key, b.key) && isCompatible(a.value, b.value);
  }
  return a.kind === b.kind;
}

const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double']);

/** Whether values of the two types can be equal: numbers are compared by value. */
export function isComparable(a: ConditionType, b: ConditionType): boolean {
  if (a.kind === 'any' || b.kind === 'any' || a.kind === 'null' || b.kind === 'null') return true;
  if (NUMBERS.has(a.kind) && NUMBERS.has(b.kind)) return true;
  if (a.kind === 'list' && b.kind === 'list') return isComparable(a.element, b.element);
  if (a.kind === 'map' && b.kind === 'map') {
    return isComparable(a.key, b.key) && isComparable(a.value, b.value);
  }
  return a.kind === b.kind;
}

/** Type that holds values of both types. */
export function joinTypes(a: ConditionType, b: ConditionType): ConditionType {
  if (a.kind === 'list' && b.kind === 'list') return listOf(joinTypes(a.element, b.element));
  if (a.kind === 'map' && b.kind === 'map') {
    return mapOf(joinTypes(a.key, b.key), joinTypes(a.value, b.value));
  }
  return a.kind === b.kind ? a : ANY;
}
