import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { ClientBase, Connection, Pool } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type ServerTarget, createPool } from '../postgres/pool.ts';
import { SNAPSHOT_COLUMNS, loadSnapshot, rowsText, streamRows } from './snapshot.ts';

const SHARD = { projectId: 'p', tenantId: 'cut' };
const ROWS = 1_500;
const BOUNDS = SNAPSHOT_COLUMNS.length * 2;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 2 });
  // Some rows are longer than what one read of a socket takes.
  await database.pool.query(
    `insert into relation_tuple
     select 'p', 'cut', 'doc', 'd' || i, 'viewer', '', repeat('u', i % 50 + 1), '', null,
       case when i % 500 = 7 then 'c' end, case when i % 500 = 7 then repeat('x', 70000) end, 1
     from generate_series(1, $1::int) i`,
    [ROWS],
  );
});
afterAll(async () => await database.drop());

/** A sum of what was read that distinguishes rows and columns, in no order. */
class Sums {
  rows = 0;
  total = 0;

  readonly begin = (): void => undefined;

  readonly row = (bytes: Uint8Array, bounds: Int32Array): void => this.#add(bytes, bounds, 0);

  /** A sink that takes many rows at once. */
  readonly together = (bytes: Uint8Array, bounds: Int32Array, rows: number): void => {
    for (let i = 0; i < rows; i++) this.#add(bytes, bounds, i * BOUNDS);
  };

  #add(bytes: Uint8Array, bounds: Int32Array, at: number): void {
    let hash = 1;
    for (let c = 0; c < BOUNDS; c += 2) {
      const start = bounds[at + c] as number;
      const end = bounds[at + c + 1] as number;
      hash = Math.imul(hash, 31) + (end - start);
      for (let i = start; i < end; i++) hash = Math.imul(hash, 31) + (bytes[i] as number);
    }
    this.rows += 1;
    this.total = (this.total + hash) | 0;
  }
}

type Sink = Parameters<typeof loadSnapshot>[2];
const one = (sums: Sums): Sink => ({ begin: sums.begin, row: sums.row });
const many = (sums: Sums): Sink => ({ ...one(sums), rows: sums.together });

/** Sum of the rows by the driver's own reading of the text format, without COPY. */
async function expectedSums(): Promise<Sums> {
  const sums = new Sums();
  const { rows } = await database.pool.query<Record<string, string | null>>(
    `select ${SNAPSHOT_COLUMNS.join(', ')} from relation_tuple where project_id = 'p' and tenant_id = 'cut'`,
  );
  for (const row of rows) {
    const bounds = new Int32Array(BOUNDS).fill(-1);
    const parts: Buffer[] = [];
    let length = 0;
    SNAPSHOT_COLUMNS.forEach((column, c) => {
      const value = row[column] ?? null;
      if (value === null) return;
      const bytes = Buffer.from(value);
      bounds[2 * c] = length;
      bounds[2 * c + 1] = length += bytes.length;
      parts.push(bytes);
    });
    sums.row(Buffer.concat(parts), bounds);
  }
  return sums;
}

