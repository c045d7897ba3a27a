// Yields one ratio for each shape: acknowledged writes a second whose updates must be of absent tuples, over plain ones, in turns.
// Run: npm run bench -- write-modes [-- SECONDS [PAIRS]]
// An embedded server is started.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { HeadRevisions } from '../src/services/head-revisions.ts';
import { TupleWriter } from '../src/services/tuple-writer.ts';
import type { UpdateMode } from '../src/services/update-modes.ts';
import { systemClock } from '../src/shared/clock.ts';
import { IdSource } from '../src/shared/ids.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { Membership } from '../src/store/membership.ts';
import { migrate } from '../src/store/migrate.ts';
import { createPool } from '../src/store/pool.ts';
import { NO_WRITE_RULES } from '../test/support/write-rules.ts';

const SECONDS = Number(process.argv[2] ?? 4);
const PAIRS = Number(process.argv[3] ?? 5);
const TENANTS = 16;
const SHAPES = [
  { callers: 64, updates: 1 },
  { callers: 16, updates: 100 },
] as const;
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));

/** Writes a second of updates of new tuples, all of one mode. */
async function writesPerSecond(
  writer: TupleWriter,
  { callers, updates }: (typeof SHAPES)[number],
  mode: UpdateMode,
): Promise<number> {
  const projectId = `bench-${randomUUID().slice(0, 8)}`;
  const modes = mode === 'plain' ? undefined : Array.from({ length: updates }, () => mode);
  const meta = { rpc: 'WriteTuples', actingUserId: null, requestId: 'r', deadlineMs: Infinity };
  let count = 0;
  const start = performance.now();
  const endMs = start + SECONDS * 1000;
  const caller = async (index: number): Promise<void> => {
    const shard = { projectId, tenantId: `t${index % TENANTS}` };
    while (performance.now() < endMs) {
      const at = count++;
      const written = Array.from({ length: updates }, (_, n) => ({
        op: 'insert' as const,
        tuple: {
          namespace: 'doc',
          objectId: `document-${Math.floor(Math.random() * 1e6)}`,
          relation: 'viewer',
          subject: { kind: 'user' as const, userId: `user-${at}-${n}` },
        },
      }));
      await writer.write(shard, written, meta, modes);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
  return (count / (performance.now() - start)) * 1000;
}

function writerOver(pool: pg.Pool, admission: Membership): TupleWriter {
  return new TupleWriter({
    pool,
    admission,
    headRevisions: new HeadRevisions({ entriesMax: 100_000 }),
    rules: NO_WRITE_RULES,
    clock: systemClock,
    ids: new IdSource(systemClock),
    committed: { onCommitted: () => undefined },
    lanes: 2,
    queuedWritesMax: 10_000,
    queuedUpdatesMax: 100_000,
    groupWritesMax: 256,
    groupUpdatesMax: 4_000,
    writeTimeoutMs: 30_000,
    answerTimeoutMs: 35_000,
    attemptsMax: 5,
    retryDelayMs: 20,
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const server = await startEmbeddedPostgres({ dataDirectory: join(directory, 'data') });
try {
  await migrate(server.target);
  const pool = createPool(server.target, { max: 10, applicationName: 'bench' });
  const membership = new Membership({ target: server.target, region: '', isExclusive: true });
  await membership.start();
  const writer = writerOver(pool, membership);
  const say = (fields: object): void => {
    process.stdout.write(`${JSON.stringify({ bench: 'write-modes', ...fields })}\n`);
  };
  say({ cpu: cpus()[0]?.model, cpus: cpus().length, seconds: SECONDS, pairs: PAIRS });
  for (const shape of SHAPES) {
    for (const mode of ['absent', 'identical'] as const) {
      const ratios: number[] = [];
      const plain: number[] = [];
      for (let pair = 0; pair < PAIRS; pair++) {
        // Whoever comes second finds a larger table: they take turns in that, too.
        const order = pair % 2 === 0 ? (['plain', mode] as const) : ([mode, 'plain'] as const);
        const found = new Map<UpdateMode, number>();
        for (const one of order) found.set(one, await writesPerSecond(writer, shape, one));
        plain.push(found.get('plain') ?? 0);
        ratios.push((found.get(mode) ?? 0) / (found.get('plain') ?? 1));
      }
      const shown = ratios.map((ratio) => ratio.toFixed(3));
      say({
        ...shape,
        mode,
        plain: Math.round(median(plain)),
        ratio: median(ratios).toFixed(3),
        ratios: shown,
      });
    }
  }
  await writer.close(1_000);
  await pool.end();
  await membership.leave();
} finally {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
}
