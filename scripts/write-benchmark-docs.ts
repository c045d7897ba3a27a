/** Writes docs/benchmarks.md from bench/results; with --check only says whether it is up to date. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { benchmarkMarkdown, type BenchmarkRecord } from './benchmarks/benchmark-markdown.ts';

const PATH = 'docs/benchmarks.md';
const records = globSync('bench/results/*.json')
  .toSorted()
  .map((path) => JSON.parse(readFileSync(path, 'utf8')) as BenchmarkRecord);

const text = benchmarkMarkdown(records);
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
} else if (!existsSync(PATH) || readFileSync(PATH, 'utf8') !== text) {
  console.error(`${PATH} is out of date (npm run docs:benchmarks)`);
  process.exitCode = 1;
}
