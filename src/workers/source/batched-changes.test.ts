import { expect, test } from 'vitest';
import { CHANGES_SHARDS_MAX, type ChangesAsk } from '../../store/feed/changes-of-many.ts';
import type { ChangePage } from '../../store/feed/changes.ts';
import { BatchedChanges } from './batched-changes.ts';

const shard = (i: number) => ({ projectId: 'p', tenantId: `t${i}` });
const pageAt = (revision: number): ChangePage => ({
  headRevision: { epoch: 1, revision, forkId: '1', settingsVersion: 0, retainedFrom: 1 },
  forkIdAtStart: '1',
  changes: [],
});

/** A store that answers when the test asks it to. */
class Store {
  readonly queries: (readonly ChangesAsk[])[] = [];
  readonly answers: PromiseWithResolvers<void>[] = [];
  /** Revisions that do not fit among many. */
  readonly large = new Set<number>();
  failure: Error | undefined;

  readonly changes = new BatchedChanges({
    one: async (ofShard, afterRevision) => {
      await this.#answer([{ shard: ofShard, afterRevision }]);
      return pageAt(afterRevision);
    },
    many: async (asks) => {
      await this.#answer(asks);
      return asks.map(({ afterRevision }) =>
        this.large.has(afterRevision) ? undefined : pageAt(afterRevision),
      );
    },
  });

  async #answer(asks: readonly ChangesAsk[]): Promise<void> {
    this.queries.push(asks);
    const answer = Promise.withResolvers<void>();
    this.answers.push(answer);
    await answer.promise;
    if (this.failure !== undefined) throw this.failure;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('one shard is asked for alone, and at once', async () => {
  const store = new Store();
  const page = store.changes.read(shard(1), 7);
  await turn();
  expect(store.queries).toEqual([[{ shard: shard(1), afterRevision: 7 }]]);
  store.answers[0]?.resolve();
  expect((await page).headRevision.revision).toBe(7);
});

test('a thousand shards share few queries, two at a time, and each has its own page', async () => {
  const store = new Store();
  const pages = Array.from({ length: 1_000 }, (_, i) => store.changes.read(shard(i), i));
  await turn();
  expect(store.queries.map((asks) => asks.length)).toEqual([
    CHANGES_SHARDS_MAX,
    CHANGES_SHARDS_MAX,
  ]);
  // Whoever comes now waits for one of the two, not for a thousand.
  store.answers[0]?.resolve();
  await turn();
  expect(store.queries).toHaveLength(3);
  const queries = Math.ceil(pages.length / CHANGES_SHARDS_MAX);
  for (let i = 1; i < queries; i++) {
    store.answers[i]?.resolve();
    await turn();
  }
  expect((await Promise.all(pages)).map((page) => page.headRevision.revision)).toEqual(
    pages.map((_, i) => i),
  );
  expect(store.queries).toHaveLength(queries);
});

test('what has no room among many is asked for alone', async () => {
  const store = new Store();
  store.large.add(1);
  const pages = [0, 1, 2].map((i) => store.changes.read(shard(i), i));
  await turn();
  store.answers[0]?.resolve();
  expect((await pages[0])?.headRevision.revision).toBe(0);
  expect((await pages[2])?.headRevision.revision).toBe(2);
  await turn();
  expect(store.queries.at(-1)).toEqual([expect.objectContaining({ shard: shard(1) })]);
  store.answers[1]?.resolve();
  expect((await pages[1])?.headRevision.revision).toBe(1);
});

test('a failed query fails those that shared it, and nobody later', async () => {
  const store = new Store();
  store.failure = new Error('away');
  const failed = [0, 1].map((i) => store.changes.read(shard(i), i));
  await turn();
  store.answers[0]?.resolve();
  for (const page of failed) await expect(page).rejects.toThrow('away');
  store.failure = undefined;
  const later = store.changes.read(shard(0), 5);
  await turn();
  store.answers[1]?.resolve();
  expect((await later).headRevision.revision).toBe(5);
});
