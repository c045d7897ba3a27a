import { expect, test } from 'vitest';
import { CODE_OF_REASON, codeNameOfReason } from '../../gateway/connect/connect-error.ts';
import { createMetrics } from './metrics.ts';

test('each reason counts under the name of its code, and none as unknown', async () => {
  const metrics = createMetrics({ version: '1', commit: 'c' });
  const reasons = Object.keys(CODE_OF_REASON);
  expect(reasons.length).toBeGreaterThan(30);
  for (const reason of reasons) metrics.decisionError('Check', codeNameOfReason(reason));
  const lines = (await metrics.render()).split('\n');
  const counts = lines
    .filter((line) => line.startsWith('authz_decision_errors_total{rpc="Check"'))
    .map((line) => [/reason="(\w+)"/.exec(line)?.[1], Number(line.split(' ')[1])] as const);
  expect(counts.find(([code]) => code === 'unknown')).toEqual(['unknown', 0]);
  expect(counts.reduce((sum, [, count]) => sum + count, 0)).toBe(reasons.length);
});
