import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openValue, sealValue } from './value-cipher.ts';

const key = randomBytes(32);

test('opens what it sealed', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 200, size: 'max' }),
      fc.string({ unit: 'grapheme' }),
      (value, context) => {
        const sealed = sealValue(key, context, value);
        expect(openValue(key, context, sealed)).toBe(value);
        expect(sealValue(key, context, value)).not.toBe(sealed);
      },
    ),
    { numRuns: 200 },
  );
});

test('refuses each flipped bit, another place and another key', () => {
  const sealed = sealValue(key, 'production:API_KEY', 'hunter2');
  const bytes = Buffer.from(sealed, 'base64');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    const refused = (): string => openValue(key, 'production:API_KEY', changed.toString('base64'));
    expect(refused).toThrow(expect.objectContaining({ reason: 'BACKEND_UNAVAILABLE' }));
  }
  for (const other of [
    `${sealed}=`,
    `${sealed} `,
    sealed.replace(/.$/, ''),
    sealed.replace(/^/, '.'),
  ]) {
    expect(() => openValue(key, 'production:API_KEY', other)).toThrow(/cannot be decrypted/);
  }
  for (const cut of [0, 1, 11, 27, bytes.length - 1]) {
    const short = bytes.subarray(0, cut).toString('base64');
    expect(() => openValue(key, 'production:API_KEY', short)).toThrow(/cannot be decrypted/);
  }
  expect(() => openValue(key, 'staging:API_KEY', sealed)).toThrow(/cannot be decrypted/);
  expect(() => openValue(randomBytes(32), 'production:API_KEY', sealed)).toThrow(/another/);
});
