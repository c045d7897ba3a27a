import type { Option, OptionTable } from './option.ts';
import { fileVariableOf } from './secret-file.ts';

/** The settings of one process as a chapter of docs/configuration.md. */
export type ConfigurationChapter = {
  readonly title: string;
  /** How it is started and where its table stands. */
  readonly intro: string;
  readonly prefix: string;
  readonly table: OptionTable;
};

const HEADER = `# Configuration

Settings come from environment variables. An empty variable counts as unset. All problems are reported
together at start, with exit code 2; a variable with the prefix of a service that is not listed here is
one of them. Secret values appear in no log or message.

A setting that is marked secret may stand in a file instead: \`NAME_FILE\` is the path of it, for
\`RUNNER_API_TOKEN\` for example \`RUNNER_API_TOKEN_FILE=/run/secrets/api-token\`. The file is read at start, at
most 1 MiB, and one line end at its end does not count; those of service tokens, callers and the operator secret are read again
whenever they change. Lists may have their entries on lines of their own; both variables at once are refused. Prefer files: what
a process was started with can be read by every other process of its user, its parents' (npm, a shell) included.

This file is generated from the tables in the code by \`npm run docs:config\`.
`;

/** docs/configuration.md: one chapter a process, one section a setting, in the order of the tables. */
export function configurationMarkdown(chapters: readonly ConfigurationChapter[]): string {
  return `${HEADER}\n${chapters.map(chapterText).join('\n')}`;
}

function chapterText({ title, intro, prefix, table }: ConfigurationChapter): string {
  const options: readonly Option<unknown>[] = Object.values(table);
  return `## ${title}\n\n${intro} Prefix: \`${prefix}\`.\n\n${options.map(section).join('\n')}`;
}

function section(option: Option<unknown>): string {
  const unit = option.unit === '' ? '' : `, ${option.unit}`;
  const secret = option.secret ? `, secret (or in a file: \`${fileVariableOf(option.env)}\`)` : '';
  return [
    `### ${option.env}`,
    '',
    option.description,
    '',
    `- Type: ${option.type}${unit}${secret}`,
    `- Accepts: ${option.range}`,
    `- Default: ${option.fallbackText}`,
    '',
  ].join('\n');
}
