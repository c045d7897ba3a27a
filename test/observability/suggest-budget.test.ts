import { expect, test } from 'vitest';
import { mergeUsages, quantile } from '../../scripts/budget/budget-report.ts';
import { suggestBudget } from '../../scripts/budget/suggest-budget.ts';

const SEEN = {
  effective: 1_000,
  lowest: 100,
  answered: 50,
  readsMax: 10,
  refused: 0,
  measured: [],
};
const took = (reads: number, exceeded = false) => ({ reads, exceeded });

test.each([
  ['nothing was asked', { ...SEEN, answered: 0, readsMax: 0 }, 'unknown', undefined],
  ['small questions', SEEN, 'keep', undefined],
  ['one near the budget', { ...SEEN, readsMax: 900 }, 'raise', 1_800],
  // What was answered says nothing of what was refused: 10 reads here, 1,234 there.
  ['a refused one', { ...SEEN, refused: 3, measured: [took(1_234)] }, 'raise', 2_500],
  [
    'a refused one that fits by now',
    { ...SEEN, refused: 3, measured: [took(400)] },
    'keep',
    undefined,
  ],
  [
    'one without end',
    { ...SEEN, refused: 1, measured: [took(64_001, true)] },
    'flatten',
    undefined,
  ],
  [
    'one without end among others',
    { ...SEEN, refused: 2, measured: [took(64_001, true), took(3_000)] },
    'flatten',
    6_000,
  ],
  ['batches alone', { ...SEEN, refused: 2 }, 'unknown', 2_000],
  ['below the floor', { ...SEEN, effective: 20, readsMax: 15 }, 'raise', 100],
  ['above what may be set', { ...SEEN, readsMax: 900_000_000 }, 'raise', 1_000_000_000],
])('%s', (_, seen, verdict, budget) => {
  expect(suggestBudget(seen)).toMatchObject({ verdict });
  expect(suggestBudget(seen).budget).toBe(budget);
});

test('figures of several instances are added up', () => {
  const usage = (buckets: readonly (readonly [string, string])[], max: string, since: string) => ({
    since,
    answered: String(buckets.reduce((sum, [, count]) => sum + Number(count), 0)),
    refused: '1',
    reads: '10',
    reads_max: max,
    buckets: buckets.map(([reads_max, count]) => ({ reads_max, count })),
  });
  const merged = mergeUsages([
    usage(
      [
        ['1', '900'],
        ['9', '90'],
      ],
      '9',
      '2026-01-02T00:00:00Z',
    ),
    usage(
      [
        ['9', '9'],
        ['127', '1'],
      ],
      '120',
      '2026-01-01T00:00:00Z',
    ),
  ]);
  expect(merged).toMatchObject({ answered: 1_000, refused: 2, reads: 20, readsMax: 120 });
  expect(merged.since).toBe('2026-01-01T00:00:00Z');
  expect([0.5, 0.99, 0.999, 1].map((part) => quantile(merged, part))).toEqual([1, 9, 9, 120]);
});
