import { expect, test } from 'vitest';
import { indexOver, rowAt } from '../../../test/support/read-index.ts';
import { TokenCodec } from '../../model/consistency-token.ts';
import { ReadPositions } from './read-positions.ts';

const codec = new TokenCodec({ key: Buffer.alloc(32, 3), rememberMax: 10 });
const shard = { projectId: 'p', tenantId: 't' };
const invalid = expect.objectContaining({ reason: 'TOKEN_INVALID' }) as unknown;

/** A database whose head revision is at epoch 2 and the revision that `at` holds, and counts its queries. */
function positions(at: { revision: number }) {
  let queries = 0;
  const { headRevisions, index } = indexOver([
    (asks) => {
      queries++;
      return Promise.resolve(asks.map((_, n) => rowAt(n, at.revision, { epoch: 2 })));
    },
  ]);
  const reads = new ReadPositions({ codec, headRevisions, index });
  const resolve = async (token = '') => reads.resolve(shard, token);
  return { headRevisions, reads, resolve, queries: () => queries };
}
const token = (revision: number, epoch = 2): string => codec.encode(shard, epoch, revision);

test('without a token: the head, from memory where it is known', async () => {
  const { reads, resolve, queries } = positions({ revision: 5 });
  expect(await resolve()).toMatchObject({ epoch: 2, minRevision: 5 });
  expect(reads.resolve(shard, '')).toMatchObject({ epoch: 2, minRevision: 5 });
  expect(queries()).toBe(1);
});

test('a token at or below the head asks nobody, and never lowers it', async () => {
  const { reads, resolve, queries } = positions({ revision: 5 });
  await resolve();
  for (const revision of [0, 4, 5]) {
    expect(reads.resolve(shard, token(revision))).toMatchObject({ epoch: 2, minRevision: 5 });
  }
  expect(queries()).toBe(1);
});

test('a token above the head that is known asks for the head, and gets at least its seq', async () => {
  const at = { revision: 5 };
  const { headRevisions, resolve, queries } = positions(at);
  await resolve();
  at.revision = 6;
  expect(await resolve(token(6))).toMatchObject({ epoch: 2, minRevision: 6 });
  expect(queries()).toBe(2);
  expect(headRevisions.peek('p', 't')?.minRevision).toBe(6);
  await expect(resolve(token(7))).rejects.toThrow(invalid);
});

test('where no head is known a token is measured against the one of the database', async () => {
  expect(await positions({ revision: 5 }).resolve(token(5))).toMatchObject({
    epoch: 2,
    minRevision: 5,
  });
  expect(await positions({ revision: 5 }).resolve(token(1))).toMatchObject({
    epoch: 2,
    minRevision: 5,
  });
  await expect(positions({ revision: 5 }).resolve(token(6))).rejects.toThrow(invalid);
});

test('a token of another epoch is refused, before and after, known or not', async () => {
  for (const epoch of [1, 3]) {
    await expect(positions({ revision: 5 }).resolve(token(1, epoch))).rejects.toThrow(invalid);
    const warm = positions({ revision: 5 });
    await warm.resolve();
    await expect(warm.resolve(token(1, epoch))).rejects.toThrow(invalid);
  }
});

test('a token of another shard, or of nobody, is refused at once', () => {
  const { reads } = positions({ revision: 5 });
  const other = codec.encode({ projectId: 'p', tenantId: 'u' }, 2, 1);
  expect(() => reads.resolve(shard, other)).toThrow(invalid);
  expect(() => reads.resolve(shard, 'x')).toThrow(invalid);
});

test('while an outcome is unknown every read asks', async () => {
  const { headRevisions, resolve, queries } = positions({ revision: 5 });
  await resolve();
  headRevisions.markUnknown('p', 't');
  expect(await resolve()).toMatchObject({ epoch: 2, minRevision: 5 });
  expect(await resolve(token(3))).toMatchObject({ epoch: 2, minRevision: 5 });
  expect(queries()).toBe(3);
});
