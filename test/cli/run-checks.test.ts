import { expect, test } from 'vitest';
import { fine } from '../../src/cli/operate/doctor/observation.ts';
import { runChecks } from '../../src/cli/operate/doctor/run-checks.ts';

test('a check that throws, and one that does not end, have failed; the others count', async () => {
  const counts: number[] = [];
  const checks = [
    { name: 'silent', run: () => new Promise<never>(() => undefined) },
    { name: 'broken', run: () => Promise.reject(new Error('no such thing')) },
    { name: 'well', run: () => Promise.resolve([fine('yes'), fine('indeed')]) },
  ];
  expect(await runChecks(checks, (done) => counts.push(done), 20)).toEqual({
    isHanging: true,
    observations: [
      { check: 'silent', state: 'fail', seen: 'gave no answer within 0.02 s', advice: undefined },
      { check: 'broken', state: 'fail', seen: 'no such thing', advice: undefined },
      { check: 'well', state: 'ok', seen: 'yes' },
      { check: 'well', state: 'ok', seen: 'indeed' },
    ],
  });
  expect(counts).toEqual([1, 2, 3]);
});
