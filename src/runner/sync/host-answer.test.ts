import { describe, expect, test } from 'vitest';
import { messageOfAnswer, rateLimitFromHeaders, rateLimitWaitMs } from './host-answer.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const RESET = String(NOW_MS / 1000 + 90);

describe('how long to stay away', () => {
  test.each<[string, number, Record<string, string>, string, number | undefined]>([
    ['Retry-After in seconds', 429, { 'retry-after': '7' }, '', 7000],
    ['Retry-After of an overloaded host', 503, { 'retry-after': '2' }, '', 2000],
    ['Retry-After as a date', 403, { 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, '', 30_000],
    ['a date that has passed', 403, { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }, '', 0],
    [
      'nothing left until the reset',
      403,
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': RESET },
      '',
      91_000,
    ],
    [
      'by the clock of the host',
      429,
      {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': RESET,
        date: 'Thu, 01 Jan 2026 00:01:00 GMT',
      },
      '',
      31_000,
    ],
    ['a secondary limit', 403, {}, 'You have exceeded a secondary rate limit', 60_000],
    ['too many requests, without a time', 429, {}, '', 60_000],
    ['nonsense', 429, { 'retry-after': 'soon' }, '', 60_000],
    [
      'no rights',
      403,
      { 'x-ratelimit-remaining': '12', 'x-ratelimit-reset': RESET },
      'Forbidden',
      undefined,
    ],
    ['an overloaded host that says nothing', 503, {}, '', undefined],
    ['another answer', 404, { 'retry-after': '7' }, '', undefined],
  ])('%s', (_, status, headers, message, expected) => {
    expect(rateLimitWaitMs(status, new Headers(headers), message, NOW_MS)).toBe(expected);
  });
});

test.each<[Record<string, string>, unknown]>([
  [{}, undefined],
  [{ 'x-ratelimit-remaining': '5' }, undefined],
  [{ 'x-ratelimit-remaining': '-5', 'x-ratelimit-reset': '1' }, undefined],
  [{ 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '1e99' }, undefined],
  [{ 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '99999999999999' }, undefined],
  [
    { 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '60' },
    { remaining: 5, resetAt: '1970-01-01T00:01:00.000Z' },
  ],
])('the budget of %j', (headers, expected) => {
  expect(rateLimitFromHeaders(new Headers(headers))).toEqual(expected);
});

test.each<[unknown, string]>([
  [undefined, ''],
  ['text', ''],
  [
    { message: 'Validation Failed', errors: [{ message: 'no commits' }] },
    'Validation Failed: no commits',
  ],
  [{ message: 'Bad', errors: ['plain'] }, 'Bad: plain'],
  [{ message: { nested: 1 }, errors: 'x' }, ''],
  [{ message: 'a\u001b[31mb\nc' }, 'a [31mb c'],
  [{ message: 'x'.repeat(1000) }, 'x'.repeat(300)],
])('the message of %j', (json, expected) => {
  expect(messageOfAnswer(json)).toBe(expected);
});
