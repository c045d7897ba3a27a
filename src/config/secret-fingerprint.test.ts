import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { secretFingerprint } from './secret-fingerprint.ts';

const key = randomBytes(32);

test('a set has one fingerprint, whatever the order; other sets, names and keys have others', () => {
  const print = secretFingerprint(key, 'tokens', ['a', 'b']);
  expect(print).toMatch(/^[0-9a-f]{12}$/);
  expect(secretFingerprint(key, 'tokens', ['b', 'a', 'b'])).toBe(print);
  const others = [
    secretFingerprint(key, 'tokens', ['a']),
    secretFingerprint(key, 'tokens', ['a', 'b', 'c']),
    secretFingerprint(key, 'tokens', ['a,b']),
    secretFingerprint(key, 'other', ['a', 'b']),
    secretFingerprint(randomBytes(32), 'tokens', ['a', 'b']),
  ];
  expect(new Set([print, ...others]).size).toBe(6);
});

test('who knows the token but not the key cannot recognize it', () => {
  const print = secretFingerprint(key, 'tokens', ['hush']);
  for (const text of ['hush', '["tokens","hush"]', 'tokenshush']) {
    expect(createHash('sha256').update(text).digest('hex')).not.toContain(print);
  }
});
