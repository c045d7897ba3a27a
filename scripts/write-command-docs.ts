/** Writes docs/command.md from the table of commands; with --check only says whether it is up to date. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { GROUPS } from '../src/cli/command-table.ts';
import { HELP, PROJECT, READ, SERVICE, TENANT } from '../src/cli/core/options.ts';
import { helpText } from '../src/cli/help.ts';
import { type CliCommand, type CliOption, commandHelp } from '../src/command-line/command-help.ts';

type Options = Readonly<Record<string, CliOption>>;

const PATH = 'docs/command.md';
/** Options that many commands have, listed once; sets that hold another come before it. */
const SHARED: readonly (readonly [name: string, options: Options, extended: Options])[] = [
  ['tenant', TENANT, PROJECT],
  ['project', PROJECT, SERVICE],
  ['service', SERVICE, HELP],
  ['read', READ, {}],
];

const fenced = (text: string): string => `\`\`\`\n${text}\n\`\`\`\n`;
const without = (options: Options, others: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([key]) => !(key in others)));
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`);
const optionName = ([name, { value }]: readonly [string, CliOption]): string =>
  `\`--${name}${value === undefined ? '' : ` ${value}`}\``;

/** Usage, summary, own options, and the shared sets of which it has all. */
function row(command: CliCommand): string {
  let options = without(command.options, HELP);
  const sets: string[] = [];
  for (const [name, shared] of SHARED) {
    if (!Object.entries(shared).every(([key, option]) => command.options[key] === option)) continue;
    if (Object.keys(without(options, shared)).length === Object.keys(options).length) continue;
    options = without(options, shared);
    sets.push(name);
  }
  const usage = command.usage.map((text) => `\`gatehouse ${text.replace(' [options]', '')}\``);
  const own = Object.entries(options).map(optionName).join(', ');
  const cells = [usage.join('<br>'), command.summary, own, sets.join(', ')];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function group([title, table]: (typeof GROUPS)[number]): string {
  const commands = Object.values(table);
  const rows = commands.map(row).join('\n');
  const examples = commands.flatMap(({ examples: lines = [] }) => lines);
  const head =
    '| command | what it does | options | [shared options](#shared-options) |\n|---|---|---|---|';
  return `## ${title}\n\n${head}\n${rows}\n${examples.length === 0 ? '' : `\n${fenced(examples.join('\n'))}`}`;
}

function sharedOptions(): string {
  const sets = SHARED.map(([name, options, extended]) => {
    const lines = commandHelp('', {
      summary: '',
      usage: [],
      words: {},
      options: without(options, extended),
    });
    return `${name}:\n${lines.replace(/^\n+/, '')}`;
  });
  return `## Shared options\n\n\`tenant\` includes \`project\`, which includes \`service\`.\n\n${fenced(sets.join('\n'))}`;
}

const help = helpText(undefined);
const tail = help.slice(help.lastIndexOf('\n\n') + 2);
const text = [
  `# The command

Generated from \`src/cli/command-table.ts\` by \`npm run docs:command\`. In a checkout the command is \`node_modules/.bin/gatehouse\`, which \`npx gatehouse\` finds. It also starts the
programs \`serve\`, \`runner\`, \`load\` and \`verify\`.

${tail}
`,
  ...GROUPS.map(group),
  sharedOptions(),
].join('\n');
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
} else if (!existsSync(PATH) || readFileSync(PATH, 'utf8') !== text) {
  process.stderr.write(`${PATH} is out of date (npm run docs:command)\n`);
  process.exitCode = 1;
}
