import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { writeChange } from '../../../test/support/write-change.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import {
  type ChangeFeed,
  type ChangeFeedOptions,
  readHeadRevisions,
  startChangeFeed,
} from './change-feed.ts';
import { readChanges } from './changes.ts';

let database: TestDatabase;
const feeds: ChangeFeed[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(feeds.splice(0).map(async (feed) => await feed.stop()));
});
afterAll(async () => await database.drop());

const shard = { projectId: 'p', tenantId: 't' };
type Hint = { readonly shard: ShardKey | null; readonly revision: number };

function start(options: Partial<ChangeFeedOptions> = {}): Hint[] {
  const hints: Hint[] = [];
  const feed = startChangeFeed({
    target: database.target,
    sender: 'test',
    onHint: (hinted, revision) => void hints.push({ shard: hinted, revision }),
    ...options,
  });
  feeds.push(feed);
  return hints;
}

async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await sleep(5);
}

const CUT = `select pg_terminate_backend(pid) from pg_stat_activity
  where application_name = 'gatehouse-listen' and datname = current_database()`;

describe('startChangeFeed', () => {
  it('assumes loss at the start, then passes on what is notified', async () => {
    const hints = start();
    await feeds[0]?.started;
    expect(hints).toEqual([{ shard: null, revision: 0 }]);
    const revision = await writeChange(database.pool, shard);
    await until(() => hints.length > 1);
    expect(hints[1]).toEqual({ shard, revision });
  });

  it('takes what it does not understand for a hint to look everywhere', async () => {
    const hints = start();
    await feeds[0]?.started;
    await database.pool.query(`notify gatehouse_change, 'what?'`);
    await until(() => hints.length > 1);
    expect(hints[1]).toEqual({ shard: null, revision: 0 });
  });

  it('catches up with every change although its connection is cut at random', async () => {
    // The follower knows nothing but hints and pages, as a worker does.
    let watermark = 0;
    let target = 0;
    let running = Promise.resolve();
    const catchUp = async (): Promise<void> => {
      for (;;) {
        const page = await readChanges(database.pool, shard, watermark, 7);
        watermark += page.changes.length;
        if (watermark === page.headRevision.revision) return;
      }
    };
    start({
      onHint: (hinted, revision) => {
        if (hinted === null || revision > watermark) running = running.then(catchUp);
      },
    });
    await feeds[0]?.started;
    for (let i = 0; i < 120; i++) {
      target = await writeChange(database.pool, shard);
      if (i % 15 === 0) await database.pool.query(CUT);
      if (i % 4 === 0) await sleep(Math.random() * 5);
    }
    await until(() => watermark === target);
    await running;
    expect(watermark).toBe(target);
  });

  it('also when it is cut while it listens again', async () => {
    const hints = start();
    await feeds[0]?.started;
    for (let i = 0; i < 200; i++) {
      await database.pool.query(CUT);
      await sleep(1);
    }
    // What is notified before it listens again is lost; it does listen again.
    let isHeard = false;
    while (!isHeard) {
      const revision = await writeChange(database.pool, shard);
      await sleep(20);
      isHeard = hints.some((hint) => hint.revision === revision);
    }
  });

  it('reads heads, of shards that were never written too', async () => {
    await database.pool.query(
      `insert into shard (project_id, tenant_id, seq, stamp) values ('p', 'quiet', 42, 7)`,
    );
    const quiet = { projectId: 'p', tenantId: 'quiet' };
    const unwritten = { projectId: 'p', tenantId: 'unwritten' };
    const headRevisions = await readHeadRevisions(database.pool, [quiet, unwritten]);
    const { headRevision } = await readChanges(database.pool, unwritten, 0);
    expect(headRevisions.toSorted((a, b) => b.revision - a.revision)).toEqual([
      { ...quiet, epoch: headRevision.epoch, revision: 42, forkId: '7' },
      { ...unwritten, epoch: headRevision.epoch, revision: 0, forkId: '0' },
    ]);
  });

  it('stops while the server cannot be reached', async () => {
    const states: boolean[] = [];
    const events: string[] = [];
    start({
      target: { host: '/nonexistent', port: 1, user: 'u', password: 'p', database: 'd' },
      onConnected: (isConnected) => void states.push(isConnected),
      log: (_level, event) => void events.push(event),
    });
    await until(() => events.length > 0);
    // Some attempts later it is still one line, and no loss: there was nothing to lose.
    await sleep(500);
    await feeds[0]?.stop();
    expect(events).toEqual(['listen_connection_failed']);
    expect(states).toEqual([]);
  });

  it('stops while the server accepts connections and says nothing', async () => {
    const accepted: Socket[] = [];
    const silent = createServer((socket) => void accepted.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    start({ target: { host: '127.0.0.1', port, user: 'u', password: 'p', database: 'd' } });
    await until(() => accepted.length > 0);
    await feeds[0]?.stop();
    // Nothing is left open on our side either.
    silent.close();
    for (const socket of accepted) socket.resume();
    await once(silent, 'close');
  });
});
