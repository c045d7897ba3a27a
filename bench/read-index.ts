/** `npm run bench -- read-index`: one look at the heads of shards, by how many there are and how many moved. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { migrate } from '../src/store/migrate.ts';
import { clientConfig } from '../src/store/pool.ts';
import { INDEX_SESSION, type IndexAsk, readIndex } from '../src/store/sql/read-index.ts';

const SHARDS = 10_000;
const ROUNDS = 400;

const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
const server = await startEmbeddedPostgres({ dataDirectory });
try {
  await migrate(server.target);
  const client = new Client(
    clientConfig(server.target, { applicationName: 'bench', statementTimeoutMs: 0 }),
  );
  await client.connect();
  await client.query(
    `insert into project (id, name) values ('p', 'p');
     insert into shard (project_id, tenant_id, epoch, seq, stamp)
       select 'p', 't' || n, 1, 100, n from generate_series(1, ${SHARDS}) n;
     insert into tuple_change
       (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes)
       select 'p', 't' || n, s, case when s = 100 then n else -s end, gen_random_uuid(), 'bench', '',
         '[[1,"doc","document-' || s || '","viewer","","user-' || n || '","",null,null,null]]'
       from generate_series(1, ${SHARDS}) n, generate_series(91, 100) s;
     analyze`,
  );
  await client.query(INDEX_SESSION);
  const floor = await time(() => client.query({ name: 'nothing', text: 'select 1' }));
  console.log(`one row of a prepared statement: ${show(floor)}`);
  for (const count of [1, 10, 100, 1_000]) {
    for (const moved of [0, 1, count]) {
      if (moved === 1 && count === 1) continue;
      let round = 0;
      const taken = await time(() => readIndex(client, asks(count, moved, round++), 5_000));
      console.log(`${count} shards, ${moved} of them moved by one seq: ${show(taken)}`);
    }
  }
  await client.end();
} finally {
  await server.stop();
  await rm(dataDirectory, { recursive: true, force: true });
}

/** The last `moved` of the shards are known as they were one revision ago. */
function asks(count: number, moved: number, round: number): IndexAsk[] {
  return Array.from({ length: count }, (_, i) => {
    const n = 1 + ((round * count + i) % SHARDS);
    const isBehind = i >= count - moved;
    const revision = isBehind ? 99 : 100;
    const forkId = isBehind ? '-99' : String(n);
    return { projectId: 'p', tenantId: `t${n}`, epoch: 1, revision, forkId, settingsVersion: 1 };
  });
}

/** Milliseconds, sorted. */
async function time(query: () => Promise<unknown>): Promise<number[]> {
  for (let i = 0; i < 50; i++) await query();
  const taken: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const startMs = performance.now();
    await query();
    taken.push(performance.now() - startMs);
  }
  return taken.sort((a, b) => a - b);
}

function show(taken: readonly number[]): string {
  const at = (share: number): string => (taken[Math.floor(share * taken.length)] ?? 0).toFixed(2);
  return `p10 ${at(0.1)} ms, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}
