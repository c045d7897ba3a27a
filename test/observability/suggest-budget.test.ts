import { expect, test } from 'vitest';
import type { RefusedJson } from '../../src/cli/operate/budget/budget-json.ts';
import { mergeUsages, projectLines, quantile } from '../../src/cli/operate/budget/budget-report.ts';
import { suggestBudget } from '../../src/cli/operate/budget/suggest-budget.ts';

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

function refusedQuestion(object: number): RefusedJson {
  return {
    rpc: 'Check',
    tenant_id: 't',
    relation: 'doc#viewer',
    object_id: `o${object}`,
    subject: 'user:u',
    limit: '100',
    batch: false,
    request_id: `r${object}`,
    caller: '',
    refused_at: '2026-01-01T00:00:00Z',
  };
}

test('every refused question that is known is listed, and how many are not', () => {
  const questions = Array.from({ length: 50 }, (_, i) => refusedQuestion(i));
  const budget = {
    project_id: 'p',
    effective_max_check_reads: 100,
    source: 'READ_BUDGET_SOURCE_PROJECT',
    default_max_check_reads: 1_000,
    lowest_max_check_reads: 100,
    refused_questions: questions,
  };
  const usage = { answered: '0', reads: '0', reads_max: '0', buckets: [] };
  const measured = questions
    .slice(0, 20)
    .map((question) => ({ question, reads: '200', exceeded: false, error: '' }));
  const linesOf = (refused: string): readonly string[] =>
    projectLines({
      budgets: [{ ...budget, usage: { ...usage, refused } }],
      measured: [{ ceiling: 1_000, questions: measured }],
    });
  const lines = linesOf('1234');
  for (const { request_id: id } of questions) {
    expect(lines.filter((line) => line.endsWith(`request ${id}`))).toHaveLength(1);
  }
  expect(lines).toContain(
    '50 of 1234 refused questions are listed: the other 1184 are not remembered by the service, which keeps the latest ones',
  );
  expect(linesOf('50').join('\n')).not.toContain('not remembered');
});
