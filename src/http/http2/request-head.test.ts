import { expect, test } from 'vitest';
import { HeaderField } from './hpack/header-field.ts';
import { requestHeadOf } from './request-head.ts';

const HEAD: readonly (readonly [string, string])[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'localhost'],
  ['authorization', 'Bearer a'],
];

function headOf(fields: readonly (readonly [string, string])[]): unknown {
  return requestHeadOf(fields.map(([name, value]) => new HeaderField(name, value)));
}

test('a second credential makes a request malformed', () => {
  expect(headOf(HEAD)).not.toBeNull();
  expect(headOf([...HEAD, ['authorization', 'Bearer b']])).toBeNull();
  expect(headOf([...HEAD, ['authorization', 'Bearer a']])).toBeNull();
  expect(headOf([...HEAD, ['accept', 'a'], ['accept', 'b']])).not.toBeNull();
});
