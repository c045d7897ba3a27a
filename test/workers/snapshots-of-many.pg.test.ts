import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { SNAPSHOT_COLUMNS, loadSnapshot } from '../../src/store/feed/snapshot.ts';
import { SNAPSHOT_ROWS_MAX, loadSnapshotsOfMany } from '../../src/store/feed/snapshots-of-many.ts';
import { PostgresShardSource } from '../../src/workers/source/postgres-shard-source.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import { writeChange } from '../support/write-change.ts';

let database: TestDatabase;
const shardOf = (tenantId: string): ShardKey => ({ projectId: 'p', tenantId });
const TENANTS = ['', "o'brien\\x", '日本,{"a"}', 'full', 'one-more', 'absent', 'NULL'];
/** Tuples of each; the last two have none, and one of them was written to. */
const COUNTS = [3, 1, 7, SNAPSHOT_ROWS_MAX, SNAPSHOT_ROWS_MAX + 1, 0, 0];

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  for (const [i, tenant] of TENANTS.entries()) {
    await database.pool.query(
      `insert into relation_tuple
        select 'p', $1, 'doc', 'ü' || i, 'viewer', '', 'u' || $1, '',
          case when i = 2 then -5 end, case when i = 3 then 'c' end, case when i = 3 then '{}' end, 1
        from generate_series(1, $2) i`,
      [tenant, COUNTS[i]],
    );
    if (tenant !== 'absent') await writeChange(database.pool, shardOf(tenant));
  }
});
afterAll(async () => await database.drop());

type Rows = (string | null)[][];

function sinkOf(rows: Rows) {
  return {
    begin: () => void rows.splice(0),
    row: (bytes: Uint8Array, bounds: Int32Array) => {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const text = (column: string, i: number): string | null => {
        const start = bounds[2 * i] ?? -1;
        if (start < 0) return null;
        if (column === 'expires_at_us') return buffer.readBigInt64BE(start).toString();
        return buffer.toString('utf8', start, bounds[2 * i + 1]);
      };
      rows.push(SNAPSHOT_COLUMNS.map(text));
    },
  };
}

const sorted = (rows: Rows): string[] => rows.map((row) => JSON.stringify(row)).toSorted();

it('gives each shard its rows and its head, as alone, but for those that are too large', async () => {
  const shards = TENANTS.map(shardOf);
  const together: Rows[] = shards.map(() => []);
  const headRevisions = await loadSnapshotsOfMany(database.pool, shards, together.map(sinkOf));
  for (const [i, shard] of shards.entries()) {
    const alone: Rows = [];
    const head = await loadSnapshot(database.pool, shard, sinkOf(alone));
    expect(alone.length).toBe(COUNTS[i]);
    if (shard.tenantId === 'one-more') {
      expect([headRevisions[i], together[i]?.length]).toEqual([undefined, SNAPSHOT_ROWS_MAX]);
    } else {
      expect(headRevisions[i]).toEqual(head);
      expect(sorted(together[i] ?? [])).toEqual(sorted(alone));
    }
  }
  expect(headRevisions[5]?.revision).toBe(0);
});

it('shares queries among all that are asked for at once, and begins anew with those that are large', async () => {
  const source = new PostgresShardSource(database.pool, 10_000);
  const { signal } = new AbortController();
  const all = Array.from({ length: 300 }, (_, i) => i % TENANTS.length);
  const rows: Rows[] = all.map(() => []);
  const headRevisions = await Promise.all(
    all.map((tenant, i) =>
      source.loadSnapshot(shardOf(TENANTS[tenant] ?? ''), sinkOf(rows[i] ?? []), signal),
    ),
  );
  expect(rows.map(({ length }) => length)).toEqual(all.map((tenant) => COUNTS[tenant]));
  expect(headRevisions.map(({ revision }) => revision)).toEqual(
    all.map((t) => (TENANTS[t] === 'absent' ? 0 : 1)),
  );
});

it('fails all of a query that is given up, and none that comes later', async () => {
  const { pool } = database;
  const aborted = AbortSignal.abort();
  const rows: Rows = [];
  await expect(
    loadSnapshotsOfMany(pool, [shardOf('')], [sinkOf(rows)], aborted),
  ).rejects.toMatchObject({ reason: 'SHARD_UNAVAILABLE' });
  const source = new PostgresShardSource(pool, 10_000);
  const head = await source.loadSnapshot(shardOf(''), sinkOf(rows), new AbortController().signal);
  expect([head.revision, rows.length]).toEqual([1, 3]);
});
