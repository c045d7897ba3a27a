import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenCodec } from './consistency-token.ts';

const key = Buffer.from('0123456789abcdef0123456789abcdef');
const shard = { projectId: 'p', tenantId: 't' };
const fresh = (): TokenCodec => new TokenCodec({ key, rememberMax: 3 });
const invalid = { reason: 'TOKEN_INVALID' };

test('a token gives back its position, in its shard only', () => {
  const codec = fresh();
  fc.assert(
    fc.property(fc.nat(2 ** 32 - 1), fc.nat({ max: 2 ** 48 - 1 }), (epoch, seq) => {
      const token = codec.encode(shard, epoch, seq);
      expect(token).toMatch(/^[A-Za-z0-9_-]{40}$/);
      for (const one of [codec, fresh()]) {
        expect(one.decode(shard, token)).toMatchObject({ epoch, seq });
        expect(one.decode(shard, token)).toMatchObject({ epoch, seq });
        for (const other of [
          { projectId: 'p', tenantId: '' },
          { projectId: 'pt', tenantId: '' },
          { projectId: 'q', tenantId: 't' },
        ]) {
          expect(() => one.decode(other, token)).toThrow(expect.objectContaining(invalid));
        }
      }
    }),
  );
});

test('no changed character passes', () => {
  const token = fresh().encode(shard, 1, 1_000_000);
  for (let i = 0; i < token.length; i++) {
    const changed = `${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`;
    expect(() => fresh().decode(shard, changed)).toThrow(expect.objectContaining(invalid));
  }
});

test.each([
  'x',
  ' ',
  'A'.repeat(40),
  `${'A'.repeat(39)}=`,
  'é'.repeat(40),
  '+'.repeat(40),
  'A'.repeat(10_000),
])('refuses %j', (text) => {
  expect(() => fresh().decode(shard, text)).toThrow(expect.objectContaining(invalid));
});

test("another deployment's token is refused", () => {
  const other = new TokenCodec({ key: Buffer.alloc(32, 1), rememberMax: 3 });
  expect(() => fresh().decode(shard, other.encode(shard, 1, 1))).toThrow(
    expect.objectContaining(invalid),
  );
});

test('the authenticator is HMAC-SHA-256', () => {
  const token = Buffer.from(fresh().encode(shard, 3, 4), 'base64url');
  const mac = createHmac('sha256', key).update(token.subarray(0, 19)).digest().subarray(0, 11);
  expect(token.subarray(19)).toEqual(mac);
});
