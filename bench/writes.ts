/**
 * Acknowledged writes of new tuples over HTTP JSON, one and a hundred a request; CPU is that of the service and PostgreSQL
 * together. Beside them the least that PostgreSQL does: the same rows by a prepared statement and a commit each,
 * on one connection and on four. With directories of other checkouts these take turns. Then WriteTuples with each mode of
 * inserts, and without.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../src/store/embedded/embedded-postgres.ts';
import { createPool } from '../src/store/postgres/pool.ts';
import { atEnd, withCleanup } from './harness/cleanup.ts';
import { treeCpuSecondsOf } from './harness/cpu.ts';
import {
  contestantsOf,
  type FilledService,
  SCOPE,
  startFilled,
  worldOf,
} from './harness/filled-service.ts';
import { Generator, jsonBodies } from './harness/generator.ts';
import { type Contestant, inTurns, type Turn } from './harness/in-turns.ts';
import { OPTIONS, quantile, report } from './harness/options.ts';
import { WRITE_PATH, WRITE_TUPLES_PATH, writeBody } from './harness/target.ts';

/** Names of the modes of inserts, and how a row names them. */
const MODES = [
  { name: 'no mode', mode: undefined },
  { name: 'absent', mode: 'UPDATE_MODE_ABSENT' },
  { name: 'absent or identical', mode: 'UPDATE_MODE_ABSENT_OR_IDENTICAL' },
] as const;
/** `requestsPerSecond`: bodies prepared for each second, more than any machine has written yet. */
const SIZES = [
  { tuples: 1, callers: 64, sessions: 1, requestsPerSecond: 40_000 },
  { tuples: 100, callers: 32, sessions: 4, requestsPerSecond: 3_000 },
] as const;
const USERS = 1_000;

let written = 0;
const tuplesOf = (count: number) =>
  Array.from({ length: count }, (_, k) => ({
    namespace: 'doc',
    object_id: `n${written++}_${k}`,
    relation: 'viewer',
    subject: `user:x${(written + k) % USERS}`,
  }));

/** The reference: rows of the same table by `sessions` connections, a commit for each statement. */
async function plainInserts(
  pool: Pool,
  postgresPid: number,
  { tuples, sessions }: (typeof SIZES)[number],
): Promise<Turn> {
  const latencies: number[] = [];
  const before = treeCpuSecondsOf(postgresPid);
  const startMs = performance.now();
  const session = async (): Promise<void> => {
    const client = await pool.connect();
    while (performance.now() - startMs < OPTIONS.seconds * 1000) {
      const rows = tuplesOf(tuples);
      const askedMs = performance.now();
      await client.query({
        name: 'plain',
        text: `insert into bench_tuple select 'bench', 't1', 'doc', k.o, 'viewer', '', k.u, '', null, null, null, $3::bigint
          from unnest($1::text[], $2::text[]) k (o, u)`,
        values: [
          rows.map((row) => row.object_id),
          rows.map((row) => row.subject.slice('user:'.length)),
          written,
        ],
      });
      latencies.push(performance.now() - askedMs);
    }
    client.release();
  };
  await Promise.all(Array.from({ length: sessions }, session));
  const operations = latencies.length * tuples;
  return {
    operations,
    seconds: (performance.now() - startMs) / 1000,
    operationsInAll: operations,
    cpuSeconds: treeCpuSecondsOf(postgresPid) - before,
    generatorCores: 0,
    p50Ms: quantile(latencies),
    p99Ms: quantile(latencies, 0.99),
  };
}

await withCleanup(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const servers: EmbeddedPostgres[] = [];
  const generator = new Generator();
  const services = await startFilled(worldOf(), [], async (index) => {
    const server = await startEmbeddedPostgres({ dataDirectory: join(folder, `${index}`) });
    atEnd(() => server.stop());
    servers.push(server);
    const { user, password, database, host } = server.target;
    return { DATABASE_URL: `postgres://${user}:${password}@/${database}?host=${host}` };
  });
  const [first] = servers as [EmbeddedPostgres]; // as this checkout is always there
  const pool = createPool(first.target, { max: 4, applicationName: 'bench' });
  atEnd(() => pool.end());
  await pool.query('create table bench_tuple (like relation_tuple including all)');
  const [{ token } = { token: '' }] = services.map(({ service }) => service);
  for (const size of SIZES) {
    const { tuples, callers, requestsPerSecond, sessions } = size;
    const writing = (i: number, name: string, path: string, mode?: string): Contestant => ({
      name,
      turn: async () => {
        const service = services[i] as FilledService; // as there is one for each index
        const count = Math.ceil(OPTIONS.seconds * requestsPerSecond) + callers;
        const messages = Array.from(
          { length: count },
          () => JSON.parse(writeBody(tuplesOf(tuples), SCOPE, mode)) as object,
        );
        const load = {
          protocol: 'http1',
          path,
          bodies: jsonBodies(messages),
          operations: messages.map(() => tuples),
          callers,
        } as const;
        const { pid } = servers[i] as EmbeddedPostgres; // as each service has one
        const before = treeCpuSecondsOf(pid);
        const [contestant] = contestantsOf(generator, [service], load, token);
        const turn = await (contestant as Contestant).turn(); // as there is one for the one target
        if (turn.operationsInAll > count * tuples)
          throw new Error('bodies came again: prepare more');
        return { ...turn, cpuSeconds: turn.cpuSeconds + treeCpuSecondsOf(pid) - before };
      },
    });
    const contestants = services.map(({ name }, i) => writing(i, name, WRITE_PATH));
    const plain = {
      name: `PostgreSQL alone, sessions: ${sessions}`,
      turn: () => plainInserts(pool, first.pid, size),
    };
    for (const row of await inTurns([...contestants, plain])) {
      report({ load: `tuples, ${tuples} a request`, ...row });
    }
    const moded = MODES.map(({ name, mode }) => writing(0, name, WRITE_TUPLES_PATH, mode));
    for (const row of await inTurns(moded)) {
      report({ load: `WriteTuples, ${tuples} a request`, ...row });
    }
  }
});
