/** Writes docs/configuration.md; with --check only says whether it is up to date. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { configurationMarkdown } from '../src/config/configuration-markdown.ts';

const PATH = 'docs/configuration.md';

const text = configurationMarkdown();
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
} else if (!existsSync(PATH) || readFileSync(PATH, 'utf8') !== text) {
  console.error(`${PATH} is out of date (npm run docs:config)`);
  process.exitCode = 1;
}
