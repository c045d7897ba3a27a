import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  STALL_MS,
  STALL_MS_MAX,
  StallThreshold,
} from '../../src/services/reads/stall-threshold.ts';

const after = (samples: readonly number[]): StallThreshold => {
  const threshold = new StallThreshold();
  for (const sample of samples) threshold.observe(sample);
  return threshold;
};
const times = (count: number, ms: number): number[] => Array.from({ length: count }, () => ms);

test('a database nearby is late after 25 ms, whatever its answers took', () => {
  expect([after([]).ms(), after(times(50, 0.4)).ms()]).toEqual([STALL_MS, STALL_MS]);
});

test('before the first answer the round trip of the connect counts', () => {
  expect([after([]).ms(0.3), after([]).ms(40), after([40]).ms()]).toEqual([STALL_MS, 140, 140]);
});

test('a distance without jitter leaves half a round trip, and a change of it is learned', () => {
  const far = after(times(60, 40));
  expect(far.ms()).toBeCloseTo(60, 1);
  for (const ms of times(60, 0.4)) far.observe(ms);
  expect(far.ms()).toBe(STALL_MS);
  for (const ms of times(60, 100)) far.observe(ms);
  expect(far.ms()).toBeGreaterThan(100);
  expect(far.ms()).toBeLessThan(300);
});

test('an answer that hung makes the next ones late hardly later', () => {
  const near = after([...times(50, 0.4), 900]);
  expect(near.ms()).toBeLessThan(4 * STALL_MS);
  for (const ms of times(12, 0.4)) near.observe(ms);
  expect(near.ms()).toBe(STALL_MS);
});

test('whatever is measured, it is between its bounds, and not beneath what is usual', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 5_000, noNaN: true }), { maxLength: 50 }),
      fc.double({ min: 0, max: 300, noNaN: true }),
      (samples, usual) => {
        const threshold = after(samples);
        expect(threshold.ms()).toBeGreaterThanOrEqual(STALL_MS);
        expect(threshold.ms()).toBeLessThanOrEqual(STALL_MS_MAX);
        for (const ms of times(100, usual)) threshold.observe(ms);
        expect(threshold.ms()).toBeGreaterThan(usual);
      },
    ),
  );
});
