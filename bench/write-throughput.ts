// Yields one ratio: acknowledged writes of one tuple a second with 64 concurrent callers, over what one
// connection commits on the same server.
// Run: npm run bench -- write-throughput [-- SECONDS]
// DATABASE_URL names the server (a database of its own is made); unset, an embedded one is started.
import { randomUUID } from 'node:crypto';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { TokenCodec } from '../src/model/consistency-token.ts';
import { HeadRevisions } from '../src/services/head-revisions.ts';
import { TupleWriter } from '../src/services/tuple-writer.ts';
import { systemClock } from '../src/shared/clock.ts';
import { IdSource } from '../src/shared/ids.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { Membership } from '../src/store/membership.ts';
import { migrate } from '../src/store/migrate.ts';
import { type PostgresTarget, createPool } from '../src/store/pool.ts';
import { NO_WRITE_RULES } from '../test/support/write-rules.ts';

const CALLERS = 64;
const SECONDS = Number(process.argv[2] ?? 5);
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));

/** Milliseconds of one 8 KiB append with fdatasync, the floor of a commit. */
function fsyncMs(): number {
  const file = openSync(join(directory, 'fsync'), 'w');
  const block = Buffer.alloc(8192);
  const start = performance.now();
  for (let i = 0; i < 200; i++) {
    writeSync(file, block);
    fdatasyncSync(file);
  }
  closeSync(file);
  return (performance.now() - start) / 200;
}

async function targetOf(): Promise<{ target: PostgresTarget; stop: () => Promise<void> }> {
  const url = process.env['DATABASE_URL'];
  if (url === undefined) {
    const server = await startEmbeddedPostgres({ dataDirectory: join(directory, 'data') });
    return { target: server.target, stop: () => server.stop() };
  }
  const name = `bench_${randomUUID().replaceAll('-', '')}`;
  const admin = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(text);
    await client.end();
  };
  await admin(`create database ${name} template template0 encoding 'UTF8'`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    target: { connectionString: own.href },
    stop: () => admin(`drop database ${name} with (force)`),
  };
}

async function singleConnection(pool: pg.Pool): Promise<number> {
  const client = await pool.connect();
  await client.query('create table if not exists bench_row (id bigint primary key, b text)');
  let count = 0;
  const start = performance.now();
  while (performance.now() - start < SECONDS * 1000) {
    await client.query({
      name: 'bench',
      text: `insert into bench_row values ($1, 'x')`,
      values: [Math.floor(start) * 1_000_000 + count++],
    });
  }
  client.release();
  return (count / (performance.now() - start)) * 1000;
}

function createWriter(
  pool: pg.Pool,
  admission: Membership,
  lanes: number,
  onDelivered: (count: number) => void,
): TupleWriter {
  const heads = new HeadRevisions({ entriesMax: 100_000 });
  return new TupleWriter({
    pool,
    admission,
    headRevisions: heads,
    rules: NO_WRITE_RULES,
    clock: systemClock,
    ids: new IdSource(systemClock),
    committed: { onCommitted: (changes) => onDelivered(changes.length) },
    lanes,
    queuedWritesMax: 10_000,
    queuedUpdatesMax: 100_000,
    groupWritesMax: 256,
    groupUpdatesMax: 4_000,
    writeTimeoutMs: 10_000,
    answerTimeoutMs: 35_000,
    attemptsMax: 5,
    retryDelayMs: 20,
  });
}

async function writes(
  pool: pg.Pool,
  admission: Membership,
  key: Buffer,
  tenants: number,
  lanes: number,
): Promise<object> {
  const codec = new TokenCodec({ key, rememberMax: 10_000 });
  let delivered = 0;
  const writer = createWriter(pool, admission, lanes, (count) => (delivered += count));
  const project = `bench${tenants}-${lanes}-${randomUUID().slice(0, 8)}`;
  const meta = {
    rpc: 'WriteRelationTuples',
    actingUserId: null,
    requestId: '',
    deadlineMs: Infinity,
  };
  const latencies: number[] = [];
  const tokens = new Set<string>();
  let count = 0;
  let endMs = Infinity;
  const caller = async (index: number): Promise<void> => {
    const shard = { projectId: project, tenantId: `t${index % tenants}` };
    while (performance.now() < endMs) {
      const start = performance.now();
      const id = `${index}-${count++}`;
      const { epoch, revision } = await writer.write(
        shard,
        [
          {
            op: 'insert',
            tuple: {
              namespace: 'doc',
              objectId: `document-${Math.floor(Math.random() * 1e6)}`,
              relation: 'viewer',
              subject: { kind: 'user', userId: `user-${id}` },
            },
          },
        ],
        { ...meta, requestId: id },
      );
      tokens.add(codec.encode(shard, epoch, revision));
      if (tokens.size > 1_000) tokens.clear();
      latencies.push(performance.now() - start);
    }
  };
  const start = performance.now();
  const cpu = process.cpuUsage();
  endMs = start + SECONDS * 1000;
  await Promise.all(Array.from({ length: CALLERS }, (_, index) => caller(index)));
  const elapsed = performance.now() - start;
  const used = process.cpuUsage(cpu);
  await writer.close(1_000);
  latencies.sort((a, b) => a - b);
  const percentile = (p: number): number =>
    Math.round((latencies[Math.floor(latencies.length * p)] ?? 0) * 100) / 100;
  if (delivered !== latencies.length) throw new Error('a write was not delivered');
  return {
    tenants,
    lanes,
    writesPerSecond: Math.round((latencies.length / elapsed) * 1000),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    clientCpu: Math.round(((used.user + used.system) / 1000 / elapsed) * 100) / 100,
  };
}

const { target, stop } = await targetOf();
try {
  const deployment = await migrate(target);
  const pool = createPool(target, { max: 10, applicationName: 'bench' });
  const membership = new Membership({ target, region: '', isExclusive: true });
  await membership.start();
  const say = (fields: object): void => {
    process.stdout.write(`${JSON.stringify({ bench: 'write-throughput', ...fields })}\n`);
  };
  say({ cpu: cpus()[0]?.model, cpus: cpus().length, fdatasyncMs: fsyncMs() });
  for (const [tenants, lanes] of [
    [1, 2],
    [64, 1],
    [64, 2],
    [64, 3],
  ] as const) {
    const single = await singleConnection(pool);
    const result = await writes(pool, membership, deployment.tokenKey, tenants, lanes);
    const ratio = (result as { writesPerSecond: number }).writesPerSecond / single;
    say({ singleConnectionCommits: Math.round(single), ...result, ratio: ratio.toFixed(2) });
  }
  await pool.end();
  await membership.leave();
} finally {
  await stop();
  rmSync(directory, { recursive: true, force: true });
}
