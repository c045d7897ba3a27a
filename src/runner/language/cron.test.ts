import { describe, expect, test } from 'vitest';
import { cronProblem, nextScheduledTime, timezoneProblem } from './cron.ts';

test.each([
  '* * * * *',
  '*/15 0-5 1,15 * *',
  '0 5 * jan-MAR mon-fri',
  '5/10 0 31 12 0',
  '0-59/2 */3 * * SUN',
])('%s is a schedule', (cron) => {
  expect(cronProblem(cron)).toBeUndefined();
});

test.each([
  '',
  '* * * *',
  '* * * * * *',
  '60 * * * *',
  '* 24 * * *',
  '* * 0 * *',
  '* * * 13 *',
  '* * * * 7',
  '*/0 * * * *',
  '5-1 * * * *',
  '1,,2 * * * *',
  'L * * * *',
  '* * 1W * *',
  '* * * * 1#2',
  '@daily',
  '1-2-3 * * * *',
  'x * * * *',
])('%s is none', (cron) => {
  expect(cronProblem(cron)).toContain('Invalid cron expression');
});

test('time zones', () => {
  expect(timezoneProblem('Europe/Berlin')).toBeUndefined();
  expect(timezoneProblem('Mars/Olympus')).toContain('Unknown time zone');
});

describe('next time', () => {
  const next = (cron: string, after: string, timezone?: string): string | undefined =>
    nextScheduledTime({ cron, timezone }, new Date(after))?.toISOString();

  test('in UTC and in a time zone, over the change of the clock', () => {
    expect(next('30 5 * * *', '2026-01-01T05:30:00Z')).toBe('2026-01-02T05:30:00.000Z');
    expect(next('30 5 * * 1', '2026-01-01T00:00:00Z')).toBe('2026-01-05T05:30:00.000Z');
    expect(next('0 6 * * *', '2026-03-28T12:00:00Z', 'Europe/Berlin')).toBe(
      '2026-03-29T04:00:00.000Z',
    );
    expect(next('0 6 * * *', '2026-03-27T12:00:00Z', 'Europe/Berlin')).toBe(
      '2026-03-28T05:00:00.000Z',
    );
  });

  test('is never less than five minutes away from the one before', () => {
    expect(next('* * * * *', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:05:00.000Z');
    expect(next('* * * * *', '2026-01-01T00:03:20Z')).toBe('2026-01-01T00:05:00.000Z');
    expect(next('*/2 * * * *', '2026-01-01T00:05:00Z')).toBe('2026-01-01T00:10:00.000Z');
    expect(next('*/5 * * * *', '2026-01-01T00:05:00Z')).toBe('2026-01-01T00:10:00.000Z');
  });

  test('there is none on the 31st of February', () => {
    expect(next('0 0 31 2 *', '2026-01-01T00:00:00Z')).toBeUndefined();
  });
});
