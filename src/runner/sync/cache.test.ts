import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { HostCacheEntry } from './cache-entry.ts';
import { openCache, type Cache } from './cache.ts';

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'cache-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

function open(dir: string): Promise<Cache> {
  return openCache(dir, 'issues', (event, error) => {
    throw new Error(event, { cause: error });
  });
}

function entryOf(number: number, second: number, body = ''): HostCacheEntry {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const fixed = { title: 't', state: 'open', author: 'a', labels: [], url: 'u', createdAt: at };
  return { ...fixed, number, body, updatedAt: at };
}

const CURSOR = { repository: 'o/r' };

test('a full cache keeps what changed last, and says that it left out the rest', async () => {
  const dir = await folder();
  const cache = await open(dir);
  const entries = Array.from({ length: 20_003 }, (_, index) => entryOf(index + 1, index));
  cache.merge(entries);
  await expect(cache.save(CURSOR)).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
  expect(cache.size()).toBe(20_000);
  const again = await open(dir);
  expect(again.size()).toBe(20_000);
  expect(again.query({}).at(-1)?.number).toBe(4);
  await again.save(CURSOR);
});

test('any order of updates ends in the newest state of each, on disk as in memory', async () => {
  const dir = await folder();
  const update = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.nat(50));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(update, { maxLength: 8 }), { maxLength: 6 }),
      async (batches) => {
        const cache = await open(dir);
        cache.useRepository('o/r');
        cache.retain(new Set());
        const newest = new Map<number, number>();
        for (const batch of batches) {
          cache.merge(batch.map(([number, second]) => entryOf(number, second, `at ${second}`)));
          for (const [number, second] of batch) {
            newest.set(number, Math.max(second, newest.get(number) ?? 0));
          }
        }
        await cache.save(CURSOR);
        const expected = [...newest]
          .sort(([a, x], [b, y]) => y - x || b - a)
          .map(([number, second]) => [number, `at ${second}`]);
        for (const one of [cache, await open(dir)]) {
          expect(one.query({}).map(({ number, body }) => [number, body])).toEqual(expected);
        }
      },
    ),
    { numRuns: 40 },
  );
});
