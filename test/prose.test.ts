/* Documents read as plain English: short sentences, verb first, the field's words (CONTRIBUTING.md). */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCUMENTS } from './support/documents.ts';
import { bareDocComments, lengthsOf, proseFaults, sentencesOf } from './support/prose.ts';

const GENERATED = new Set([
  'docs/api.md',
  'docs/benchmarks.md',
  'docs/command.md',
  'docs/configuration.md',
  'docs/invariants.md',
  'docs/limits.md',
]);
const WRITTEN = [...DOCUMENTS, ...globSync('scripts/**/*.md')].filter(
  (path) => !GENERATED.has(path),
);
const textOf = (path: string): string => readFileSync(path, 'utf8');
const MEDIAN_MAX = 15;
const P90_MAX = 25;
/** Lines of all documents that are written by hand: a ceiling that only goes down. */
const LINES_MAX = 5_217;

test.each(WRITTEN)('%s has short sentences', (path) => {
  const { median, p90 } = lengthsOf(textOf(path));
  expect(median, 'words of the median sentence').toBeLessThanOrEqual(MEDIAN_MAX);
  expect(p90, 'words at the 90th percentile').toBeLessThanOrEqual(P90_MAX);
});

test.each(WRITTEN)('%s opens no clause bare and uses no banned word', (path) => {
  expect(proseFaults(textOf(path))).toEqual([]);
});

test('documents that are written by hand do not grow', () => {
  const lines = WRITTEN.map((path) => textOf(path).split('\n').length - 1);
  expect(lines.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(LINES_MAX);
});

/** Of the runner and the notification service. A ceiling that only goes down: lower it with each file that is put right. */
const BARE_DOC_COMMENTS_MAX = 521;

test('doc comments begin with what a thing is or does', () => {
  const bare = globSync('src/**/*.ts')
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !path.includes('/gen/'))
    .flatMap((path) => bareDocComments(readFileSync(path, 'utf8')).map((one) => `${path}: ${one}`));
  const isOfOthers = (one: string): boolean => /^src\/(?:runner|notify)\//.test(one);
  expect(bare.filter((one) => !isOfOthers(one))).toEqual([]);
  expect(bare.filter(isOfOthers).length).toBeLessThanOrEqual(BARE_DOC_COMMENTS_MAX);
});

test('faults are found in prose alone', () => {
  const text = 'As it reads, it is long.\n\n- Ask a question.\n\n`question`\n\n```\nFor it.\n```\n';
  expect(proseFaults(text).map((fault) => fault.split(' ').slice(0, 3).join(' '))).toEqual([
    'opens with "As":',
  ]);
  expect(proseFaults('It answers a question at once.')).toHaveLength(1);
  expect(sentencesOf('One two three four. Five six seven eight.')).toHaveLength(2);
  expect(lengthsOf('One two three four. One two three four five.')).toEqual({ median: 4, p90: 4 });
  const comments = '/** Of a kind. */\n/**\n * What it is. */\n/** Official. */\n/** Whatever. */';
  expect(bareDocComments(comments)).toEqual(['Of a kind. */', 'What it is. */']);
});
