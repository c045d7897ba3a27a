import { expect, test } from 'vitest';
import { isFutile, LoadForecast } from '../../src/workers/shard/load-forecast.ts';
import { start } from './actor-fixture.ts';

/* Who cannot wait for a load as long as it takes is told so, and for how long. */

const nowMs = (): number => performance.timeOrigin + performance.now();

test('a caller that would wait in vain is refused while the load goes on; one with patience is served', async () => {
  const { actor, source, ask, runShort, ready, commit } = start();
  for (let n = 0; n < 40; n++) commit(`d${n}`);
  // By what has come so far a hundred thousand rows take hours.
  source.rowsPerSlice = 1;
  source.pauseMs = 100;
  source.estimate = 100_000;
  const hasty = ask({ waitUntilMs: nowMs() + 15_000 });
  const patient = ask({ waitUntilMs: nowMs() + 86_400_000 });
  const swept = (): string | undefined => {
    actor.sweep(nowMs());
    return hasty.reason;
  };
  await expect.poll(swept, { interval: 20 }).toBe('SHARD_UNAVAILABLE');
  expect(actor.state).toBe('loading');
  expect(Number(hasty.error?.metadata['retry_after_seconds'])).toBeGreaterThan(15);
  // The next one as well, at once.
  const next = ask({ waitUntilMs: nowMs() + 5_000 });
  actor.sweep(nowMs());
  expect(next.error?.metadata).toHaveProperty('retry_after_seconds');
  expect(patient.reason).toBeUndefined();
  source.pauseMs = 0;
  await ready();
  runShort();
  expect(patient.seen).toEqual([40]);
  expect(ask({ waitUntilMs: nowMs() + 5_000 }).reason).toBeUndefined();
});

test('the few rows of a small tenant are waited for, however slowly they come', () => {
  const forecast = new LoadForecast(0);
  forecast.expect(200);
  expect(forecast.leftMs(1, 600)).toBeUndefined();
});

test('without an estimate, or near the end, callers wait', async () => {
  const { actor, source, ask, runShort, ready, commit } = start();
  for (let n = 0; n < 10; n++) commit(`d${n}`);
  source.rowsPerSlice = 1;
  source.pauseMs = 100;
  source.estimate = 10;
  const asked = ask({ waitUntilMs: nowMs() + 10_000 });
  await expect.poll(() => (actor.sweep(nowMs()), actor.state), { interval: 20 }).toBe('ready');
  await ready();
  runShort();
  expect([asked.seen, asked.reason]).toEqual([[10], undefined]);
});

test('what is left follows from the rows so far', () => {
  const forecast = new LoadForecast(1_000);
  expect(forecast.leftMs(100, 5_000)).toBeUndefined();
  forecast.expect(500_000);
  expect(forecast.leftMs(0, 5_000)).toBeUndefined();
  expect(forecast.leftMs(100_000, 1_400)).toBeUndefined();
  expect(forecast.leftMs(100_000, 5_000)).toBe(16_000);
  // There are more than were expected.
  expect(forecast.leftMs(700_000, 5_000)).toBe(0);
  expect([isFutile(16_000, 9_000), isFutile(16_000, 10_000), isFutile(1_900, 1)]).toEqual([
    true,
    false,
    false,
  ]);
});
