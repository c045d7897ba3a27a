import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearestName } from './nearest-name.ts';

describe('what is suggested for a name', () => {
  test.each([
    ['viewr', ['owner', 'viewer'], 'viewer'],
    ['onwer', ['viewer', 'owner'], 'owner'],
    ['dcos', ['docs', 'seat'], 'docs'],
    ['documnt', ['document', 'folder'], 'document'],
    ['ower', ['owner', 'power'], 'owner'],
    ['team', ['user', 'seat', 'workspace', 'group'], undefined],
    ['plan', ['clan'], 'clan'],
    ['view', ['edit', 'user'], undefined],
    ['a', ['b'], 'b'],
    ['viewer', [], undefined],
  ])('%s of %j: %s', (name, candidates, nearest) => {
    expect(nearestName(name, candidates)).toBe(nearest);
  });

  test('is never further away than a third of the name, and a slip in a long name is found', () => {
    const word = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      minLength: 1,
      maxLength: 20,
      size: 'max',
    });
    fc.assert(
      fc.property(word, word, (name, candidate) => {
        const editsMax = Math.min(6, Math.max(1, Math.floor(name.length / 3)));
        const isNear = slowDistance(name, candidate) <= editsMax;
        expect(nearestName(name, [candidate])).toBe(isNear ? candidate : undefined);
      }),
    );
  });
});

/** Optimal string alignment as it is defined, with the whole table. */
function slowDistance(a: string, b: string): number {
  const table: number[][] = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  const at = (i: number, j: number): number => table[i]?.[j] ?? Number.NaN;
  table[0] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      let best = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isExchanged) best = Math.min(best, at(i - 2, j - 2) + 1);
      (table[i] as number[])[j] = best;
    }
  }
  return at(a.length, b.length);
}
