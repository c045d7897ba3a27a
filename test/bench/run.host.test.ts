import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { PROGRAMS } from '../../bench/harness/programs.ts';
import type { MeasuredRecord } from '../../bench/harness/record.ts';
import { benchmarkMarkdown } from '../../scripts/benchmarks/benchmark-markdown.ts';

const TIMEOUT_MS = 120_000;

async function bench(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/run.ts', ...args]);
  return stdout;
}

test('without a name it lists every benchmark', async () => {
  const listed = await bench();
  for (const { name, yields } of PROGRAMS) expect(listed).toContain(`${name.padEnd(14)} ${yields}`);
});

test.each([
  [['no-such-benchmark'], 'there is no benchmark "no-such-benchmark"'],
  [['lists', '--seconds', '0'], '--seconds must be at least 0.1'],
])('%j ends with 2 and says why', async (args, message) => {
  await expect(bench(...args)).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(message) as string,
  });
});

test(
  '--json writes a record with machine, load, commit and rows, which the page shows as a table',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'record.json');
    await bench('index-memory', '--scale', '0.1', '--json', file);

    const record = JSON.parse(readFileSync(file, 'utf8')) as MeasuredRecord;
    expect(record.command).toContain('npm run bench -- index-memory --scale 0.1');
    expect(record.date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(record.commit).toMatch(/^[0-9a-f]{7,}\+?$/);
    expect(record.machine.cores).toBeGreaterThan(0);
    expect(record.load.after).toBeGreaterThanOrEqual(0);
    const [program] = record.programs;
    expect(program?.results.map(({ order }) => order)).toEqual(['loaded', 'written']);
    const page = benchmarkMarkdown([record]);
    expect(page).toContain(`commit ${record.commit}; ${record.machine.cores} cores of `);
    expect(page).toContain('| order | tuples | bytes per tuple |');
  },
  TIMEOUT_MS,
);

test(
  'Checks go to a service and a raw echo in turns, and the rows say which is which',
  async () => {
    // A busy machine may answer nothing within a tenth of a second.
    const stdout = await bench('check-http', '--seconds', '1', '--rounds', '1', '--scale', '0.1');
    const { programs } = JSON.parse(stdout) as Pick<MeasuredRecord, 'programs'>;
    const rows = programs[0]?.results ?? [];
    expect(rows.map(({ contestant }) => contestant)).toEqual([
      'this checkout',
      'raw echo',
      'this checkout',
      'raw echo',
    ]);
    for (const { perSecond } of rows) expect(perSecond).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
