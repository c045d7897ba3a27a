/** Tuples a second out of PostgreSQL, cut into rows, without the index: what is left for it of the 300,000 a second aimed at. [TUPLES] */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../src/store/embedded/embedded-postgres.ts';
import { loadSnapshot } from '../src/store/feed/snapshot.ts';
import { migrate } from '../src/store/migrations/migrate.ts';
import { createPool } from '../src/store/postgres/pool.ts';
import { atEnd, withCleanup } from './harness/cleanup.ts';
import { numberArgument, OPTIONS, quantile, report } from './harness/options.ts';

const rows = numberArgument(0, 1_000_000);
await withCleanup(async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  atEnd(() => rmSync(dataDirectory, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({ dataDirectory });
  atEnd(() => server.stop());
  await migrate(server.target);
  const pool = createPool(server.target, {
    max: 2,
    applicationName: 'bench',
    statementTimeoutMs: 0,
  });
  await pool.query(
    `insert into relation_tuple
     select 'default', '', 'doc', 'document-' || i / 10, 'viewer',
       case i % 10 when 0 then 'group' else '' end,
       case i % 10 when 0 then 'group-' || i / 100 else 'user-' || i * 7 % 100000 end,
       case i % 10 when 0 then 'member' else '' end, null, null, null, 1
     from generate_series(1, $1::int) i`,
    [rows],
  );
  await pool.query('vacuum analyze relation_tuple');
  const runs: { readonly perSecond: number; readonly cpuUs: number }[] = [];
  for (let run = 0; run < OPTIONS.rounds; run++) {
    let seen = 0;
    const startMs = performance.now();
    const startCpu = process.cpuUsage();
    await loadSnapshot(
      pool,
      { projectId: 'default', tenantId: '' },
      { begin: () => undefined, row: () => void seen++ },
    );
    const seconds = (performance.now() - startMs) / 1000;
    const { user, system } = process.cpuUsage(startCpu);
    if (seen !== rows) throw new Error(`${seen} rows instead of ${rows}`);
    runs.push({ perSecond: seen / seconds, cpuUs: (user + system) / seen });
  }
  report({
    tuples: rows,
    perSecond: Math.round(quantile(runs.map((run) => run.perSecond))),
    fastestPerSecond: Math.round(Math.max(...runs.map((run) => run.perSecond))),
    clientCpuUsPerTuple: quantile(runs.map((run) => run.cpuUs)),
  });
  await pool.end();
});
