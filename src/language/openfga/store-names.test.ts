import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ownNameOf, storeNameOf } from './store-names.ts';

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const names = fc.oneof(
  fc.string({ minLength: 1, maxLength: 254, size: 'max', unit: 'grapheme' }),
  fc.stringMatching(/^[a-zA-Z/_-]{1,5}$/),
  fc.stringMatching(/^x-[0-9a-h]{1,6}$/),
);

test.each(['doc', 'Doc', 'a/b', 'user', 'group', 'workspace', 'x-1', 'x'.repeat(254)])(
  '%s has a name here, that no other has',
  (name) => {
    expect(ownNameOf(name)).toMatch(NAME);
  },
);

test('user, group and workspace are called otherwise, for the service has its own', () => {
  for (const name of ['user', 'group', 'workspace', 'seat']) {
    expect(ownNameOf(name)).not.toBe(name);
    expect(storeNameOf(ownNameOf(name))).toBe(name);
  }
});

test('every name has one here, and two never the same', () => {
  fc.assert(
    fc.property(names, names, (one, other) => {
      expect(ownNameOf(one)).toMatch(NAME);
      expect(ownNameOf(one) === ownNameOf(other)).toBe(one === other);
      expect([one, undefined]).toContain(storeNameOf(ownNameOf(one)));
    }),
  );
});

test('what becomes of a short name is read back, and of a long one a hash stays', () => {
  expect(storeNameOf(ownNameOf('Doc/ä'))).toBe('Doc/ä');
  expect(ownNameOf('X'.repeat(32))).toMatch(/^x-h[0-9a-f]{60}$/);
  expect(storeNameOf(ownNameOf('X'.repeat(32)))).toBeUndefined();
});
