/** A type of a condition's parameters and of what its expression computes. `any` is only known when evaluated. */
export type ConditionType =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'list'; readonly element: ConditionType }
  | { readonly kind: 'map'; readonly key: ConditionType; readonly value: ConditionType };

/** `uint`, `bytes`, `null` and `type` exist within expressions only. */
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

/** Scalar types of parameters, also the elements of `list<…>` and `map<…>`. */
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

/** Lists and maps in one another, at most. */
const NESTING_MAX = 8;
const PARAMETER_SCALAR_NAMES: ReadonlySet<string> = new Set(PARAMETER_SCALARS);

const scalars = new Map<ScalarKind, ConditionType>();

/** The one object of a scalar type. */
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
 * The declared type of a parameter: `bool`, `int`, `double`, `string`, `timestamp`, `duration`,
 * `ipaddress`, `any`, `list<T>` or `map<T>` (of text keys); undefined for anything else.
 */
export function parseParameterType(text: string, nesting = 0): ConditionType | undefined {
  if (PARAMETER_SCALAR_NAMES.has(text)) return scalar(text as ScalarKind);
  const match = /^(list|map)<(.+)>$/.exec(text);
  if (match === null || nesting >= NESTING_MAX) return undefined;
  const inner = parseParameterType(match[2] as string, nesting + 1);
  if (inner === undefined) return undefined;
  return match[1] === 'list' ? listOf(inner) : mapOf(scalar('string'), inner);
}

/** A type as it is declared; that of a map shows its key only where it is not text. */
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

/** Whether a value of one may be used where the other is wanted: `any` may be anything. */
export function isCompatible(a: ConditionType, b: ConditionType): boolean {
  if (a.kind === 'any' || b.kind === 'any') return true;
  if (a.kind === 'list' && b.kind === 'list') return isCompatible(a.element, b.element);
  if (a.kind === 'map' && b.kind === 'map') {
    return isCompatible(a.key, b.key) && isCompatible(a.value, b.value);
  }
  return a.kind === b.kind;
}

const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double']);

/** Whether values of the two can be equal: numbers are compared by what they are worth. */
export function isComparable(a: ConditionType, b: ConditionType): boolean {
  if (a.kind === 'any' || b.kind === 'any' || a.kind === 'null' || b.kind === 'null') return true;
  if (NUMBERS.has(a.kind) && NUMBERS.has(b.kind)) return true;
  if (a.kind === 'list' && b.kind === 'list') return isComparable(a.element, b.element);
  if (a.kind === 'map' && b.kind === 'map') {
    return isComparable(a.key, b.key) && isComparable(a.value, b.value);
  }
  return a.kind === b.kind;
}

/** The type that holds values of both. */
export function joinTypes(a: ConditionType, b: ConditionType): ConditionType {
  if (a.kind === 'list' && b.kind === 'list') return listOf(joinTypes(a.element, b.element));
  if (a.kind === 'map' && b.kind === 'map') {
    return mapOf(joinTypes(a.key, b.key), joinTypes(a.value, b.value));
  }
  return a.kind === b.kind ? a : ANY;
}
