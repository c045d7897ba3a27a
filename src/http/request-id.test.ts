import { expect, test } from 'vitest';
import { requestIdOf } from './request-id.ts';

test('a well-formed id of the caller is kept', () => {
  expect(requestIdOf('abc-1:2.3_4')).toBe('abc-1:2.3_4');
  expect(requestIdOf('x'.repeat(128))).toBe('x'.repeat(128));
});

test.each(['', 'a b', 'a\r\nb', 'é', 'x'.repeat(129), '"'])('%j is replaced', (value) => {
  const id = requestIdOf(value);
  expect(id).not.toBe(value);
  expect(requestIdOf(id)).toBe(id);
});

test('new ids are distinct', () => {
  expect(new Set(Array.from({ length: 1_000 }, () => requestIdOf(''))).size).toBe(1_000);
});
