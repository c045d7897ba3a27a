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
    fc.property(fc.nat(2 ** 32 - 1), fc.nat({ max: 2 ** 48 - 1 }), (epoch, revision) => {
      const token = codec.encode(shard, epoch, revision);
      expect(token).toMatch(/^[A-Za-z0-9_-]{40}$/);
      for (const one of [codec, fresh()]) {
        expect(one.decode(shard, token)).toMatchObject({ epoch, revision });
        expect(one.decode(shard, token)).toMatchObject({ epoch, revision });
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

test('a token of another shard is refused at first sight, too', () => {
  const token = fresh().encode(shard, 1, 7);
  for (const other of [
    { projectId: 'p', tenantId: 'u' },
    { projectId: 'q', tenantId: 't' },
    { projectId: 'pt', tenantId: '' },
    { projectId: '', tenantId: 'pt' },
  ]) {
    expect(() => fresh().decode(other, token)).toThrow(
      expect.objectContaining({
        ...invalid,
        metadata: { field: 'at_least_consistency_token' },
      }),
    );
  }
});

test('one position has one text: other alphabets, padding and space are refused', () => {
  let checked = 0;
  for (let revision = 0; checked < 20; revision++) {
    const token = fresh().encode(shard, 1, revision);
    for (const other of [
      token.replace('-', '+'),
      token.replace('_', '/'),
      `${token}=`,
      `${token} `,
      ` ${token}`,
      `${token.slice(0, 20)}\n${token.slice(20)}`,
    ]) {
      if (other === token) continue;
      expect(Buffer.from(other, 'base64')).toEqual(Buffer.from(token, 'base64url'));
      expect(() => fresh().decode(shard, other)).toThrow(expect.objectContaining(invalid));
      checked++;
    }
  }
});

test('another version is refused, even with the right authenticator', () => {
  const token = Buffer.from(fresh().encode(shard, 1, 7), 'base64url');
  token[0] = 2;
  createHmac('sha256', key).update(token.subarray(0, 19)).digest().copy(token, 19, 0, 11);
  expect(() => fresh().decode(shard, token.toString('base64url'))).toThrow(
    expect.objectContaining(invalid),
  );
});

test('keys have 1 to 64 bytes, positions fit the layout', () => {
  const codecOf = (bytes: number) =>
    new TokenCodec({ key: Buffer.alloc(bytes, 5), rememberMax: 3 });
  for (const bytes of [1, 63, 64]) {
    const token = Buffer.from(codecOf(bytes).encode(shard, 1, 2), 'base64url');
    const mac = createHmac('sha256', Buffer.alloc(bytes, 5)).update(token.subarray(0, 19));
    expect(token.subarray(19)).toEqual(mac.digest().subarray(0, 11));
  }
  expect(() => codecOf(0)).toThrow('1-64 bytes');
  expect(() => codecOf(65)).toThrow('1-64 bytes');
  const [epochMax, revisionMax] = [2 ** 32 - 1, 2 ** 48 - 1];
  for (const [epoch, revision] of [
    [0, 0],
    [epochMax, revisionMax],
  ] as const) {
    expect(fresh().decode(shard, fresh().encode(shard, epoch, revision))).toMatchObject({
      epoch,
      revision,
    });
  }
  for (const [epoch, revision] of [
    [-1, 0],
    [0, -1],
    [epochMax + 1, 0],
    [0, revisionMax + 1],
    [0, NaN],
    [NaN, 0],
  ] as const) {
    expect(() => fresh().encode(shard, epoch, revision)).toThrow(
      'assertion failed: position of a token',
    );
  }
});

test('remembers as many tokens as it may, and no more', () => {
  const codec = fresh();
  const tokens = [1, 2, 3, 4].map((revision) => codec.encode(shard, 1, revision));
  const [first, ...others] = tokens.slice(0, 3).map((token) => codec.decode(shard, token));
  expect(codec.decode(shard, tokens[0] as string)).toBe(first);
  expect(codec.decode(shard, tokens[2] as string)).toBe(others[1]);
  codec.decode(shard, tokens[3] as string);
  expect(codec.decode(shard, tokens[0] as string)).not.toBe(first);
  expect(codec.decode(shard, tokens[0] as string)).toEqual(first);
});
