import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { CHANGE_CHANNEL } from '../../store/feed/change-feed.ts';
import { hintsIn } from '../../store/feed/change-hints.ts';
import { createPool } from '../../store/postgres/pool.ts';
import { ChangeNotifier } from './change-notifier.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const shard = (tenantId: string) => ({ projectId: 'p', tenantId });

type Heard = { readonly sender: string | undefined; readonly hints: readonly unknown[] };

async function listen(): Promise<{ heard: Heard[]; listener: PoolClient }> {
  const listener = await database.pool.connect();
  const heard: Heard[] = [];
  listener.on('notification', ({ payload }) => {
    const message = hintsIn(payload ?? '');
    const hints = message?.hints.map((hint) => [hint.shard.tenantId, hint.revision]) ?? [];
    heard.push({ sender: message?.sender, hints });
  });
  await listener.query(`listen ${CHANGE_CHANNEL}`);
  onTestFinished(async () => {
    await listener.query('unlisten *');
    listener.removeAllListeners('notification');
    listener.release();
  });
  return { heard, listener };
}

function notifierOver(pool: Pool, errors: unknown[], intervalMs = 60_000): ChangeNotifier {
  return new ChangeNotifier({
    pool,
    intervalMs,
    shardsMax: 2,
    report: { succeeded: () => undefined, failed: (error) => errors.push(error) },
  });
}

test('shards of a tick share a notification, with the newest seq of each; beyond the bound is lost', async () => {
  const { heard } = await listen();
  const errors: unknown[] = [];
  const notifier = notifierOver(database.pool, errors);
  notifier.hint(shard('a'), 2);
  notifier.hint(shard('a'), 1);
  notifier.hint(shard(''), 7);
  notifier.hint(shard('b'), 1);
  await notifier.close();
  await notifier.close();
  const hints = [
    ['a', 2],
    ['', 7],
  ];
  await expect.poll(() => heard).toEqual([{ sender: notifier.sender, hints }]);
  expect(errors).toEqual([]);
  expect(notifier.counts).toEqual({ hints: 2, notifications: 1, lost: 1 });
});

test('the first commit after a pause is told at once, what follows waits for the interval', async () => {
  const { heard } = await listen();
  const notifier = notifierOver(database.pool, []);
  notifier.hint(shard('a'), 1);
  await expect.poll(() => heard).toEqual([expect.objectContaining({ hints: [['a', 1]] })]);
  notifier.hint(shard('a'), 2);
  notifier.hint(shard('b'), 1);
  await sleep(100);
  expect(heard).toHaveLength(1);
  await notifier.close();
  await expect
    .poll(() => heard[1]?.hints)
    .toEqual([
      ['a', 2],
      ['b', 1],
    ]);
});

test('while the server is slow hints gather within the bound, and are sent with the newest seqs', async () => {
  const { heard } = await listen();
  const pool = createPool(database.target, { max: 1, applicationName: 'test-notifier' });
  onTestFinished(() => pool.end());
  const busy = await pool.connect();
  const notifier = notifierOver(pool, [], 1);
  for (let revision = 1; revision <= 50; revision++) {
    notifier.hint(shard('a'), revision);
    await sleep(2);
  }
  // One statement waits for the connection, with the first hint; the rest is one hint.
  expect(pool.waitingCount).toBe(1);
  busy.release();
  await expect.poll(() => heard.at(-1)?.hints).toEqual([['a', 50]]);
  expect(heard.length).toBeLessThan(5);
  await notifier.close();
});

test('what the server does not take is lost, told, and nobody waits for it', async () => {
  const { heard } = await listen();
  const pool = createPool(database.target, { max: 1, applicationName: 'test-notifier' });
  await pool.end();
  const errors: unknown[] = [];
  const notifier = notifierOver(pool, errors, 1);
  notifier.hint(shard('a'), 1);
  await expect.poll(() => errors).toHaveLength(1);
  notifier.hint(shard('a'), 2);
  await notifier.close();
  expect([errors.length, notifier.counts.lost, heard]).toEqual([2, 2, []]);
});
