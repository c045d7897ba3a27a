import { afterEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/migrations/migrate.ts';
import {
  type TestCluster,
  dumpRows,
  restoreRows,
  startCluster,
  startCopy,
} from '../support/postgres-cluster.ts';

const clusters: TestCluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

const HISTORY = `select c.system_identifier::text as system,
  ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int as timeline
  from pg_control_system() c`;

async function words(cluster: TestCluster): Promise<string[]> {
  const rows = await cluster.query<{ word: string }>('select word from said order by word');
  return rows.map((row) => row.word);
}

test('a replica follows, loses what it did not receive, and is promoted to another timeline', async () => {
  const primary = await startCluster();
  clusters.push(primary);
  await primary.query('create table said (word text)');
  const replica = await primary.createReplica();
  clusters.push(replica);
  await primary.query(`insert into said values ('kept')`);
  await replica.caughtUp();
  expect(await words(replica)).toEqual(['kept']);
  await replica.disconnect();
  await primary.query(`insert into said values ('lost')`);
  const [before] = await primary.query(HISTORY);
  await primary.kill();
  await replica.promote();
  await replica.query(`insert into said values ('new')`);
  expect(await words(replica)).toEqual(['kept', 'new']);
  const [after] = await replica.query(HISTORY);
  expect(after).toEqual({ ...before, timeline: 2 });
  // The old one comes back as it was, for tests of who still talks to it.
  await primary.start();
  expect(await words(primary)).toEqual(['kept', 'lost']);
});

test('a backup and a cold copy are older states of the same history', async () => {
  const cluster = await startCluster();
  clusters.push(cluster);
  await cluster.query(`create table said as select 'first'::text as word`);
  const backup = await cluster.backup();
  await cluster.query(`insert into said values ('second')`);
  const cold = await cluster.coldCopy();
  await cluster.start();
  await cluster.query(`insert into said values ('third')`);
  const restored = await startCopy(backup);
  const copied = await startCopy(cold);
  clusters.push(restored, copied);
  expect(await words(restored)).toEqual(['first']);
  expect(await words(copied)).toEqual(['first', 'second']);
  const [history] = await cluster.query(HISTORY);
  expect(await copied.query(HISTORY)).toEqual([history]);
  expect(await restored.query(HISTORY)).toEqual([history]);
});

test('dumped rows of all tables make the same state in another cluster', async () => {
  const [one, other] = [await startCluster(), await startCluster()];
  clusters.push(one, other);
  await migrate(one.target);
  await migrate(other.target);
  await one.query(`update deployment set token_key = '\\x00ff', epoch = 7`);
  await one.query(`insert into shard (project_id, tenant_id, seq) values ('p', 't', 3)`);
  const dumped = await dumpRows(one.target);
  await restoreRows(other.target, dumped);
  expect(await dumpRows(other.target)).toEqual(dumped);
  expect(await other.query(`select token_key, epoch::int from deployment`)).toEqual([
    { token_key: Buffer.from([0, 255]), epoch: 7 },
  ]);
});
