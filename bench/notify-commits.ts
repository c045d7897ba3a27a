import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { ChangeNotifier } from '../src/services/change-notifier.ts';
// Yields commits a second of 16 connections: without notifications; beside three instances that notify of 10,000 commits a
// second together, as they do and with a notification for each shard; and with a notification inside of each commit.
// Run: npm run bench -- notify-commits [-- SECONDS] [ROUNDS]
import { silentReport } from '../src/shared/loop-report.ts';
import { CHANGE_CHANNEL, startChangeFeed } from '../src/store/change-feed.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { createPool } from '../src/store/pool.ts';

const SECONDS = Number(process.argv[2] ?? 4);
const ROUNDS = Number(process.argv[3] ?? 3);
const WRITERS = 16;
const INSTANCES = 3;
const SHARDS = 1_000;
const TICK_MS = 20;
/** Of each instance: 10,000 a second together. */
const HINTS_A_TICK = 67;

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const server = await startEmbeddedPostgres({ dataDirectory: join(directory, 'data') });
const pool = createPool(server.target, { max: WRITERS + 2 * INSTANCES, applicationName: 'bench' });
await pool.query('create table item (id bigint generated always as identity primary key, b text)');

const PLAIN = `insert into item (b) values ('x')`;
const NOTIFYING = `with i as (insert into item (b) values ('x') returning id)
  select pg_notify('${CHANGE_CHANNEL}', json_build_array('p', 't' || id % ${SHARDS}, id)::text) from i`;

/** Commits a second of all writers together. */
async function commitsPerSecond(text: string): Promise<number> {
  const endMs = performance.now() + SECONDS * 1_000;
  let count = 0;
  const writer = async (): Promise<void> => {
    const client = await pool.connect();
    while (performance.now() < endMs) {
      await client.query(text);
      count += 1;
    }
    client.release();
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  return Math.round(count / SECONDS);
}

const shardAt = (i: number) => ({ projectId: 'production', tenantId: `tenant-${i % SHARDS}` });

/** Hints of 10,000 commits a second, until it is stopped. */
function hinting(hint: (instance: number, shard: number, revision: number) => void): () => void {
  let revision = 0;
  const timer = setInterval(() => {
    for (let instance = 0; instance < INSTANCES; instance++) {
      for (let i = 0; i < HINTS_A_TICK; i++) hint(instance, revision + i, revision);
    }
    revision += HINTS_A_TICK;
  }, TICK_MS);
  return () => clearInterval(timer);
}

async function besideNotifiers(): Promise<{
  commits: number;
  notifications: number;
  lost: number;
}> {
  const notifiers = Array.from(
    { length: INSTANCES },
    () => new ChangeNotifier({ pool, intervalMs: TICK_MS, shardsMax: 4_096, report: silentReport }),
  );
  const stop = hinting((instance, shard, revision) =>
    notifiers[instance]?.hint(shardAt(shard), revision),
  );
  const commits = await commitsPerSecond(PLAIN);
  stop();
  for (const notifier of notifiers) await notifier.close();
  const sum = (of: (notifier: ChangeNotifier) => number): number =>
    notifiers.reduce((total, notifier) => total + of(notifier), 0);
  return {
    commits,
    notifications: Math.round(sum(({ counts }) => counts.notifications) / SECONDS),
    lost: sum(({ counts }) => counts.lost),
  };
}

/** As the release before: in one statement of each instance and tick, a notification for each shard. */
async function besideSingleNotifications(over: Pool): Promise<number> {
  const waiting: Map<string, number>[] = Array.from({ length: INSTANCES }, () => new Map());
  const stop = hinting((instance, shard, revision) =>
    waiting[instance]?.set(`tenant-${shard % SHARDS}`, revision),
  );
  let isDone = false;
  const senders = waiting.map(async (hints) => {
    while (!isDone) {
      await sleep(TICK_MS);
      const entries = [...hints];
      hints.clear();
      await over.query(
        `select pg_notify('${CHANGE_CHANNEL}', json_build_array('production', k.t, k.s)::text)
         from unnest($1::text[], $2::bigint[]) k (t, s)`,
        [entries.map(([tenant]) => tenant), entries.map(([, revision]) => revision)],
      );
    }
  });
  const commits = await commitsPerSecond(PLAIN);
  isDone = true;
  stop();
  await Promise.all(senders);
  return commits;
}

// Somebody listens: a notification that nobody hears is cheaper.
const feed = startChangeFeed({ target: server.target, sender: '', onHint: () => undefined });
await feed.started;
await commitsPerSecond(PLAIN);
for (let round = 1; round <= ROUNDS; round++) {
  const without = await commitsPerSecond(PLAIN);
  const beside = await besideNotifiers();
  const single = await besideSingleNotifications(pool);
  const inside = await commitsPerSecond(NOTIFYING);
  const line = { round, without, beside, besideSingle: single, inside };
  process.stdout.write(`${JSON.stringify({ ...line, cores: cpus().length })}\n`);
}
await feed.stop();
await pool.end();
await server.stop();
rmSync(directory, { recursive: true });
