import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { MeasuredRecord } from '../../bench/harness/record.ts';
import { benchmarkMarkdown } from '../../scripts/benchmarks/benchmark-markdown.ts';

test('--json writes a record with machine, load, commit and results, which the page shows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'record.json');
  const args = ['bench/run.ts', 'token-compared', '--ms', '2', '--json', file];
  await promisify(execFile)(process.execPath, args);

  const record = JSON.parse(readFileSync(file, 'utf8')) as MeasuredRecord;
  expect(record).toMatchObject({ title: 'token-compared', programs: [], comparisons: [] });
  expect(record.command).toContain('npm run bench -- token-compared --ms 2');
  expect(record.date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(record.commit).toMatch(/^[0-9a-f]{7,}\+?$/);
  expect(record.machine.cores).toBeGreaterThan(0);
  expect(record.load.after).toBeGreaterThanOrEqual(0);
  expect(record.micro.map(({ name }) => name)).toEqual(['token-compared']);
  const page = benchmarkMarkdown([record]);
  expect(page).toContain(`commit ${record.commit}; ${record.machine.cores} cores of `);
  expect(page).toContain('| `token-compared` | ns per call');
}, 120_000);
