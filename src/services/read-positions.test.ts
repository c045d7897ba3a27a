import { expect, test } from 'vitest';
import { indexOver, rowAt } from '../../test/support/read-index.ts';
import { TokenCodec } from '../model/consistency-token.ts';
import { ReadPositions } from './read-positions.ts';

const codec = new TokenCodec({ key: Buffer.alloc(32, 3), rememberMax: 10 });
const shard = { projectId: 'p', tenantId: 't' };
const invalid = expect.objectContaining({ reason: 'TOKEN_INVALID' }) as unknown;

/** A database whose head is at epoch 2 and the seq that `at` holds, and counts its queries. */
function positions(at: { seq: number }) {
  let queries = 0;
  const { heads, index } = indexOver([
    (asks) => {
      queries++;
      return Promise.resolve(asks.map((_, n) => rowAt(n, at.seq, { epoch: 2 })));
    },
  ]);
  const reads = new ReadPositions({ codec, heads, index });
  const resolve = async (token = '') => reads.resolve(shard, token);
  return { heads, reads, resolve, queries: () => queries };
}
const token = (seq: number, epoch = 2): string => codec.encode(shard, epoch, seq);

test('without a token: the head, from memory where it is known', async () => {
  const { reads, resolve, queries } = positions({ seq: 5 });
  expect(await resolve()).toMatchObject({ epoch: 2, minSeq: 5 });
  expect(reads.resolve(shard, '')).toMatchObject({ epoch: 2, minSeq: 5 });
  expect(queries()).toBe(1);
});

test('a token at or below the head asks nobody, and never lowers it', async () => {
  const { reads, resolve, queries } = positions({ seq: 5 });
  await resolve();
  for (const seq of [0, 4, 5]) {
    expect(reads.resolve(shard, token(seq))).toMatchObject({ epoch: 2, minSeq: 5 });
  }
  expect(queries()).toBe(1);
});

test('a token above the head that is known asks for the head, and gets at least its seq', async () => {
  const at = { seq: 5 };
  const { heads, resolve, queries } = positions(at);
  await resolve();
  at.seq = 6;
  expect(await resolve(token(6))).toMatchObject({ epoch: 2, minSeq: 6 });
  expect(queries()).toBe(2);
  expect(heads.peek('p', 't')?.minSeq).toBe(6);
  await expect(resolve(token(7))).rejects.toThrow(invalid);
});

test('where no head is known a token is measured against the one of the database', async () => {
  expect(await positions({ seq: 5 }).resolve(token(5))).toMatchObject({ epoch: 2, minSeq: 5 });
  expect(await positions({ seq: 5 }).resolve(token(1))).toMatchObject({ epoch: 2, minSeq: 5 });
  await expect(positions({ seq: 5 }).resolve(token(6))).rejects.toThrow(invalid);
});

test('a token of another epoch is refused, before and after, known or not', async () => {
  for (const epoch of [1, 3]) {
    await expect(positions({ seq: 5 }).resolve(token(1, epoch))).rejects.toThrow(invalid);
    const warm = positions({ seq: 5 });
    await warm.resolve();
    await expect(warm.resolve(token(1, epoch))).rejects.toThrow(invalid);
  }
});

test('a token of another shard, or of nobody, is refused at once', () => {
  const { reads } = positions({ seq: 5 });
  const other = codec.encode({ projectId: 'p', tenantId: 'u' }, 2, 1);
  expect(() => reads.resolve(shard, other)).toThrow(invalid);
  expect(() => reads.resolve(shard, 'x')).toThrow(invalid);
});

test('while an outcome is unknown every read asks', async () => {
  const { heads, resolve, queries } = positions({ seq: 5 });
  await resolve();
  heads.markUnknown('p', 't');
  expect(await resolve()).toMatchObject({ epoch: 2, minSeq: 5 });
  expect(await resolve(token(3))).toMatchObject({ epoch: 2, minSeq: 5 });
  expect(queries()).toBe(3);
});
