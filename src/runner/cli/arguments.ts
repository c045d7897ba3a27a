import type { CliOption } from '../../command-line/command-help.ts';
import { type GivenOptions, parseWords, usage } from '../../command-line/parse-words.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import type { RunStatus, SandboxStrategy } from '../model/run.ts';
import { COMMANDS, type CommandName } from './command-table.ts';

const STRATEGIES: readonly SandboxStrategy[] = ['worktree', 'copy', 'none'];
const STATUSES: readonly RunStatus[] = [
  'queued',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
];
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 1_000;

/** `-l` alone is the command `list`, as in act. */
const LIST_FLAG = 'list';
const LIST_OPTION = [LIST_FLAG, { short: 'l', help: [] }] as const;
/** Alone, or with any command. */
const VERSION_FLAG = 'version';
const VERSION_OPTION = [VERSION_FLAG, { short: 'V', help: [] }] as const;

const FLAGS: readonly string[] = [LIST_FLAG, VERSION_FLAG];
/** Every option of every command. */
const ALL: ReadonlyMap<string, CliOption> = new Map<string, CliOption>([
  ...[...COMMANDS.values()].flatMap(({ options }) => Object.entries(options)),
  LIST_OPTION,
  VERSION_OPTION,
]);

export type CommandLine = {
  /** Undefined: the help of all commands. */
  readonly command: CommandName | undefined;
  readonly isHelp: boolean;
  readonly isVersion: boolean;
  readonly words: readonly string[];
  readonly workspace: string | undefined;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly inputs: Readonly<Record<string, string>>;
  /** `--env` of `run`, as given, and files of variables. */
  readonly variables: readonly string[];
  readonly variableFiles: readonly string[];
  readonly event: string | undefined;
  readonly payload: string | undefined;
  readonly isForced: boolean;
  /** Keys of the jobs to run; none: all. */
  readonly jobs: readonly string[];
  readonly matrix: Readonly<Record<string, readonly string[]>>;
  /** Value undefined: it comes from elsewhere. */
  readonly secrets: readonly { readonly name: string; readonly value: string | undefined }[];
  readonly secretFile: string | undefined;
  /** Of `--var`: the context `vars`. */
  readonly vars: Readonly<Record<string, string>>;
  readonly isDryRun: boolean;
  readonly strategy: SandboxStrategy | undefined;
  readonly ref: string | undefined;
  readonly isPushAllowed: boolean;
  readonly status: RunStatus | undefined;
  readonly workflow: string | undefined;
  readonly limit: number;
  readonly job: string | undefined;
  readonly step: number | undefined;
  readonly tail: number | undefined;
  readonly isFailedOnly: boolean;
  readonly environment: string | undefined;
  readonly backend: string | undefined;
  readonly isUpdate: boolean;
};

/**
 * What the arguments behind the program's name say.
 * Errors: INVALID_REQUEST that says what is wrong with which of them.
 */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseWords(args, ALL, optionsOf);
  const { command, words } = commandOf(values, positionals);
  if (command !== undefined) {
    const known = COMMANDS.get(command)?.options ?? {};
    const wrong = Object.keys(values).find((name) => !(name in known) && !FLAGS.includes(name));
    if (wrong !== undefined) throw usage(otherCommands(wrong, command));
  }
  const text = (name: string): string | undefined => texts(values, name).at(-1);
  const isSet = (name: string): boolean => values[name] !== undefined;
  return {
    command,
    isHelp: isSet('help') || command === undefined,
    isVersion: isSet(VERSION_FLAG),
    words,
    workspace: text('workspace'),
    isJson: isSet('json'),
    isQuiet: isSet('quiet'),
    inputs: pairsOf('input', texts(values, 'input')),
    variables: texts(values, 'env'),
    variableFiles: texts(values, 'env-file'),
    event: text('event'),
    payload: text('payload'),
    isForced: isSet('force'),
    jobs: command === 'run' ? texts(values, 'job') : [],
    matrix: matrixOf(texts(values, 'matrix')),
    secrets: texts(values, 'secret').map(secretOf),
    secretFile: text('secret-file'),
    vars: pairsOf('var', texts(values, 'var')),
    isDryRun: isSet('dry-run'),
    strategy: choice('strategy', text('strategy'), STRATEGIES),
    ref: text('ref'),
    isPushAllowed: isSet('allow-push'),
    status: choice('status', text('status'), STATUSES),
    workflow: text('workflow'),
    limit: integer('limit', text('limit'), LIMIT_MAX) ?? LIMIT_DEFAULT,
    job: text('job'),
    step: integer('step', text('step'), LIMIT_MAX * LIMIT_MAX),
    tail: integer('tail', text('tail'), LIMIT_MAX * LIMIT_MAX),
    isFailedOnly: isSet('failed'),
    environment: text('env'),
    backend: text('backend'),
    isUpdate: isSet('update'),
  };
}

