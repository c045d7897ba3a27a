import { parseArgs, type ParseArgsConfig } from 'node:util';
import { AppError } from '../shared/app-error.ts';
import { meant } from '../shared/text/nearest-name.ts';
import type { CliOption } from './command-help.ts';

/** Reason of the error for a wrong command line. The message says what is wrong with which word. */
export type UsageReason = 'INVALID_REQUEST';

/** Values of the given options by name: texts, or true for a flag, in the order given. */
export type GivenOptions = Readonly<Record<string, readonly (string | boolean)[] | undefined>>;

export type ParsedWords = {
  readonly values: GivenOptions;
  readonly positionals: readonly string[];
};

/** The INVALID_REQUEST error of a wrong command line. */
export function usage(problem: string): AppError {
  return new AppError<UsageReason>('INVALID_REQUEST', problem);
}

/**
 * Parses a command line against the options of all commands together. The caller checks which of them the command
 * takes. `optionsOf` returns the options of the command that the words begin with, for suggestions in errors; undefined
 * without such a command. Errors: INVALID_REQUEST for an option that no command has, an unexpected value or a missing
 * value.
 */
export function parseWords(
  args: readonly string[],
  all: ReadonlyMap<string, CliOption>,
  optionsOf: (
    positionals: readonly string[],
  ) => Readonly<Record<string, CliOption | undefined>> | undefined,
): ParsedWords {
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([...all].map(([name, option]) => [name, kindOf(option)])),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const positionals = tokens.flatMap((token) => (token.kind === 'positional' ? token.value : []));
  const values: Record<string, (string | boolean)[]> = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const option = all.get(name);
    if (option === undefined) {
      const known = optionsOf(positionals);
      throw usage(unknownOption(rawName, known === undefined ? all.keys() : Object.keys(known)));
    }
    if (option.value === undefined && value !== undefined) throw usage(`${rawName} takes no value`);
    if (option.value !== undefined && value === undefined) {
      const shown = optionsOf(positionals)?.[name]?.value ?? option.value;
      throw usage(`${rawName} needs a value: ${rawName} ${shown}`);
    }
    // More likely, the value was forgotten. A lone `-` is standard input.
    if (inlineValue === false && value !== undefined && /^-./.test(value)) {
      throw usage(`${rawName} needs a value; write --${name}=VALUE for one that begins with -`);
    }
    (values[name] ??= []).push(value ?? true);
  }
  return { values, positionals };
}

/** Problem text for an unknown option such as `--nope`. The value after it may be a secret, and is not repeated. */
function unknownOption(rawName: string, known: Iterable<string>): string {
  const near = meant(
    rawName,
    [...known].map((name) => `--${name}`),
  );
  return `there is no option ${rawName}${near}`;
}

function kindOf({ short, value }: CliOption): NonNullable<ParseArgsConfig['options']>[string] {
  const type = value === undefined ? 'boolean' : 'string';
  return { type, multiple: true, ...(short === undefined ? {} : { short }) };
}
