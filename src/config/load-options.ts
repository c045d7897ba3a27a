import { availableParallelism, totalmem } from 'node:os';
import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';
import { nearestName } from '../shared/text/nearest-name.ts';
import type { Machine, Option, OptionTable, OptionValues, Resolved } from './option.ts';
import { fileVariableOf, readSecretFile } from './secret-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Rules of a table in addition to its options. */
export type TableRules<Table extends OptionTable> = {
  /** Prefix of the table's names. Other names that begin with it are refused. */
  readonly prefix: string;
  /** Names with the prefix that belong to other programs and are ignored. */
  readonly foreign?: RegExp | undefined;
  /** Advice for names that used to be settings. */
  readonly removed?: Readonly<Record<string, string>> | undefined;
  /** Contradictions between settings that would otherwise appear only under load; one line each. */
  readonly contradictions?: ((values: OptionValues<Table>) => readonly string[]) | undefined;
};

/** Resources of this machine, or of the container around the process. */
export function thisMachine(): Machine {
  // 0 or a number beyond the machine's memory means that there is no limit.
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    cpuCount: availableParallelism(),
    memoryBytes: limit > 0 && limit < total ? limit : total,
  };
}

/**
 * The settings of `table` that `env` describes. An empty variable counts as unset; surrounding
 * white space is ignored. A secret option NAME may be in the file that NAME_FILE names instead,
 * which is read during this call.
 * Errors: one CONFIG_INVALID that carries every problem, one line each. Messages never contain
 * values of secret options.
 */
export function loadOptions<Table extends OptionTable>(
  table: Table,
  rules: TableRules<Table>,
  env: Environment,
  machine: Machine = thisMachine(),
): OptionValues<Table> {
  const problems = unknownNames(table, rules, env);
  const resolved: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    const isOfFile = option.secret && (env[fileVariableOf(option.env)] ?? '') !== '';
    try {
      resolved[name] = isOfFile
        ? fromFile(option, env)
        : fromVariable(option, env, machine, resolved);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'CONFIG_INVALID') throw error;
      const variable = isOfFile ? fileVariableOf(option.env) : option.env;
      problems.push(`${variable}: ${error.message}`);
    }
  }
  if (problems.length === 0) {
    // Each entry was resolved by the option of its name, so the mapped type holds.
    const values = resolved as OptionValues<Table>;
    problems.push(...(rules.contradictions?.(values) ?? []));
    if (problems.length === 0) return Object.freeze(values);
  }
  throw new AppError<SharedReason>('CONFIG_INVALID', problems.join('\n'));
}

function fromVariable(
  option: Option<unknown>,
  env: Environment,
  machine: Machine,
  resolved: Resolved,
): unknown {
  const text = env[option.env] ?? '';
  // Only empty is unset: a token list of blanks must fail, not switch authentication off.
  return text === '' ? option.fallback(machine, resolved) : option.parse(text.trim());
}

function fromFile(option: Option<unknown>, env: Environment): unknown {
  if ((env[option.env] ?? '') !== '') {
    throw new AppError<SharedReason>(
      'CONFIG_INVALID',
      `${option.env} is set, too; give one of the two`,
    );
  }
  return option.parse(readSecretFile(env[fileVariableOf(option.env)] ?? ''));
}

/** Variables of `env` that hold the value of a secret option itself, where others may read it. */
export function secretVariablesIn(table: OptionTable, env: Environment): readonly string[] {
  return Object.values(table)
    .filter((option) => option.secret && (env[option.env] ?? '') !== '')
    .map((option) => option.env);
}

/** The values of all secret options that are set; the entries of lists one by one. */
export function secretValuesOf<Table extends OptionTable>(
  table: Table,
  values: OptionValues<Table>,
): readonly string[] {
  const byName: Readonly<Record<string, unknown>> = values;
  return Object.entries(table)
    .filter(([, option]) => option.secret)
    .flatMap(([name]) => byName[name])
    .filter((value): value is string => typeof value === 'string' && value !== '');
}

/** The settings in readable form, by environment variable, with secrets replaced. */
export function redactedOptions<Table extends OptionTable>(
  table: Table,
  values: OptionValues<Table>,
): Record<string, unknown> {
  const byName: Readonly<Record<string, unknown>> = values;
  return Object.fromEntries(
    Object.entries(table).map(([name, option]) => [option.env, redact(option, byName[name])]),
  );
}

function redact(option: Option<unknown>, value: unknown): unknown {
  if (!option.secret) return value;
  const isUnset = value === undefined || (Array.isArray(value) && value.length === 0);
  return isUnset ? 'unset' : 'redacted';
}

function unknownNames<Table extends OptionTable>(
  table: Table,
  { prefix, foreign, removed = {} }: TableRules<Table>,
  env: Environment,
): string[] {
  const known = Object.values(table).flatMap(({ env: name, secret }) =>
    secret ? [name, fileVariableOf(name)] : [name],
  );
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && !known.includes(name))
    .filter((name) => foreign === undefined || !foreign.test(name))
    .toSorted()
    .map((name) => {
      const advice = removed[name];
      if (advice !== undefined) return `${name}: no longer a setting; ${advice}`;
      const nearest = nearestName(name, known);
      return `${name}: no such setting${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
    });
}

/** Exit code of a process whose settings are wrong: a restart cannot help. */
const EXIT_CONFIG = 2;

/**
 * Returns the result of `load`, for a main function. Prints all problems of a CONFIG_INVALID to
 * stderr without a stack, and exits with code 2.
 */
export function validOrExit<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'CONFIG_INVALID') throw error;
    const lines = error.message.split('\n').map((line) => `  ${line}\n`);
    process.stderr.write(`The configuration is not valid:\n${lines.join('')}`);
    process.exit(EXIT_CONFIG);
  }
}