/** A port before the server that hands its bytes on in pieces of the lengths that `next` says. */
async function cutPort(next: () => number): Promise<{ target: ServerTarget; end: () => void }> {
  const own = await database.pool.connect();
  const { host, port: ownPort, user, password, database: name } = own as ClientBase & ServerTarget;
  own.release();
  const server = { host, port: ownPort, user, password, database: name };
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const upstream = server.host.startsWith('/')
      ? connect(join(server.host, `.s.PGSQL.${server.port}`))
      : connect(server.port, server.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('error', () => socket.destroy());
    }
    client.on('data', (bytes) => upstream.write(bytes));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    const cut = async (): Promise<void> => {
      for await (const bytes of upstream as AsyncIterable<Buffer>) {
        for (let at = 0; at < bytes.length;) {
          const size = Math.max(1, next());
          client.write(bytes.subarray(at, at + size));
          at += size;
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
    };
    cut().catch(() => client.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as { port: number };
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  };
  return { target: { ...server, host: '127.0.0.1', port }, end };
}

/** Loads with both kinds of sinks over one connection, which must serve afterwards. */
async function expectWhole(pool: Pool, expected: Sums): Promise<void> {
  for (const kind of [one, many]) {
    const sums = new Sums();
    await loadSnapshot(pool, SHARD, kind(sums));
    expect([sums.rows, sums.total]).toEqual([expected.rows, expected.total]);
    expect((await pool.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
  }
}

it('reads the rows past the driver, and gives the connection back as it was (I2)', async () => {
  const expected = await expectedSums();
  expect(expected.rows).toBe(ROWS);
  const pool = createPool(database.target, { max: 1, applicationName: 'test' });
  let seen = 0;
  pool.on('connect', (client) => {
    const { connection } = client as unknown as { connection: Connection };
    connection.on('copyData', () => seen++);
  });
  await expectWhole(pool, expected);
  // The driver had the first bytes of each load, and nothing of most rows.
  expect(seen).toBeGreaterThan(0);
  expect(seen).toBeLessThan(ROWS);
  await pool.end();
});

it('finds the same rows wherever the bytes are cut (I1)', async () => {
  const expected = await expectedSums();
  const seed = Math.trunc(Math.random() * 2 ** 31);
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  for (const most of [300, 3_000, 20_000]) {
    const { target, end } = await cutPort(() => below(most));
    const pool = createPool(target, { max: 1, applicationName: 'test' });
    try {
      await expectWhole(pool, expected);
    } catch (error) {
      throw new Error(`seed ${seed}, pieces below ${most}`, { cause: error });
    } finally {
      await pool.end();
      end();
    }
  }
});

it('leaves what is no row to the driver, in the midst of rows too', async () => {
  await database.pool.query(`
    create function told(n text) returns text language plpgsql as $$
    begin
      if n like 'd%77' then raise notice 'row %', n; end if;
      if n = 'd1499' then raise exception 'no such row'; end if;
      return n;
    end $$`);
  const expected = await expectedSums();
  const pool = createPool(database.target, { max: 1, applicationName: 'test' });
  const notices: string[] = [];
  pool.on('connect', (client) => {
    client.on('notice', ({ message }) => notices.push(String(message)));
  });
  const textOf = (clauses: string) => (client: ClientBase) => rowsText(client, SHARD, '', clauses);
  const sums = new Sums();
  await streamRows(pool, textOf(`and (object_id = 'd1499' or told(object_id) <> '')`), many(sums));
  expect([sums.rows, sums.total]).toEqual([expected.rows, expected.total]);
  expect(notices).toHaveLength(ROWS / 100);
  const failing = streamRows(pool, textOf(`and told(object_id) <> ''`), many(new Sums()));
  await expect(failing).rejects.toThrow('no such row');
  expect((await pool.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
  await pool.end();
});

it('gives the same rows to a sink that is behind, and none once it was given up', async () => {
  const expected = await expectedSums();
  const pool = createPool(database.target, { max: 1, applicationName: 'test' });
  const sums = new Sums();
  // Each row takes so long that every look at the clock ends a slice.
  const slow: Sink = {
    begin: sums.begin,
    row: sums.row,
    rows: (bytes, bounds, rows) => {
      sums.together(bytes, bounds, rows);
      const endMs = performance.now() + 3;
      while (performance.now() < endMs);
    },
    ready: () => new Promise((resolve) => setImmediate(resolve)),
  };
  await loadSnapshot(pool, SHARD, slow);
  expect([sums.rows, sums.total]).toEqual([expected.rows, expected.total]);

  const abort = new AbortController();
  let after = 0;
  let given = 0;
  const loading = loadSnapshot(
    pool,
    SHARD,
    {
      begin: () => undefined,
      row: () => void given++,
      rows: (_bytes, _bounds, rows) => {
        if (abort.signal.aborted) after += rows;
        given += rows;
        if (given > ROWS / 2) abort.abort();
      },
    },
    abort.signal,
  );
  await expect(loading).rejects.toMatchObject({ reason: 'SHARD_UNAVAILABLE' });
  expect([after, given < ROWS]).toEqual([0, true]);
  await expectWhole(pool, expected);
  await pool.end();
});
