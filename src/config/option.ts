import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/**
 * Resources of the machine, which computed defaults depend on. Injected so that tests can set them.
 */
export type Machine = {
  /** Processors that this process may use. */
  readonly cpuCount: number;
  /** Memory that this process may use, in bytes: the container's limit if there is one. */
  readonly memoryBytes: number;
};

/** Values resolved so far, by option name. A computed default may read options above its own. */
export type Resolved = Readonly<Record<string, unknown>>;

/**
 * One setting. `T` is its value in the typed configuration. It includes `undefined` if "unset" has
 * a meaning.
 */
export type Option<T> = {
  readonly env: string;
  /**
   * Turns non-empty text into a value. Errors: throws CONFIG_INVALID with the problem as its text.
   */
  readonly parse: (text: string) => T;
  readonly type: string;
  readonly fallback: (machine: Machine, resolved: Resolved) => T;
  /** The default as the documentation shows it. */
  readonly fallbackText: string;
  readonly unit: string;
  /** The accepted values as the documentation shows them. */
  readonly range: string;
  readonly description: string;
  /** True for a secret, whose value appears in no message, log or print. */
  readonly secret: boolean;
};

/**
 * All settings of one process, by the name of the value. A computed default may read those above
 * it.
 */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The validated values of a table. */
export type OptionValues<Table extends OptionTable> = {
  readonly [K in keyof Table]: Table[K] extends Option<infer T> ? T : never;
};

type Common = { readonly env: string; readonly description: string };
type NumberBounds = {
  readonly min: number;
  readonly max: number;
  readonly unit?: string;
};

function problem(text: string): AppError {
  return new AppError<SharedReason>('CONFIG_INVALID', text);
}

function withinBounds(value: number, bounds: NumberBounds): number {
  if (value < bounds.min || value > bounds.max) {
    throw problem(`must lie between ${bounds.min} and ${bounds.max}, not ${value}`);
  }
  return value;
}

/** A whole number within inclusive bounds. `fallback` is a number or computed from the machine. */
export function integerOption(
  common: Common &
    NumberBounds & {
      readonly fallback: number | { readonly of: (m: Machine) => number; readonly text: string };
    },
): Option<number> {
  const { env, description, fallback, min, max, unit = '' } = common;
  return {
    env,
    description,
    unit,
    type: 'integer',
    secret: false,
    range: `${min} to ${max}`,
    fallback: (machine) => (typeof fallback === 'number' ? fallback : fallback.of(machine)),
    fallbackText: typeof fallback === 'number' ? String(fallback) : fallback.text,
    parse: (text) => {
      if (!/^-?\d{1,15}$/.test(text)) throw problem('must be a whole number');
      return withinBounds(Number(text), common);
    },
  };
}

/** A whole number within inclusive bounds. Unset disables the feature that it configures. */
export function optionalIntegerOption(common: Common & NumberBounds): Option<number | undefined> {
  return {
    ...integerOption({ ...common, fallback: 0 }),
    fallback: () => undefined,
    fallbackText: 'unset',
  };
}

/** A decimal number, fractions allowed, within inclusive bounds. */
export function decimalOption(
  common: Common & NumberBounds & { readonly fallback: number },
): Option<number> {
  const { env, description, fallback, min, max, unit = '' } = common;
  return {
    env,
    description,
    unit,
    type: 'number',
    secret: false,
    range: `${min} to ${max}`,
    fallback: () => fallback,
    fallbackText: String(fallback),
    parse: (text) => {
      if (!/^\d+(\.\d+)?$|^\.\d+$/.test(text)) throw problem('must be a number, such as 1.5');
      return withinBounds(Number(text), common);
    },
  };
}

/** Exactly `true` or `false`. */
export function booleanOption(common: Common & { readonly fallback: boolean }): Option<boolean> {
  return {
    env: common.env,
    description: common.description,
    unit: '',
    type: 'boolean',
    secret: false,
    range: 'true, false',
    fallback: () => common.fallback,
    fallbackText: String(common.fallback),
    parse: (text) => {
      if (text !== 'true' && text !== 'false') throw problem('must be true or false');
      return text === 'true';
    },
  };
}

