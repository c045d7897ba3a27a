/** Milliseconds of one look at the heads of shards, by how many are asked about and how many of them moved. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startEmbeddedPostgres } from '../src/store/embedded/embedded-postgres.ts';
import { migrate } from '../src/store/migrations/migrate.ts';
import { clientConfig } from '../src/store/postgres/pool.ts';
import { INDEX_SESSION, type IndexParams, readIndex } from '../src/store/sql/reads/read-index.ts';
import { atEnd, withCleanup } from './harness/cleanup.ts';
import { quantile, report } from './harness/options.ts';

const SHARDS = 10_000;
const ROUNDS = 400;

await withCleanup(async () => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
  atEnd(() => rm(dataDirectory, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({ dataDirectory });
  atEnd(() => server.stop());
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
  show('select 1', 0, floor);
  for (const count of [1, 10, 100, 1_000]) {
    for (const moved of [0, 1, count]) {
      if (moved === 1 && count === 1) continue;
      let round = 0;
      const taken = await time(() => readIndex(client, asks(count, moved, round++), 5_000));
      show(`${count} shards`, moved, taken);
    }
  }
  await client.end();
});

/** The last `moved` of the shards are known as they were one revision ago. */
function asks(count: number, moved: number, round: number): IndexParams[] {
  return Array.from({ length: count }, (_, i) => {
    const n = 1 + ((round * count + i) % SHARDS);
    const isBehind = i >= count - moved;
    const revision = isBehind ? 99 : 100;
    const forkId = isBehind ? '-99' : String(n);
    return { projectId: 'p', tenantId: `t${n}`, epoch: 1, revision, forkId, settingsVersion: 1 };
  });
}

/** Milliseconds of each. */
async function time(query: () => Promise<unknown>): Promise<number[]> {
  for (let i = 0; i < 50; i++) await query();
  const taken: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const startMs = performance.now();
    await query();
    taken.push(performance.now() - startMs);
  }
  return taken;
}

function show(look: string, moved: number, taken: readonly number[]): void {
  const [p10Ms, p50Ms, p99Ms] = [0.1, 0.5, 0.99].map((q) => quantile(taken, q));
  report({ look, moved, p10Ms, p50Ms, p99Ms });
}
