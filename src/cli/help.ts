import { commandHelp } from '../command-line/command-help.ts';
import { COMMANDS, GROUPS, secondWords } from './command-table.ts';
import { PROGRAMS } from './core/command.ts';

const WIDTH = 19;

/** The help of one command or of a group such as `model`; the general help for any other name. */
export function helpText(name: string | undefined): string {
  const command = COMMANDS.get(name ?? '');
  if (command !== undefined) return commandHelp('gatehouse', command);
  const seconds = secondWords(name ?? '');
  return seconds.length === 0 ? helpOfAll() : helpOfGroup(name ?? '', seconds);
}

function row(name: string, summary: string): string {
  return `  ${name.padEnd(WIDTH)}${summary}`;
}

function helpOfGroup(name: string, seconds: readonly string[]): string {
  const rows = seconds.map((second) =>
    row(second, COMMANDS.get(`${name} ${second}`)?.summary ?? ''),
  );
  return `Usage: gatehouse ${name} <command> [options]

${rows.join('\n')}

\`gatehouse ${name} <command> --help\` says more.`;
}

function helpOfAll(): string {
  const groups = GROUPS.map(([title, table]) => {
    const rows = Object.entries(table).map(([name, { summary }]) => row(name, summary));
    return `${title}:\n${rows.join('\n')}`;
  });
  const programs = Object.entries(PROGRAMS).map(([name, summary]) => row(name, summary));
  return `Asks and operates Gatehouse: may this user do that?

Usage: gatehouse <command> [options]

Run:
${programs.join('\n')}

${groups.join('\n\n')}

\`gatehouse <command> --help\` says more, with examples; \`gatehouse --version\` names the version.
Services are on http://127.0.0.1:8080, or where GATEHOUSE_URL or a context says. Secrets come from
GATEHOUSE_TOKEN and GATEHOUSE_ADMIN_SECRET, files or contexts, never from arguments. NO_COLOR turns
colours off.
Exit codes: 0 yes or done, 1 no, 2 wrong command, 3 undecided, 4 no answer.`;
}
