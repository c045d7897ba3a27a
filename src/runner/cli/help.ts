import { COMMANDS, type CliCommand, type CliOption } from './command-table.ts';

/** Where the texts begin. */
const COLUMN = 29;

/** The help of one command, or of all. */
export function helpText(name: string | undefined): string {
  const command = COMMANDS.get(name ?? '');
  return command === undefined ? helpOfAll() : helpOf(command);
}

function helpOf({ summary, usage, words, options, notes }: CliCommand): string {
  const lines = [
    summary,
    '',
    ...usage.map((text, index) => `${index === 0 ? 'Usage: ' : '       '}runner ${text}`),
    '',
    ...Object.entries(words).map(([word, text]) => `${`  ${word}`.padEnd(COLUMN)}${text}`),
    ...Object.entries(options).flatMap(([option, about]) => optionLines(option, about)),
    ...(notes === undefined ? [] : ['', notes]),
  ];
  return lines.join('\n');
}

function optionLines(name: string, { short, value, help }: CliOption): readonly string[] {
  const letter = short === undefined ? '    ' : `-${short}, `;
  const head = `  ${letter}--${name}${value === undefined ? '' : ` ${value}`}`;
  const isLong = head.length >= COLUMN - 1;
  const first = isLong ? [head] : [];
  return [
    ...first,
    ...help.map((text, index) => `${(index === 0 && !isLong ? head : '').padEnd(COLUMN)}${text}`),
  ];
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
