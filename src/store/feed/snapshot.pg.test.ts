import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { writeChange } from '../../../test/support/write-change.ts';
import type { StoredHeadRevision } from './changes.ts';
import { SNAPSHOT_COLUMNS, estimateTuples, loadSnapshot } from './snapshot.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 3 });
});
afterAll(async () => await database.drop());

type Rows = (string | null)[][];

/** Rows as text, for comparison. */
function collect(rows: Rows, begun: StoredHeadRevision[] = []) {
  return {
    begin: (headRevision: StoredHeadRevision) => void begun.push(headRevision),
    row: (bytes: Uint8Array, bounds: Int32Array) => {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      rows.push(
        SNAPSHOT_COLUMNS.map((column, i) => {
          const start = bounds[2 * i] ?? -1;
          if (start < 0) return null;
          if (column === 'expires_at_us') return buffer.readBigInt64BE(start).toString();
          return buffer.toString('utf8', start, bounds[2 * i + 1]);
        }),
      );
    },
  };
}

const tenant = "o'brien\\x";

describe('loadSnapshot', () => {
  it('gives every column of every row of the shard, and no other', async () => {
    const shard = { projectId: 'p', tenantId: tenant };
    const rows: Rows = [
      ['doc', 'a:b', 'viewer', '', 'zoë', '', null, null, null],
      ['doc', 'tab\\t', 'viewer', '*', '', '', '1700000000123456', null, null],
      ['doc', '', 'parent', 'workspace', '日本', '', null, 'not_after', '{"not_after":"x"}'],
      ['doc', 'd', 'viewer', 'group', 'g', 'member', '-5', 'scope_in', '{}'],
    ];
    for (const row of rows) {
      await database.pool.query(
        `insert into relation_tuple values ('p', $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`,
        [tenant, ...row],
      );
    }
    await database.pool.query(
      `insert into relation_tuple values ('p', '', 'doc', 'x', 'viewer', '', 'y', '', null, null, null, 1)`,
    );
    await writeChange(database.pool, shard);
    const read: Rows = [];
    const begun: StoredHeadRevision[] = [];
    const headRevision = await loadSnapshot(database.pool, shard, collect(read, begun));
    const byText = (a: unknown[], b: unknown[]): number => (String(a) < String(b) ? -1 : 1);
    expect(read.toSorted(byText)).toEqual(rows.toSorted(byText));
    expect(headRevision).toMatchObject({ revision: 1, retainedFrom: 1 });
    expect(begun).toEqual([headRevision]);
  });

  it('is one state: rows and position agree while writers go on', async () => {
    const shard = { projectId: 'p', tenantId: 'busy' };
    let writing = true;
    const writer = (async () => {
      for (let i = 1; writing; i++) {
        const client = await database.pool.connect();
        await client.query('begin');
        const revision = await writeChange(client, shard);
        await client.query(
          `insert into relation_tuple values ('p', 'busy', 'doc', $1, 'viewer', '', 'u', '', null, null, null, $2)`,
          [`d${i}`, revision],
        );
        await client.query('commit');
        client.release();
      }
    })();
    for (let i = 0; i < 30; i++) {
      const rows: Rows = [];
      const headRevision = await loadSnapshot(database.pool, shard, collect(rows));
      expect(rows).toHaveLength(headRevision.revision);
    }
    writing = false;
    await writer;
  });

  it('lets the event loop run between slices, and waits for a sink that is behind', async () => {
    const shard = { projectId: 'p', tenantId: 'large' };
    await database.pool.query(
      `insert into relation_tuple select 'p', 'large', 'doc', 'd' || i, 'viewer', '', 'u', '', null, null, null, 1
       from generate_series(1, 60000) i`,
    );
    let rows = 0;
    let waits = 0;
    let turns = 0;
    let running = true;
    const turn = (): void => {
      turns++;
      if (running) setImmediate(turn);
    };
    setImmediate(turn);
    await loadSnapshot(database.pool, shard, {
      begin: () => undefined,
      row: () => void rows++,
      ready: async () => {
        waits++;
        await new Promise((resolve) => setTimeout(resolve, 1));
      },
    });
    running = false;
    expect(rows).toBe(60_000);
    expect(waits).toBeGreaterThan(2);
    expect(turns).toBeGreaterThan(waits);
  });

  it('can be given up at any time, and gives its connection back', async () => {
    const shard = { projectId: 'p', tenantId: 'large' };
    for (const after of [0, 1, 1_000, 30_000]) {
      const abort = new AbortController();
      if (after === 0) abort.abort();
      let rows = 0;
      const loading = loadSnapshot(
        database.pool,
        shard,
        {
          begin: () => undefined,
          row: () => {
            if (++rows === after) abort.abort();
          },
        },
        abort.signal,
      );
      await expect(loading).rejects.toMatchObject({ reason: 'SHARD_UNAVAILABLE' });
      expect(rows).toBeLessThan(60_000);
    }
    const sink = {
      begin: () => undefined,
      row: () => {
        throw new Error('index is full');
      },
    };
    await expect(loadSnapshot(database.pool, shard, sink)).rejects.toThrow('index is full');
    const rows: Rows = [];
    await loadSnapshot(database.pool, shard, collect(rows));
    expect(rows).toHaveLength(60_000);
  });

  it('fails when its session is cut midway', async () => {
    const shard = { projectId: 'p', tenantId: 'large' };
    let rows = 0;
    const loading = loadSnapshot(database.pool, shard, {
      begin: () => undefined,
      row: () => void rows++,
      ready: async () => {
        await database.pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query like '%copy (select%' and pid <> pg_backend_pid()
             and datname = current_database()`,
        );
      },
    });
    await expect(loading).rejects.toThrow(/terminat/i);
    expect(rows).toBeLessThan(60_000);
  });
});

it('a large tenant beside small ones is known by about its size', async () => {
  const { pool } = database;
  await pool.query(`insert into project (id, name) values ('p', 'p')`);
  await pool.query(
    `insert into shard (project_id, tenant_id) select 'p', 't' || n from generate_series(1, 50) n`,
  );
  await pool.query(`insert into relation_tuple
      (project_id, tenant_id, namespace, object_id, relation, subject_namespace, subject_id, subject_relation, seq)
    select 'p', case when n <= 40000 then 't1' else 't' || (2 + n % 49) end,
      'doc', 'd' || n, 'viewer', '', 'u', '', 1
    from generate_series(1, 45000) n`);
  await pool.query('analyze relation_tuple');
  const large = await estimateTuples(pool, { projectId: 'p', tenantId: 't1' });
  expect(large).toBeGreaterThan(30_000);
  expect(large).toBeLessThan(50_000);
  expect(await estimateTuples(pool, { projectId: 'p', tenantId: 't7' })).toBeLessThan(2_000);
});
