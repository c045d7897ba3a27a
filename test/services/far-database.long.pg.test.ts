import { afterAll, beforeAll, expect, test } from 'vitest';
import { startIndexLinks, type IndexLinks } from '../../src/authz/database/index-links.ts';
import { HeadRevisions } from '../../src/services/reads/head-revisions.ts';
import { ReadIndex } from '../../src/services/reads/read-index.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import { PostgresProxy } from '../../verify/cluster/postgres-proxy.ts';
import { createRandom } from '../../verify/workload/random.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { UNCOUNTED } from '../support/read-index.ts';

/* A database that is only far does not stall; one that hangs does. */

/** One way, in ms: a round trip of 60, above the 25 of a database nearby. */
const ONE_WAY_MS = 30;
const READS = 60;

let database: TestDatabase;
let proxy: PostgresProxy;
let links: IndexLinks;
let index: ReadIndex;
let stalls = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await PostgresProxy.start(database.target as ServerTarget, createRandom('far'));
  proxy.delay(() => ONE_WAY_MS);
  const events = {
    connected: () => index?.connected(),
    disconnected: () => index?.disconnected(),
  };
  const target = { connectionString: proxy.databaseUrl };
  links = startIndexLinks(
    target,
    () => Promise.resolve(),
    events,
    () => undefined,
  );
  index = new ReadIndex({
    clock: systemClock,
    headRevisions: new HeadRevisions({ entriesMax: 100 }),
    connections: links.connections,
    settingsVersionOf: () => 0,
    carry: () => undefined,
    waitersMax: 1_000,
    metrics: { ...UNCOUNTED, stalled: () => void stalls++ },
  });
}, 120_000);
afterAll(async () => {
  index.stop();
  proxy.heal();
  await links.stop();
  await proxy.close();
  await database.drop();
});

test('beyond 25 ms of distance hardly a query stalls, and beside one that does the other connection serves', async () => {
  await expect.poll(() => links.connections.every(({ isUp }) => isUp)).toBe(true);
  for (let n = 0; n < READS; n++) await index.load('p', `t${n}`);
  // All of them, before. Some do where this process is kept from running.
  expect(stalls).toBeLessThan(READS / 4);
  const before = stalls;
  const late = index.load('p', 'late').catch((error: unknown) => error);
  proxy.freeze(true);
  await expect.poll(() => stalls).toBeGreaterThan(before);
  proxy.heal();
  proxy.cutAll();
  await late;
  await expect.poll(() => links.connections.some(({ isUp }) => isUp)).toBe(true);
  expect((await index.load('p', 'again')).headRevision.minRevision).toBe(0);
}, 120_000);
