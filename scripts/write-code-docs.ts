/** Writes docs/limits.md and docs/invariants.md from the code; with --check only says whether they are up to date. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { OPTIONS } from '../src/config/options.ts';
import { invariantsMarkdown } from './code-docs/invariants.ts';
import { LIMITS } from './code-docs/limit-table.ts';
import { limitsMarkdown } from './code-docs/limits.ts';

const sources = globSync('src/**/*.ts', { exclude: ['**/gen/**', '**/*.test.ts'] })
  .map((path) => path.replaceAll('\\', '/'))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }));
const documents: Readonly<Record<string, string>> = {
  'docs/limits.md': limitsMarkdown(LIMITS, OPTIONS, sources),
  'docs/invariants.md': invariantsMarkdown(sources),
};

for (const [path, text] of Object.entries(documents)) {
  if (!process.argv.includes('--check')) {
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    console.error(`${path} is out of date (npm run docs:code)`);
    process.exitCode = 1;
  }
}