/** Text that matches `pattern` as a whole; `rule` describes the accepted text in words. */
export function textOption<F extends string | undefined>(
  common: Common & {
    readonly fallback: F | ((machine: Machine, resolved: Resolved) => F);
    readonly fallbackText: string;
    readonly pattern: RegExp;
    readonly rule: string;
    readonly secret?: boolean;
  },
): Option<string | F> {
  const { env, description, fallback, fallbackText, pattern, rule, secret = false } = common;
  return {
    env,
    description,
    unit: '',
    type: 'text',
    secret,
    range: rule,
    fallback: typeof fallback === 'function' ? fallback : () => fallback,
    fallbackText,
    parse: (text) => {
      if (!pattern.test(text)) throw problem(`must be ${rule}`);
      return text;
    },
  };
}

/** A secret that is a JSON document. The code that uses it checks the content. Unset: undefined. */
export function secretJsonOption(common: Common): Option<string | undefined> {
  return textOption<undefined>({
    ...common,
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^\s*\{[^]*\}\s*$/,
    rule: 'a JSON document',
    secret: true,
  });
}

/** One of `values`. */
export function choiceOption<const V extends string>(
  common: Common & { readonly fallback: V; readonly values: readonly V[] },
): Option<V> {
  return {
    env: common.env,
    description: common.description,
    unit: '',
    type: 'choice',
    secret: false,
    range: common.values.join(', '),
    fallback: () => common.fallback,
    fallbackText: common.fallback,
    parse: (text) => {
      const value = common.values.find((candidate) => candidate === text);
      if (value === undefined) throw problem(`must be one of ${common.values.join(', ')}`);
      return value;
    },
  };
}

/**
 * Comma-separated texts, trimmed, that each match `pattern` as a whole. Empty entries are ignored.
 */
export function listOption(
  common: Common & {
    readonly fallback: readonly string[];
    readonly pattern: RegExp;
    readonly rule: string;
  },
): Option<readonly string[]> {
  const { env, description, fallback, pattern, rule } = common;
  return {
    env,
    description,
    unit: '',
    type: 'list',
    secret: false,
    range: `comma-separated, each ${rule}`,
    fallback: () => fallback,
    fallbackText: fallback.length === 0 ? 'empty' : fallback.join(','),
    parse: (text) => {
      const values = entriesOf(text);
      const wrong = values.find((value) => !pattern.test(value));
      if (wrong !== undefined)
        throw problem(`holds ${JSON.stringify(wrong)}; each must be ${rule}`);
      return values;
    },
  };
}

/**
 * The entries of a list, separated by commas or by `separator`. Errors: CONFIG_INVALID if the list
 * is empty.
 */
function entriesOf(text: string, separator: string | RegExp = ','): readonly string[] {
  const entries = text.split(separator).map((entry) => entry.trim());
  const values = entries.filter((entry) => entry !== '');
  if (values.length === 0) throw problem('is set but holds no entry');
  return values;
}

/**
 * Secrets separated by commas or line ends, trimmed. Empty entries are ignored; a list without an
 * entry is refused.
 */
export function secretListOption(common: Common): Option<readonly string[]> {
  return secretsOption(common, /[,\n]/, 'comma-separated, or one a line');
}

/** Like `secretListOption`, but one secret a line: a comma is part of a secret. */
export function secretLinesOption(common: Common): Option<readonly string[]> {
  return secretsOption(common, '\n', 'one a line');
}

function secretsOption(
  common: Common,
  separator: string | RegExp,
  form: string,
): Option<readonly string[]> {
  return {
    env: common.env,
    description: common.description,
    unit: '',
    type: 'list',
    secret: true,
    range: `${form}, printable ASCII without spaces`,
    fallback: () => [],
    fallbackText: 'empty',
    parse: (text) => {
      const values = entriesOf(text, separator);
      // A secret travels in a header, which could never carry other characters.
      if (!values.every((value) => /^[\x21-\x7e]+$/.test(value))) {
        throw problem('holds an entry with characters that a header cannot carry');
      }
      return values;
    },
  };
}
