import type { Option } from './option.ts';
import { OPTIONS } from './options.ts';

const HEADER = `# Configuration

Settings come from environment variables. An empty variable counts as unset. All problems are reported
together at start, with exit code 2; a \`GATEWAY_\` variable that is not listed here is one of them.
Secret values appear in no log or message.

This file is generated from \`src/config/options.ts\` by \`npm run docs:config\`.
`;

/** docs/configuration.md: one section a setting, in the order of the table. */
export function configurationMarkdown(): string {
  const options: readonly Option<unknown>[] = Object.values(OPTIONS);
  return `${HEADER}\n${options.map(section).join('\n')}`;
}

function section(option: Option<unknown>): string {
  const unit = option.unit === '' ? '' : `, ${option.unit}`;
  const secret = option.secret ? ', secret' : '';
  return [
    `## ${option.env}`,
    '',
    option.description,
    '',
    `- Type: ${option.type}${unit}${secret}`,
    `- Accepts: ${option.range}`,
    `- Default: ${option.fallbackText}`,
    '',
  ].join('\n');
}
