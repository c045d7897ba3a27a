import { commandHelp } from '../../command-line/command-help.ts';
import { COMMANDS } from './command-table.ts';

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
