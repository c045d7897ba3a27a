/** Writes docs/configuration.md; with --check only says whether it is up to date. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { OPTIONS } from '../src/config/options.ts';
import { NOTIFY_OPTIONS } from '../src/notify/service/settings.ts';
import { RUNNER_OPTIONS } from '../src/runner/settings/settings.ts';
import { configurationMarkdown, type ConfigurationChapter } from './configuration-markdown.ts';

const PATH = 'docs/configuration.md';
const CHAPTERS: readonly ConfigurationChapter[] = [
  {
    title: 'Authorization service',
    intro: 'Started by `npm start`; from `src/config/options.ts`.',
    prefix: 'GATEWAY_',
    table: OPTIONS,
  },
  {
    title: 'Workflow runner',
    intro: 'Started by `npm run start:runner`; from `src/runner/settings/settings.ts`.',
    prefix: 'RUNNER_',
    table: RUNNER_OPTIONS,
  },
  {
    title: 'Notification service',
    intro: 'Started by `npm run start:notify`; from `src/notify/service/settings.ts`.',
    prefix: 'NOTIFY_',
    table: NOTIFY_OPTIONS,
  },
];

const text = configurationMarkdown(CHAPTERS);
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
} else if (!existsSync(PATH) || readFileSync(PATH, 'utf8') !== text) {
  console.error(`${PATH} is out of date (npm run docs:config)`);
  process.exitCode = 1;
}
