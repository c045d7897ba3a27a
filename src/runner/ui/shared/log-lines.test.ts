import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LogLines, type LogRow } from './log-lines.ts';

const linesFrom = (first: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `line ${first + index}`);

function rowsOf(log: LogLines): LogRow[] {
  return Array.from({ length: log.rowCount }, (_, index) => log.row(index)).filter(
    (row) => row !== undefined,
  );
}

test('the first line shown has its own number, and what is left out is said and can be loaded', () => {
  const log = new LogLines();
  log.add(101, linesFrom(101, 3));
  expect([log.total, log.missing]).toEqual([103, 100]);
  expect(rowsOf(log)).toEqual([
    { kind: 'gap', from: 1, to: 100 },
    { kind: 'line', number: 101, text: 'line 101' },
    { kind: 'line', number: 102, text: 'line 102' },
    { kind: 'line', number: 103, text: 'line 103' },
  ]);
  log.add(10, linesFrom(10, 2));
  expect(rowsOf(log).map((row) => (row.kind === 'gap' ? row : row.number))).toEqual([
    { kind: 'gap', from: 1, to: 9 },
    10,
    11,
    { kind: 'gap', from: 12, to: 100 },
    101,
    102,
    103,
  ]);
  expect([log.rowOf(11), log.rowOf(12), log.rowOf(103)]).toEqual([2, undefined, 6]);
  log.add(1, linesFrom(1, 100));
  expect([log.missing, log.rowCount, log.rowOf(1)]).toEqual([0, 103, 0]);
});

test('whatever pages come in whatever order, each line stands once, in order, under its number', () => {
  const page = fc.record({ first: fc.integer({ min: 1, max: 60 }), count: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(page, { minLength: 1, maxLength: 12 }), (pages) => {
      const log = new LogLines();
      const held = new Set<number>();
      for (const { first, count } of pages) {
        log.add(first, linesFrom(first, count));
        for (let number = first; number < first + count; number++) held.add(number);
      }
      const rows = rowsOf(log);
      const lines = rows.filter((row) => row.kind === 'line');
      expect(lines.map(({ number }) => number)).toEqual([...held].toSorted((a, b) => a - b));
      expect(lines.every(({ number, text }) => text === `line ${number}`)).toBe(true);
      const gaps = rows.filter((row) => row.kind === 'gap');
      const left = gaps.reduce((sum, { from, to }) => sum + to - from + 1, 0);
      expect([log.missing, log.total]).toEqual([left, Math.max(0, ...held)]);
      for (const [index, row] of rows.entries()) {
        if (row.kind === 'line') expect(log.rowOf(row.number)).toBe(index);
      }
    }),
  );
});

test('a log that goes on and on keeps its end, what the reader is at, and right numbers', () => {
  const log = new LogLines();
  for (let first = 1; first < 1_000_000; first += 10_000)
    log.add(first, linesFrom(first, 10_000), 500);
  expect(log.total).toBe(1_000_000);
  expect(log.total - log.missing).toBeLessThanOrEqual(320_000);
  expect(log.row(log.rowOf(500) ?? -1)).toEqual({ kind: 'line', number: 500, text: 'line 500' });
  expect(log.row(log.rowCount - 1)).toMatchObject({ number: 1_000_000, text: 'line 1000000' });
  log.clear();
  expect([log.total, log.rowCount, log.missing]).toEqual([0, 0, 0]);
});
