// Yields one ratio: milliseconds from starting the service on an empty data directory until it is ready, over those
// that PostgreSQL takes to make an empty cluster and write it to disk. Rounds alternate; medians are compared.
// Run: npm run bench -- start-to-ready [-- ROUNDS]
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostgresBinaries } from '../src/store/embedded-postgres-binaries.ts';
import { createCluster, prepareTemplate } from '../src/store/embedded-postgres-cluster.ts';
import { chooseServerUser } from '../src/store/embedded-postgres-user.ts';
import { silentLog } from '../src/store/store-log.ts';
import { startService } from './harness/service.ts';

const ROUNDS = Number(process.argv[2] ?? 5);
const round = (ms: number): number => Math.round(ms);
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >>> 1] ?? Number.NaN;

/** What the service would do without a template. */
async function clusterMs(): Promise<number> {
  const parent = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const binaries = findPostgresBinaries(join(parent, 'lib'));
  const cluster = join(parent, 'cluster');
  const user = chooseServerUser(cluster, binaries);
  const cache = join(parent, 'cache');
  mkdirSync(cache);
  const tools = { binaries, user, logPath: join(parent, 'log'), log: silentLog, cache };
  const startMs = performance.now();
  await createCluster(tools, cluster, 'not-used');
  const tookMs = performance.now() - startMs;
  rmSync(parent, { recursive: true, force: true });
  return tookMs;
}

async function readyMs(): Promise<number> {
  const service = await startService();
  await service.stop();
  return service.startMs;
}

// As the installation does; one that was made by hand may have none.
await prepareTemplate();
const ready: number[] = [];
const cluster: number[] = [];
for (let i = 0; i < ROUNDS; i++) {
  ready.push(await readyMs());
  cluster.push(await clusterMs());
}
const result = {
  bench: 'start-to-ready',
  readyMs: round(median(ready)),
  clusterMs: round(median(cluster)),
  ratio: Math.round((median(ready) / median(cluster)) * 100) / 100,
  rounds: { ready: ready.map(round), cluster: cluster.map(round) },
};
process.stdout.write(`${JSON.stringify(result)}\n`);
