import { parseArgs } from 'node:util';
import { AppError } from '../../../shared/app-error.ts';
import type { RunStatus, SandboxStrategy } from '../../model/run.ts';
import { COMMANDS, type CommandName } from './help.ts';

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

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  workspace: { type: 'string', short: 'w' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean', short: 'q' },
  input: { type: 'string', short: 'i', multiple: true },
  event: { type: 'string' },
  payload: { type: 'string' },
  strategy: { type: 'string' },
  ref: { type: 'string' },
  'allow-push': { type: 'boolean' },
  status: { type: 'string' },
  workflow: { type: 'string' },
  limit: { type: 'string' },
  job: { type: 'string' },
  step: { type: 'string' },
  tail: { type: 'string' },
  failed: { type: 'boolean' },
  env: { type: 'string' },
  backend: { type: 'string' },
  update: { type: 'boolean' },
} as const;
type OptionName = keyof typeof OPTIONS;

/** Which options a command takes beside `--help` and `--workspace`. */
const TAKES: Readonly<Record<CommandName, readonly OptionName[]>> = {
  run: ['json', 'quiet', 'input', 'event', 'payload', 'strategy', 'ref', 'allow-push'],
  list: ['json'],
  runs: ['json', 'status', 'workflow', 'limit'],
  logs: ['job', 'step', 'tail'],
  approve: [],
  cancel: [],
  rerun: ['json', 'quiet', 'failed', 'job'],
  secrets: ['env', 'backend'],
  actions: ['json', 'update'],
};

export type CommandLine = {
  /** Undefined: the help of all commands. */
  readonly command: CommandName | undefined;
  readonly isHelp: boolean;
  readonly words: readonly string[];
  readonly workspace: string | undefined;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly inputs: Readonly<Record<string, string>>;
  readonly event: string | undefined;
  readonly payload: string | undefined;
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
  const { values, positionals } = parsed(args);
  const [first, ...words] = positionals;
  const command = first === undefined ? undefined : commandOf(first);
  if (command !== undefined) {
    const known: readonly string[] = [...TAKES[command], 'help', 'workspace'];
    const wrong = Object.keys(values).find((name) => !known.includes(name));
    if (wrong !== undefined) throw usage(`--${wrong} is no option of ${command}`);
  }
  return {
    command,
    isHelp: values.help === true || first === undefined,
    words,
    workspace: values.workspace,
    isJson: values.json === true,
    isQuiet: values.quiet === true,
    inputs: inputsOf(values.input ?? []),
    event: values.event,
    payload: values.payload,
    strategy: choice('strategy', values.strategy, STRATEGIES),
    ref: values.ref,
    isPushAllowed: values['allow-push'] === true,
    status: choice('status', values.status, STATUSES),
    workflow: values.workflow,
    limit: integer('limit', values.limit, LIMIT_MAX) ?? LIMIT_DEFAULT,
    job: values.job,
    step: integer('step', values.step, LIMIT_MAX * LIMIT_MAX),
    tail: integer('tail', values.tail, LIMIT_MAX * LIMIT_MAX),
    isFailedOnly: values.failed === true,
    environment: values.env,
    backend: values.backend,
    isUpdate: values.update === true,
  };
}

/** How the command line is used wrongly. */
export function usage(problem: string): AppError {
  return new AppError('INVALID_REQUEST', problem);
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Its texts are made for whoever typed the arguments.
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

function commandOf(word: string): CommandName {
  const found = COMMANDS.find((name) => name === word);
  if (found === undefined) {
    throw usage(`there is no command ${word}; there are ${COMMANDS.join(', ')}`);
  }
  return found;
}

function inputsOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const inputs = new Map<string, string>();
  for (const text of texts) {
    const end = text.indexOf('=');
    if (end < 1) throw usage(`--input ${text}: must be name=value`);
    const name = text.slice(0, end);
    if (inputs.has(name)) throw usage(`--input ${name}: is given more than once`);
    inputs.set(name, text.slice(end + 1));
  }
  return Object.fromEntries(inputs);
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
