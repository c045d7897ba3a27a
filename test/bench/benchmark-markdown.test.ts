import { expect, test } from 'vitest';
import {
  type BenchmarkRecord,
  benchmarkMarkdown,
} from '../../scripts/benchmarks/benchmark-markdown.ts';

const TRANSCRIBED: BenchmarkRecord = {
  title: 'Old',
  command: 'npm run bench -- old; by hand',
  about: ['What it is.'],
  date: '2026-11',
  commit: 'transcribed',
  machine: 'a machine',
  load: 'quiet',
  tables: [{ caption: 'Rows', columns: ['a', 'b'], rows: [['1 | 2', 'x'], ['short']] }],
};
const MEASURED: BenchmarkRecord = {
  title: 'new',
  command: 'npm run bench -- new',
  date: '2026-11-26',
  commit: 'abc123',
  machine: { node: 'v22.1.0', cpu: 'Some CPU', cores: 2, memoryGiB: 8 },
  load: { before: 0.5, after: 1.2 },
  programs: [
    {
      name: 'long',
      yields: 'things',
      code: 3,
      results: [
        { load: 'all | one', perSecond: 12_345.6 },
        { load: 'half', p99Ms: 0.25 },
      ],
    },
  ],
};

test('a transcribed record shows its source, its captions and whole rows', () => {
  const page = benchmarkMarkdown([TRANSCRIBED]);
  expect(page).toContain(
    '`npm run bench -- old`, by hand\n2026-11, commit transcribed; a machine; quiet.',
  );
  expect(page).toContain('Rows:\n\n| a | b |\n|---|---|\n| 1 \\| 2 | x |\n| short |  |\n');
});

test('a measured record shows machine, load, commit, exit code and a table of its rows', () => {
  const page = benchmarkMarkdown([MEASURED]);
  expect(page).toContain(
    '2026-11-26, commit abc123; 2 cores of Some CPU, 8 GiB; Node.js 22.1.0; load 0.5 before, 1.2 after.',
  );
  expect(page).toContain(`\`long\`: things. It ended with exit code 3.

| load | per second | p99 ms |
|---|---|---|
| all \\| one | 12,345.6 |  |
| half |  | 0.25 |
`);
});

test('records follow each other in the given order', () => {
  const page = benchmarkMarkdown([MEASURED, TRANSCRIBED]);
  expect(page.indexOf('## new')).toBeLessThan(page.indexOf('## Old'));
});
