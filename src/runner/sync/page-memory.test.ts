import { expect, test } from 'vitest';
import { nextOfLink } from './page-memory.ts';

test.each([
  [null, undefined],
  ['', undefined],
  ['<https://h/x?page=2>; rel="next", <https://h/x?page=9>; rel="last"', 'https://h/x?page=2'],
  [
    '<https://h/x?page=1>; rel="prev", <https://h/x?a=1,2&page=3>; rel="next"',
    'https://h/x?a=1,2&page=3',
  ],
  ['<https://h/x?page=9>; rel="last"', undefined],
  ['<https://h/x>; rel=next', 'https://h/x'],
  ['<https://h/x>; title="a"; rel="prev next"', 'https://h/x'],
  ['<https://h/x>; rel="nextish"', undefined],
  ['<https://h/x>; title="next"', undefined],
  ['nonsense rel="next"', undefined],
])('the next page of %s', (header, expected) => {
  expect(nextOfLink(header)).toBe(expected);
});

test('a long hostile header costs no more than its length', () => {
  const header = `${'<a>; x="'.repeat(20_000)}${'<a>;b=c'.repeat(20_000)}`;
  expect(nextOfLink(header)).toBeUndefined();
});
