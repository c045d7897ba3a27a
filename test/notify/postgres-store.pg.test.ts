import { afterAll, expect, test } from 'vitest';
import { migrateNotify } from '../../src/notify/store/migrate-notify.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { ANN, describeStore, newNotification } from './store-contract.ts';

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

/** A store on an empty database, and a way to open a second one on it. */
async function openFresh(): Promise<{ store: PostgresStore; openAgain: () => PostgresStore }> {
  const database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  const { target } = database;
  await migrateNotify(target, silentLog);
  await migrateNotify(target, silentLog);
  const openAgain = (): PostgresStore =>
    new PostgresStore({ target, poolMax: 4, secretKeys: [], log: silentLog });
  const store = openAgain();
  await store.started;
  return { store, openAgain };
}

describeStore('postgres', async () => (await openFresh()).store);

test('a second process hears of what the first one stored, and finds it after a restart', async () => {
  const { store, openAgain } = await openFresh();
  const other = openAgain();
  await other.started;
  const heard: string[] = [];
  other.onStored((user) => {
    if (user !== null) heard.push(user.userId);
  });
  await store.put([newNotification(ANN)]);
  await expect.poll(() => heard).toContain('ann');
  await store.close();
  expect((await other.liveAfter(ANN, 0, 9)).map((n) => n.sequence)).toEqual([1]);
  await other.close();
});

test('is told as STORE_UNAVAILABLE when the database is away', async () => {
  const target = { host: '127.0.0.1', port: 1, user: 'x', password: 'x', database: 'x' };
  const store = new PostgresStore({ target, poolMax: 1, secretKeys: [], log: silentLog });
  await expect(store.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  await store.close();
});
