import { commandHelp } from '../../command-line/command-help.ts';
import { COMMANDS } from './command-table.ts';

/** The help of one command, or of all. */
export function helpText(name: string | undefined): string {
  const command = COMMANDS.get(name ?? '');
  return command === undefined ? helpOfAll() : commandHelp('runner', command);
}

function helpOfAll(): string {
  const lines = Array.from(COMMANDS, ([name, { summary }]) => `  ${name.padEnd(9)}${summary}`);
  return `Runs the workflows of .github/workflows on this machine.

Usage: runner <command> [options]

${lines.join('\n')}

\`runner <command> --help\` tells more; \`runner -l\` is \`runner list\`, \`runner --version\` its version.
Through npm: \`npm run runner -- <command> …\`.
When a runner serves the workspace (npm run start:runner), the commands call it; RUNNER_API_TOKEN
is its token, else the one in .runner/api-token. NO_COLOR turns colours off.`;
}
