import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { commandHelp } from '../../command-line/command-help.ts';
import { usage } from '../../command-line/parse-words.ts';
import { Terminal } from '../../command-line/terminal.ts';
import { type Environment, validOrExit } from '../../config/load-options.ts';
import { packageVersion } from '../../observability/build-info.ts';
import { AppError } from '../../shared/app-error.ts';
import type { RunnerErrorReason } from '../model/reasons.ts';
import { loadRunnerSettings, RUNNER_OPTIONS } from '../settings/settings.ts';
import { parseCommandLine, type CommandLine } from './arguments.ts';
import { COMMANDS } from './command-table.ts';
import type { LocalRunner } from './local-runner.ts';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;
/** What the caller can put right on the command line or in the workflow. */
const USAGE_REASONS: ReadonlySet<string> = new Set<RunnerErrorReason>([
  'INVALID_REQUEST',
  'INVALID_INPUTS',
  'INVALID_WORKFLOW',
  'INVALID_NAME',
  'INVALID_VALUE',
  'INVALID_REF',
  'EVENT_NOT_MATCHED',
  'WORKFLOW_NOT_FOUND',
  'AMBIGUOUS_WORKFLOW',
  'RUN_NOT_FOUND',
  'SECRET_NOT_FOUND',
  'CONFIG_INVALID',
]);

const output = new Terminal(process.stdout, process.env);
const notes = new Terminal(process.stderr, process.env);

/**
 * Does what the arguments say and writes to the streams of the process. `environment` holds the settings and
 * the secrets of jobs; `local` is the runner that works where no other one serves the workspace. Resolves with the exit code: 0, 1 for a run or a call that
 * failed, 2 for what the caller can put right. Never rejects.
 */
export async function runCommandLine(
  args: readonly string[],
  environment: Environment,
  local: LocalRunner,
): Promise<number> {
  // A reader that went away (`| head`) wants no more. What nobody read is not 0, which would be a run that succeeded.
  process.stdout.on('error', () => process.exit(EXIT_FAILURE));
  let line: CommandLine | undefined;
  try {
    line = parseCommandLine(args);
    if (line.isVersion) {
      output.line(`gatehouse-runner ${packageVersion()}`);
      return 0;
    }
    if (line.isHelp) {
      output.line(helpText(line.command));
      return args.length === 0 ? EXIT_USAGE : 0;
    }
    return await execute(line, environment, local);
  } catch (error) {
    return report(error, line);
  }
}

async function execute(
  line: CommandLine,
  environment: Environment,
  local: LocalRunner,
): Promise<number> {
  const named =
    line.workspace === undefined
      ? environment
      : { ...environment, [RUNNER_OPTIONS.workspace.env]: line.workspace };
  const settings = validOrExit(() => loadRunnerSettings(named));
  const workspace = resolve(settings.workspace);
  if (statSync(workspace, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw usage(`${settings.workspace} is not a folder`);
  }
  if (line.command !== 'list' && !line.isDryRun) local.conceal();
  // Loaded late: wrong arguments and help are answered at once.
  const { runCommand } = await import('./commands.ts');
  // Lines of the log would stand between those of the run; who wants them asks.
  const isAsked = process.env[RUNNER_OPTIONS.logLevel.env] !== undefined;
  const logLevel = isAsked ? settings.logLevel : 'error';
  const version = packageVersion();
  const context = { settings, logLevel, version, workspace, environment, local };
  return runCommand(line, context, { output, notes });
}

/** Says what went wrong, each field on a line of its own; the exit code. */
function report(error: unknown, line: CommandLine | undefined): number {
  if (!(error instanceof AppError)) {
    notes.line(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return EXIT_FAILURE;
  }
  const { reason, message, metadata } = error;
  const head = notes.paint('error:', 'red');
  if (reason === 'INVALID_INPUTS' && Object.keys(metadata).length > 0) {
    notes.line(`${head} the inputs are wrong`);
    for (const [name, problem] of Object.entries(metadata)) {
      notes.line(`  ${notes.paint(notes.foreign(name), 'bold')}: ${notes.foreign(problem)}`);
    }
  } else {
    for (const [index, text] of message.split('; ').entries()) {
      notes.line(`${index === 0 ? head : '      '} ${notes.foreign(text)}`);
    }
  }
  if (reason === 'INVALID_REQUEST') {
    notes.line(
      `See: gatehouse-runner ${line?.command === undefined ? '' : `${line.command} `}--help`,
    );
  }
  if (reason === 'UNAUTHORIZED') notes.line('Set RUNNER_API_TOKEN to the token of the runner.');
  return USAGE_REASONS.has(reason) ? EXIT_USAGE : EXIT_FAILURE;
}

/** The help of one command, or of all. */
export function helpText(name: string | undefined): string {
  const command = COMMANDS.get(name ?? '');
  return command === undefined ? helpOfAll() : commandHelp('gatehouse-runner', command);
}

function helpOfAll(): string {
  const lines = Array.from(COMMANDS, ([name, { summary }]) => `  ${name.padEnd(9)}${summary}`);
  return `Runs the workflows of .github/workflows on this machine.

Usage: gatehouse-runner <command> [options]

${lines.join('\n')}

\`gatehouse-runner <command> --help\` says more; \`-l\` alone is \`list\`, \`--version\` the version.
When a runner serves the workspace (\`serve\`), the commands call it; RUNNER_API_TOKEN
is its token, else the one in .runner/api-token. NO_COLOR turns colours off.`;
}
