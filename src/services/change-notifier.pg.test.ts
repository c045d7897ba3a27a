import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../test/support/postgres.ts';
import { CHANGE_CHANNEL } from '../store/change-feed.ts';
import { ChangeNotifier } from './change-notifier.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('the newest seq of each shard is notified once; shards beyond the bound are left out', async () => {
  const listener = await database.pool.connect();
  const payloads: unknown[] = [];
  listener.on('notification', ({ payload }) => payloads.push(JSON.parse(payload ?? '')));
  await listener.query(`listen ${CHANGE_CHANNEL}`);
  const errors: unknown[] = [];
  const notifier = new ChangeNotifier({
    pool: database.pool,
    intervalMs: 60_000,
    shardsMax: 2,
    onError: (error) => errors.push(error),
  });
  notifier.hint({ projectId: 'p', tenantId: 'a' }, 2);
  notifier.hint({ projectId: 'p', tenantId: 'a' }, 1);
  notifier.hint({ projectId: 'p', tenantId: '' }, 7);
  notifier.hint({ projectId: 'p', tenantId: 'b' }, 1);
  await notifier.close();
  await notifier.close();
  await expect
    .poll(() => payloads)
    .toEqual([
      ['p', 'a', 2],
      ['p', '', 7],
    ]);
  expect(errors).toEqual([]);
  listener.release();
});
