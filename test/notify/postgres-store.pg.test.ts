import { afterAll, expect, test } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { PostgresStore } from '../../src/notify/store/postgres-store.ts';
import { silentLog } from '../../src/store/postgres/store-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { ANN, describeStore, newNotification } from './store-contract.ts';

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

/** A store on an empty database, and a way to open a second one on it. */
async function openFresh(): Promise<{
  store: PostgresStore;
  openAgain: () => PostgresStore;
  database: TestDatabase;
}> {
  const database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  const { target } = database;
  await migrateNotify(target, silentLog);
  await migrateNotify(target, silentLog);
  const openAgain = (): PostgresStore =>
    new PostgresStore({ target, poolMax: 4, secretKeys: [], log: silentLog });
  const store = openAgain();
  await store.started;
  return { store, openAgain, database };
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

test('tells whose stream grew, and who has read', async () => {
  const { store } = await openFresh();
  const heard: string[] = [];
  store.onStored((user, ...place) => {
    if (user !== null) heard.push([user.tenantId, user.userId, ...place].join('/'));
  });
  const bob = { ...ANN, userId: 'bob' };
  await store.put([newNotification(ANN), newNotification(bob)]);
  await store.markRead(ANN, { upToSequence: 1 }, Date.now());
  const all = ['acme/ann/1/0', 'acme/ann/1/1', 'acme/bob/1/0'];
  await expect.poll(() => [...new Set(heard)].sort()).toEqual(all);
  await store.close();
});

test('forgets marks after two hours, and says that there were some', async () => {
  const { store, database } = await openFresh();
  await store.put([1, 2, 3].map(() => newNotification(ANN)));
  for (const upToSequence of [1, 2]) await store.markRead(ANN, { upToSequence }, Date.now());
  await database.pool.query(`update notify.read_mark set made_at = made_at - interval '2 hours'`);
  await store.markRead(ANN, { upToSequence: 3 }, Date.now());
  expect([await store.purgeReads(1), await store.purgeReads(9), await store.purgeReads(9)]).toEqual(
    [1, 1, 0],
  );
  const state = { head: 3, reads: 3, unreadCount: 0, upTo: 3 };
  const last = { number: 3, which: { upToSequence: 3 } };
  expect(await store.readsAfter(ANN, 0, 9)).toEqual({
    ...state,
    marks: [{ number: 2, which: undefined }, last],
  });
  expect(await store.readsAfter(ANN, 2, 9)).toEqual({ ...state, marks: [last] });
  await store.close();
});

test('is told as STORE_UNAVAILABLE when the database is away', async () => {
  const target = { host: '127.0.0.1', port: 1, user: 'x', password: 'x', database: 'x' };
  const store = new PostgresStore({ target, poolMax: 1, secretKeys: [], log: silentLog });
  await expect(store.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  await store.close();
});
