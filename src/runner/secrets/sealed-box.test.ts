import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import sodium from 'libsodium-wrappers';
import { beforeAll, expect, test } from 'vitest';
import { sealForHost } from './sealed-box.ts';

beforeAll(async () => {
  await sodium.ready;
});

test('libsodium opens what is sealed here', () => {
  const pair = sodium.crypto_box_keypair();
  const publicKey = Buffer.from(pair.publicKey).toString('base64');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300, size: 'max' }), (value) => {
      const sealed = Buffer.from(sealForHost(publicKey, value), 'base64');
      const plain = sodium.crypto_box_seal_open(sealed, pair.publicKey, pair.privateKey);
      expect(Buffer.from(plain).toString('utf8')).toBe(value);
    }),
    { numRuns: 40 },
  );
});

test('two boxes of one value have nothing in common', () => {
  const pair = sodium.crypto_box_keypair();
  const publicKey = Buffer.from(pair.publicKey).toString('base64');
  const [first, second] = [sealForHost(publicKey, 'same'), sealForHost(publicKey, 'same')];
  expect(first.slice(0, 16)).not.toBe(second.slice(0, 16));
});

test.each([
  ['too short', randomBytes(31).toString('base64')],
  ['no base64 at all', '?'],
  ['a point of small order', Buffer.alloc(32).toString('base64')],
])('refuses a public key that is %s', (_case, key) => {
  expect(() => sealForHost(key, 'hunter2')).toThrow(
    expect.objectContaining({ reason: 'BACKEND_UNAVAILABLE' }),
  );
});