/** The options that may stand with the command that the words begin with. */
function optionsOf([word]: readonly string[]): Readonly<Record<string, CliOption>> | undefined {
  const command = COMMANDS.get(word ?? '');
  return command && { ...command.options, ...Object.fromEntries([LIST_OPTION, VERSION_OPTION]) };
}

function otherCommands(name: string, command: CommandName): string {
  const others = [...COMMANDS].flatMap(([other, { options }]) => (name in options ? other : []));
  return `--${name} is no option of ${command}, but of ${others.join(', ')}`;
}

/** Errors: INVALID_REQUEST for a command that there is not. */
function commandOf(
  values: GivenOptions,
  positionals: readonly string[],
): { readonly command: CommandName | undefined; readonly words: readonly string[] } {
  if (values[LIST_FLAG] !== undefined) return { command: 'list', words: positionals };
  const [first, ...words] = positionals;
  if (first === undefined) return { command: undefined, words };
  if (!isCommand(first)) {
    const names = [...COMMANDS.keys()];
    throw usage(
      `there is no command ${first}${meant(first, names)}; there are ${names.join(', ')}`,
    );
  }
  return { command: first, words };
}

function isCommand(word: string): word is CommandName {
  return COMMANDS.has(word);
}

function texts(values: GivenOptions, name: string): readonly string[] {
  return (values[name] ?? []).filter((value) => typeof value === 'string');
}

function pairsOf(option: string, given: readonly string[]): Readonly<Record<string, string>> {
  const pairs = new Map<string, string>();
  for (const text of given) {
    const end = text.indexOf('=');
    if (end < 1) throw usage(`--${option} ${text}: must be name=value`);
    const name = text.slice(0, end);
    if (pairs.has(name)) throw usage(`--${option} ${name}: is given more than once`);
    pairs.set(name, text.slice(end + 1));
  }
  return Object.fromEntries(pairs);
}

/** `key:value`, several values for a key. */
function matrixOf(given: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const chosen = new Map<string, string[]>();
  for (const text of given) {
    const end = text.indexOf(':');
    if (end < 1) throw usage(`--matrix ${text}: must be key:value`);
    const key = text.slice(0, end);
    chosen.set(key, [...(chosen.get(key) ?? []), text.slice(end + 1)]);
  }
  return Object.fromEntries(chosen);
}

function secretOf(text: string): { readonly name: string; readonly value: string | undefined } {
  const end = text.indexOf('=');
  // The text may be a value in the wrong place: it is not repeated.
  if (!/^[A-Za-z_]\w*(?:=|$)/.test(text)) throw usage('--secret: must be NAME or NAME=VALUE');
  return end < 0
    ? { name: text, value: undefined }
    : { name: text.slice(0, end), value: text.slice(end + 1) };
}

function choice<V extends string>(
  name: string,
  value: string | undefined,
  values: readonly V[],
): V | undefined {
  if (value === undefined) return undefined;
  const found = values.find((candidate) => candidate === value);
  if (found === undefined) throw usage(`--${name}: must be one of ${values.join(', ')}`);
  return found;
}

function integer(name: string, value: string | undefined, max: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (number < 1 || number > max) throw usage(`--${name}: must be a number from 1 to ${max}`);
  return number;
}
