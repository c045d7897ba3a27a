/**
 * Yields tuples a second: how fast a shard comes out of Postgres and is cut into rows, without the
 * index, to see whether that leaves room for 300 k tuples/s with it.
 * Run: npm run bench -- snapshot-load; ROWS sets another number than 1 M. Prints one JSON line.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { migrate } from '../src/store/migrate.ts';
import { createPool } from '../src/store/pool.ts';
import { loadSnapshot } from '../src/store/snapshot.ts';

const rows = Number(process.env['ROWS'] ?? 1_000_000);
const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const coldStartMs = performance.now();
const server = await startEmbeddedPostgres({ dataDirectory });
try {
  await migrate(server.target);
  const readyMs = performance.now() - coldStartMs;
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
  const runs = [];
  for (let run = 0; run < 5; run++) {
    let seen = 0;
    const startMs = performance.now();
    const startCpu = process.cpuUsage();
    await loadSnapshot(
      pool,
      { projectId: 'default', tenantId: '' },
      { begin: () => undefined, row: () => void seen++ },
    );
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(startCpu);
    runs.push({
      rowsPerSecond: Math.round((seen / elapsedMs) * 1000),
      clientCpuUsPerRow: Number(((user + system) / seen).toFixed(3)),
    });
  }
  runs.sort((a, b) => a.rowsPerSecond - b.rowsPerSecond);
  const median = runs[2];
  process.stdout.write(
    `${JSON.stringify({ bench: 'snapshot-load', rows, readyMs: Math.round(readyMs), median, runs })}\n`,
  );
  await pool.end();
} finally {
  await server.stop();
  rmSync(dataDirectory, { recursive: true, force: true });
}
