import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { silentReport } from '../../shared/loop-report.ts';
import { readRecentShards, writeRecentShards } from '../../store/sql/reads/recent-shards.ts';
import { interleaved, RecentShards } from './recent-shards.ts';
import { warmUp } from './warm-up.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

const shard = (tenantId: string, indexBytes = 100) => ({ projectId: 'p', tenantId, indexBytes });
const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const log = (): void => undefined;

async function warmed(
  options: { timeMaxMs?: number; bytesMax?: number; places?: number; signal?: AbortSignal } = {},
  warm = (_tenant: string): Promise<void> => Promise.resolve(),
): Promise<string[]> {
  const tenants: string[] = [];
  await warmUp({
    pool: database.pool,
    workers: {
      warm: async ({ tenantId }) => {
        tenants.push(tenantId);
        await warm(tenantId);
      },
    },
    concurrency: options.places ?? 1,
    timeMaxMs: options.timeMaxMs ?? 10_000,
    bytesMax: options.bytesMax ?? 10_000,
    log,
    signal: options.signal ?? new AbortController().signal,
  });
  return tenants;
}

describe('what is written down', () => {
  it('is replaced by each instance, and outlives it', async () => {
    await writeRecentShards(database.pool, id(1), [shard('old')]);
    await writeRecentShards(database.pool, id(1), [shard('a'), shard('b', 200)]);
    await writeRecentShards(database.pool, id(2), [shard('c"\\ü')]);
    expect(await readRecentShards(database.pool)).toEqual([
      [shard('c"\\ü')],
      [shard('a'), shard('b', 200)],
    ]);
  });

  it('has a large shard soon after it was reported first, and not at the next turn alone', async () => {
    // Those turns never come.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const recent = new RecentShards();
    try {
      recent.start(database.pool, silentReport);
      recent.report(0, [shard('small')]);
      recent.report(1, [shard('large', 5_000_000)]);
      const written = async (): Promise<readonly string[]> =>
        (await readRecentShards(database.pool)).flat().map(({ tenantId }) => tenantId);
      await vi.waitFor(async () => expect(await written()).toContain('large'), {
        timeout: 20_000,
      });
      expect(await written()).toContain('small');
    } finally {
      await recent.stop();
      vi.useRealTimers();
      await database.pool.query('truncate recent_shards');
    }
  });

  it('is forgotten when 32 lives have followed', async () => {
    for (let n = 10; n < 60; n++) await writeRecentShards(database.pool, id(n), [shard(`t${n}`)]);
    const rows = await readRecentShards(database.pool);
    expect(rows.map(([first]) => first?.tenantId)).toEqual(
      Array.from({ length: 32 }, (_, n) => `t${59 - n}`),
    );
    const { rows: stored } = await database.pool.query('select instance_id from recent_shards');
    expect(stored.length).toBeLessThanOrEqual(33);
    await database.pool.query('truncate recent_shards');
  });

  it('is what the workers report, at the end too, and never nothing', async () => {
    const recent = new RecentShards();
    recent.start(database.pool, silentReport);
    await recent.stop();
    expect(await readRecentShards(database.pool)).toEqual([]);
    recent.start(database.pool, silentReport);
    recent.report(0, [shard('gone')]);
    recent.report(0, [shard('a'), shard('b')]);
    recent.report(1, [shard('c')]);
    await recent.stop();
    expect(await readRecentShards(database.pool)).toEqual([[shard('a'), shard('c'), shard('b')]]);
    await database.pool.query('truncate recent_shards');
  });
});

describe('a start', () => {
  it('loads the latest of every instance before the second of any, each once', async () => {
    await writeRecentShards(database.pool, id(1), [shard('a'), shard('b'), shard('c')]);
    await writeRecentShards(database.pool, id(2), [shard('d'), shard('a'), shard('e')]);
    expect(await warmed()).toEqual(['d', 'a', 'b', 'e', 'c']);
    expect(interleaved([])).toEqual([]);
  });

  it('keeps to its bytes, leaving out what does not fit', async () => {
    await database.pool.query('truncate recent_shards');
    await writeRecentShards(database.pool, id(1), [shard('a'), shard('huge', 900), shard('b')]);
    expect(await warmed({ bytesMax: 250 })).toEqual(['a', 'b']);
    expect(await warmed({ bytesMax: 0 })).toEqual([]);
  });

  it('keeps to its time, also while a shard is being loaded', async () => {
    expect(await warmed({ timeMaxMs: 0 })).toEqual([]);
    const stuck = await warmed({ timeMaxMs: 100 }, () => new Promise(() => undefined));
    expect(stuck).toEqual(['a']);
  });

  it('ends when the instance is to stop, also while a shard is being loaded', async () => {
    await database.pool.query('truncate recent_shards');
    await writeRecentShards(database.pool, id(1), [shard('a'), shard('b')]);
    const stop = new AbortController();
    const timeMaxMs = 3_600_000;
    const tenants = await warmed({ timeMaxMs, signal: stop.signal }, () => {
      stop.abort();
      return new Promise(() => undefined);
    });
    expect(tenants).toEqual(['a']);
    expect(await warmed({ timeMaxMs, signal: stop.signal })).toEqual([]);
  });

  it('goes on without what cannot be read', async () => {
    await database.pool.query(
      `insert into recent_shards values (gen_random_uuid(), clock_timestamp(), 'no json')`,
    );
    expect(await warmed()).toEqual([]);
    await database.pool.query('truncate recent_shards');
  });
});
