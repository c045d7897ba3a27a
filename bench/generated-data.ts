// Data of benchmarks that read files; yields nothing by itself.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { BENCH_SEED } from './worker-data.ts';

const QUESTIONS = 50_000;

/**
 * The directory of a benchmark's data: the one named, else one made from the data set and removed
 * when the process ends. Files: tuples.jsonl, and questions with their answers in mixu.jsonl (uniform)
 * and mix.jsonl (Zipf). BENCH_SCALE is the size, 1 being 101,000 tuples; 10 takes about 10 s to make.
 */
export function dataDirectory(named: string | undefined): string {
  if (named !== undefined) return named;
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-data-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const world = new World(Number(process.env['BENCH_SCALE'] ?? 1), BENCH_SEED);
  writeLines(join(directory, 'tuples.jsonl'), world.tuples);
  for (const [file, spread] of [
    ['mixu.jsonl', 'uniform'],
    ['mix.jsonl', 'zipf'],
  ] as const) {
    const questions = mixedQuestions(world, QUESTIONS, spread).map((question) => ({
      namespace: 'doc',
      object_id: question.objectId,
      relation: 'viewer',
      subject: `user:${question.userId}`,
      allow: question.allow,
    }));
    writeLines(join(directory, file), questions);
  }
  return directory;
}

function writeLines(path: string, values: readonly object[]): void {
  const parts: string[] = [];
  for (const value of values) parts.push(JSON.stringify(value), '\n');
  writeFileSync(path, parts.join(''));
}
