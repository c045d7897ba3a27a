import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SlicedSort } from '../../src/engine/general/sliced-sort.ts';
import { compareUtf8 } from '../../src/shared/text/utf8-order.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

/** Sorts by the tens, so that the order of equals shows. */
function sorted(values: readonly number[]): { values: number[]; steps: number; most: number } {
  let compared = 0;
  const sort = new SlicedSort(Uint32Array.from(values), (a, b) => {
    compared++;
    return Math.floor(a / 10) - Math.floor(b / 10);
  });
  let [steps, most] = [0, 0];
  for (let before = 0; sort.step(); before = compared) {
    steps++;
    most = Math.max(most, compared - before);
  }
  return { values: [...sort.values], steps, most };
}
const stable = (values: readonly number[]): number[] =>
  values.toSorted((a, b) => Math.floor(a / 10) - Math.floor(b / 10));

test(`sorts step by step, and leaves equals as they were (SEED=${seed})`, () => {
  const values = fc.array(fc.nat(3000), { maxLength: 600, size: 'max' });
  fc.assert(
    fc.property(values, (list) => {
      expect(sorted(list).values).toEqual(stable(list));
    }),
    params(100),
  );
});

test.each([0, 1, 31, 32, 33, 63, 64, 65, 96, 128, 129, 1000, 5000])(
  'sorts %i values, in steps of some 256 comparisons',
  (count) => {
    const list = Array.from({ length: count }, (_, i) => (i * 7919) % 4999);
    const { values, steps, most } = sorted(list);
    expect(values).toEqual(stable(list));
    expect(most).toBeLessThanOrEqual(256);
    // Runs of 32 and then, in each pass over all, pieces of 256; some end with their pair of runs.
    const passes = count <= 32 ? 0 : Math.ceil(Math.log2(count / 32));
    expect(steps).toBeGreaterThanOrEqual(Math.floor(count / 32) + passes * Math.floor(count / 256));
    expect(steps).toBeLessThanOrEqual(
      Math.floor(count / 32) + 1 + passes * (Math.ceil(count / 256) + 1),
    );
  },
);

test(`text is in the order of its UTF-8 (SEED=${seed})`, () => {
  const letters = fc.constantFrom('', 'a', 'b', 'B', 'é', '\ud7ff', '\ue000', '\uffff');
  const beyond = fc.constantFrom('\u{10000}', '\u{103ff}', '\u{1f600}', '\u{10ffff}');
  const text = fc.array(fc.oneof(letters, beyond), { maxLength: 4 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, text, (a, b) => {
      const wanted = Buffer.compare(Buffer.from(a), Buffer.from(b));
      expect([a, b, Math.sign(compareUtf8(a, b))]).toEqual([a, b, wanted]);
    }),
    params(2000),
  );
});
