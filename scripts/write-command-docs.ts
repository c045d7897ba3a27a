/** Writes docs/command.md from the table of commands; with --check only says whether it is up to date. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { GROUPS } from '../src/cli/command-table.ts';
import { helpText } from '../src/cli/help.ts';

const PATH = 'docs/command.md';
const HEAD = `# The command

\`npm run docs:command\` writes this file from \`src/cli/command-table.ts\`. In a checkout the command is
\`node_modules/.bin/gatehouse\`, which \`npx gatehouse\` finds.

`;

const blocks = [undefined, ...GROUPS.flatMap(([, table]) => Object.keys(table))].map((name) => {
  const title = name === undefined ? '' : `## gatehouse ${name}\n\n`;
  return `${title}\`\`\`\n${helpText(name)}\n\`\`\`\n`;
});
const text = HEAD + blocks.join('\n');
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
} else if (!existsSync(PATH) || readFileSync(PATH, 'utf8') !== text) {
  process.stderr.write(`${PATH} is out of date (npm run docs:command)\n`);
  process.exitCode = 1;
}
