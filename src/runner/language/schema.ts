import type { Availability, FunctionSignature } from './expression.ts';

/**
 * What a value of a file may be. `available` is what its expressions may name, beside what the values
 * around it allow; where nothing is available, no expression may stand.
 */
export type Definition = DefinitionShape & { readonly available?: Availability | undefined };
type DefinitionShape =
  | { readonly kind: 'null' | 'boolean' | 'number' | 'any' }
  | { readonly kind: 'string'; readonly isNonEmpty: boolean }
  | { readonly kind: 'constants'; readonly values: readonly string[]; readonly isCaseless: boolean }
  | { readonly kind: 'sequence'; readonly item: Definition }
  | MappingDefinition
  | { readonly kind: 'oneOf'; readonly definitions: readonly Definition[] };
export type MappingDefinition = {
  readonly kind: 'mapping';
  readonly properties: Readonly<Record<string, Property>>;
  /** What other keys stand for; absent where there may be none. */
  readonly loose?: { readonly key: Definition; readonly value: Definition } | undefined;
};
export type Property = { readonly definition: Definition; readonly isRequired: boolean };

export const NULL: Definition = { kind: 'null' };
export const BOOLEAN: Definition = { kind: 'boolean' };
export const NUMBER: Definition = { kind: 'number' };
export const ANY: Definition = { kind: 'any' };
export const TEXT: Definition = { kind: 'string', isNonEmpty: false };
export const NON_EMPTY: Definition = { kind: 'string', isNonEmpty: true };
export const SCALAR: Definition = oneOf(TEXT, BOOLEAN, NUMBER);
export const NON_EMPTY_LIST: Definition = oneOf(NON_EMPTY, sequenceOf(NON_EMPTY));

export function constants(...values: readonly string[]): Definition {
  return { kind: 'constants', values, isCaseless: false };
}

/** As `constants`, in lower case, without regard to case. */
export function caselessConstants(...values: readonly string[]): Definition {
  return { kind: 'constants', values, isCaseless: true };
}

export function sequenceOf(item: Definition): Definition {
  return { kind: 'sequence', item };
}

export function oneOf(...definitions: readonly Definition[]): Definition {
  return { kind: 'oneOf', definitions };
}

/** Names that end in `!` are required. */
export function mappingOf(properties: Readonly<Record<string, Definition>>): MappingDefinition {
  return { kind: 'mapping', properties: propertiesFrom(properties) };
}

/** Any key, all values alike, beside the ones that are named. */
export function looseMappingOf(
  value: Definition,
  properties: Readonly<Record<string, Definition>> = {},
): MappingDefinition {
  return {
    kind: 'mapping',
    properties: propertiesFrom(properties),
    loose: { key: NON_EMPTY, value },
  };
}

function propertiesFrom(
  properties: Readonly<Record<string, Definition>>,
): Readonly<Record<string, Property>> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, definition]) => {
      const isRequired = name.endsWith('!');
      return [isRequired ? name.slice(0, -1) : name, { definition, isRequired }];
    }),
  );
}

/** `github inputs hashFiles(1,255)`: contexts and functions with the numbers of their arguments. */
export function availableIn(text: string): Availability {
  const contexts: string[] = [];
  const functions: FunctionSignature[] = [];
  for (const word of text.split(' ')) {
    const match = /^(\w+)\((\d+),(\d+)\)$/.exec(word);
    if (match === null) {
      contexts.push(word);
    } else {
      const [, name = '', min = '', max = ''] = match;
      functions.push({ name, minArgs: Number(min), maxArgs: Number(max) });
    }
  }
  return { contexts, functions };
}

/** The definition with expressions that may name what `available` lists. */
export function within(available: Availability, definition: Definition): Definition {
  return { ...definition, available };
}

export const NOTHING_AVAILABLE: Availability = { contexts: [], functions: [] };

export function union(first: Availability, second: Availability | undefined): Availability {
  if (second === undefined) {
    return first;
  }
  return {
    contexts: [...new Set([...first.contexts, ...second.contexts])],
    functions: [...first.functions, ...second.functions],
  };
}
