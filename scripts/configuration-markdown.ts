import type { Option, OptionTable } from '../src/config/option.ts';

/** The settings of one process as a chapter of docs/configuration.md. */
export type ConfigurationChapter = {
  readonly title: string;
  /** How it is started and where its table stands. */
  readonly intro: string;
  readonly prefix: string;
  readonly table: OptionTable;
};

const HEADER = `# Configuration

Generated from the tables in the code by \`npm run docs:config\`.

Settings are environment variables. An empty variable counts as unset. A start reports all problems together and ends with exit code 2; an unknown variable with the prefix of a
service is a problem, too. No log or message shows a secret value.

A secret setting may be in a file instead, whose path is \`NAME_FILE\`, for example \`RUNNER_API_TOKEN_FILE=/run/secrets/api-token\`:

- Prefer files. Every other process of the same user can read the variables that a process and its parents (npm, a shell) were started with.
- A file has at most 1 MiB; a line end at its end does not count. Lists may have one entry a line. Both variables at once are refused.
- Files are read at start. Those of service tokens, callers and the operator secret are read again whenever they change.
`;

/** Types whose values say enough. */
const CHOICES = new Set(['boolean', 'choice']);

/** docs/configuration.md: one chapter a process, one row a setting, in the order of the tables. */
export function configurationMarkdown(chapters: readonly ConfigurationChapter[]): string {
  return `${HEADER}\n${chapters.map(chapterText).join('\n')}`;
}

function chapterText({ title, intro, prefix, table }: ConfigurationChapter): string {
  const options: readonly Option<unknown>[] = Object.values(table);
  const head = '| setting | what it is | accepts | default |\n|---|---|---|---|';
  return `## ${title}\n\n${intro} Prefix: \`${prefix}\`.\n\n${head}\n${options.map(row).join('\n')}\n`;
}

function row(option: Option<unknown>): string {
  const { env, description, secret, type, unit, range, fallbackText } = option;
  const kind = secret ? `secret ${type}` : type;
  const accepts = CHOICES.has(type) ? range : `${kind}: ${range}`;
  const cells = [
    `\`${env}\``,
    description,
    unit === '' ? accepts : `${accepts} (${unit})`,
    fallbackText,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
}
