import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkHistory } from '../../verify/checker/check-history.ts';
import { byLength } from '../support/test-length.ts';
import { type SimulatedFault, simulateHistory } from './simulated-history.ts';

const seeds = fc.integer({ min: 0, max: 1_000_000 }).map(String);

function check(
  seed: string,
  fault: SimulatedFault,
  { unknownPercent = 0, isResolved = false, operations = 400 } = {},
) {
  const shape = { operations, clients: 6, unknownPercent, isResolved };
  return checkHistory(simulateHistory({ seed, fault, ...shape }));
}

const UNKNOWN = [
  { unknownPercent: 0 },
  { unknownPercent: 1 },
  { unknownPercent: 10, isResolved: true },
] as const;

test('what a right service does is linearizable, with unknown outcomes too', () => {
  fc.assert(
    fc.property(seeds, fc.constantFrom(...UNKNOWN), (seed, unknown) => {
      const { violations, undecided, brokenRules } = check(seed, 'none', unknown);
      expect(violations.map(({ verdict }) => verdict)).toEqual([]);
      expect([undecided, brokenRules]).toEqual([[], []]);
    }),
    { numRuns: byLength(8, 60) },
  );
});

describe('a service with a fault is found out', () => {
  test.each<SimulatedFault>([
    'stale-read',
    'lost-write',
    'called-failed',
    'token-ignored',
    'torn-batch',
    'stale-model',
    'same-token',
  ])('%s', (fault) => {
    const found = Array.from({ length: byLength(3, 20) }, (_, i) => {
      const { violations, undecided, brokenRules } = check(`${fault} ${i}`, fault, {
        unknownPercent: 5,
        isResolved: true,
        operations: 800,
      });
      expect(undecided).toEqual([]);
      return violations.length + brokenRules.length > 0;
    });
    expect(found.filter(Boolean).length).toBeGreaterThanOrEqual(byLength(2, 18));
  });
});

test('a violation is shown by few reads', () => {
  const { violations } = check('shown', 'stale-read');
  const [violation] = violations;
  expect(violation?.verdict.kind).toBe('violation');
  const reads = violation?.operations.filter(({ action }) => action.kind === 'read') ?? [];
  expect(reads.length).toBeLessThanOrEqual(3);
});

test('the search stays narrow where tokens give the order of writes', () => {
  const operations = 6_000;
  const report = check('long', 'none', { unknownPercent: 3, isResolved: true, operations });
  expect(report.violations).toEqual([]);
  expect(report.undecided).toEqual([]);
  expect(report.steps).toBeLessThan(operations * 60);
  expect(report.widest).toBeLessThan(200);
});
