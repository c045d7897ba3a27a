/**
 * Yields what the first question of a large tenant costs a service that was just started: milliseconds until its answer, CPU of
 * the gateway's thread, the worker's, all others and PostgreSQL, and the p99 of Checks of another tenant before and meanwhile.
 * Beside it, in the same rounds, a COPY of the same rows in the binary format, read and dropped; and, within this process and
 * with its code, the load in steps: until the first row, all rows cut and dropped, all rows into an index.
 * Run: npm run bench -- shard-load [-- DIRECTORY…]; with directories of other checkouts these take turns. BENCH_SHARD_SCALE (10)
 * is the size, 10 being 1,008,000 tuples; BENCH_ROUNDS (5). Prints one JSON line a checkout.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection, Pool, Submittable } from 'pg';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { subjectToColumns } from '../src/model/relation-tuple.ts';
import { copyIn } from '../src/store/copy-in.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { createPool } from '../src/store/pool.ts';
import { SNAPSHOT_COLUMNS, loadSnapshot } from '../src/store/snapshot.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { World } from '../test/support/dataset/world.ts';
import { LoadClient } from './harness/client.ts';
import { Caller, postRequest } from './harness/closed-loop.ts';
import { ADMIN_SECRET, type MeasuredService, startMeasuredOn } from './harness/measured-service.ts';
import { CHECK_PATH, createProject, fill } from './harness/target.ts';
import { BENCH_SEED, insertOf } from './worker-data.ts';

const SCALE = Number(process.env['BENCH_SHARD_SCALE'] ?? 10);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const ROWS_A_COPY = 20_000;
const PROJECT = 'peers';
const LARGE = 'large';
const NEIGHBOUR = 'neighbour';
const directories = process.argv.length > 2 ? process.argv.slice(2) : [process.cwd()];
const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const postgres = await startEmbeddedPostgres({ dataDirectory });
const [first = '.'] = directories;

type Figures = Record<string, number[]>;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function add(figures: Figures, name: string, value: number): void {
  (figures[name] ??= []).push(value);
}

function checkOf(tenant: string, object: number): Buffer {
  const body = {
    project_id: PROJECT,
    tenant_id: tenant,
    namespace: 'doc',
    object_id: World.docId(object),
    relation: 'viewer',
    subject_user_id: 'u0',
  };
  return postRequest(CHECK_PATH, JSON.stringify(body));
}

/** Both tenants' tuples: the neighbour's through the service, the large one's by COPY behind its first write. */
async function fillTenants(pool: Pool): Promise<void> {
  const world = new World(SCALE, BENCH_SEED);
  const service = await startMeasuredOn(postgres, first);
  const client = new LoadClient({
    baseUrl: `http://127.0.0.1:${service.port()}`,
    connections: 8,
  });
  await createProject(client, ADMIN_SECRET, PROJECT, DATASET_MODEL_JSON);
  const small = new World(0.1, BENCH_SEED);
  await fill(client, small.tuples, { project_id: PROJECT, tenant_id: NEIGHBOUR });
  await fill(client, world.tuples.slice(0, 1), { project_id: PROJECT, tenant_id: LARGE });
  await client.close();
  await service.stop();
  const session = await pool.connect();
  for (let at = 1; at < world.tuples.length; at += ROWS_A_COPY) {
    let text = '';
    for (const line of world.tuples.slice(at, at + ROWS_A_COPY)) {
      const { tuple } = insertOf(line);
      const subject = subjectToColumns(tuple.subject).join('\t');
      text += `${PROJECT}\t${LARGE}\t${tuple.namespace}\t${tuple.objectId}\t${tuple.relation}\t${subject}\t\\N\t\\N\t\\N\t1\n`;
    }
    await copyIn(
      session,
      `copy relation_tuple (project_id, tenant_id, namespace, object_id, relation, subject_namespace,
      subject_id, subject_relation, expires_at_us, condition_name, condition_params, seq) from stdin`,
      Buffer.from(text),
    );
  }
  await session.query('vacuum analyze relation_tuple');
  session.release();
}

/** Reads the answer of a COPY from the socket, and drops all but its end. */
class DroppedCopy implements Submittable {
  readonly #text: string;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;

  constructor(text: string, resolve: () => void, reject: (error: unknown) => void) {
    this.#text = text;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): void {
    const { stream } = connection;
    const driver = stream.listeners('data') as ((chunk: Buffer) => void)[];
    for (const listener of driver) stream.off('data', listener);
    // ReadyForQuery, outside of a transaction.
    const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
    let last = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      last = Buffer.concat([last.subarray(-ready.length), chunk.subarray(-ready.length)]);
      if (!last.subarray(-ready.length).equals(ready)) return;
      stream.off('data', onData);
      for (const listener of driver) stream.on('data', listener);
      for (const listener of driver) listener(ready);
    };
    stream.on('data', onData);
    connection.query(this.#text);
  }

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
}

const processSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

async function reference(pool: Pool, service: Pick<MeasuredService, 'cpu'>, figures: Figures) {
  const client = await pool.connect();
  const text = `copy (select ${SNAPSHOT_COLUMNS.join(', ')} from relation_tuple
    where project_id = '${PROJECT}' and tenant_id = '${LARGE}') to stdout (format binary)`;
  const [postgresBefore, ownBefore] = [service.cpu().postgres, processSeconds()];
  const startMs = performance.now();
  await new Promise<void>((resolve, reject) => {
    client.query(new DroppedCopy(text, resolve, reject));
  });
  add(figures, 'copyMs', performance.now() - startMs);
  add(figures, 'copyPostgresS', service.cpu().postgres - postgresBefore);
  add(figures, 'copyReaderS', processSeconds() - ownBefore);
  client.release();
}

/** The load with the code of this checkout, without a service, step by step. */
async function steps(figures: Figures): Promise<void> {
  const shard = { projectId: PROJECT, tenantId: LARGE };
  for (const step of ['rows', 'index'] as const) {
    const pool = createPool(postgres.target, { max: 1, applicationName: 'bench' });
    const index = new TupleIndex();
    const cpuBefore = processSeconds();
    const startMs = performance.now();
    let firstRowMs = 0;
    await loadSnapshot(pool, shard, {
      begin: () => {
        firstRowMs = performance.now() - startMs;
      },
      row: (bytes, bounds) => {
        if (step === 'index') index.insertRows({ bytes, bounds, rows: 1, expiryFormat: 'binary' });
      },
      rows: (bytes, bounds, rows) => {
        if (step === 'index') index.insertRows({ bytes, bounds, rows, expiryFormat: 'binary' });
      },
    });
    if (step === 'rows') add(figures, 'stepUntilFirstRowMs', firstRowMs);
    add(figures, `step_${step}_Ms`, performance.now() - startMs);
    add(figures, `step_${step}_CpuS`, processSeconds() - cpuBefore);
    await pool.end();
  }
}

/** Checks of the neighbour, one after the other with a pause, until `stop`; returns their milliseconds, sorted. */
async function neighbour(port: number, stop: AbortSignal): Promise<number[]> {
  const caller = new Caller(port);
  const latencies: number[] = [];
  for (let i = 0; !stop.aborted; i++) {
    latencies.push(await caller.call(checkOf(NEIGHBOUR, i % 2_000)));
    await sleep(1);
  }
  caller.end();
  return latencies.sort((a, b) => a - b);
}

const p99 = (sorted: readonly number[]): number =>
  sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;

/** A cold start, a neighbour that is held, and the first question of the large tenant. */
async function round(directory: string, pool: Pool, figures: Figures): Promise<void> {
  const service = await startMeasuredOn(postgres, directory);
  const before = new AbortController();
  const quiet = neighbour(service.port(), before.signal);
  // They are awaited further down, where what they throw is told.
  quiet.catch(() => undefined);
  await sleep(1_000);
  before.abort();
  add(figures, 'neighbourBeforeP99Ms', p99(await quiet));
  const loaded = new AbortController();
  const meanwhile = neighbour(service.port(), loaded.signal);
  meanwhile.catch(() => undefined);
  const [threadsBefore, cpuBefore] = [service.threads(), service.cpu()];
  const caller = new Caller(service.port());
  const firstMs = await caller.call(checkOf(LARGE, 1));
  const [threads, cpu] = [service.threads(), service.cpu()];
  loaded.abort();
  add(figures, 'neighbourMeanwhileP99Ms', p99(await meanwhile));
  add(figures, 'secondAnswerMs', await caller.call(checkOf(LARGE, 2)));
  caller.end();
  const grown = [...threads].map(([id, seconds]) => ({
    id,
    seconds: seconds - (threadsBefore.get(id) ?? 0),
  }));
  const gateway = grown.find(({ id }) => id === service.pid())?.seconds ?? 0;
  const others = grown.filter(({ id }) => id !== service.pid()).map(({ seconds }) => seconds);
  // The one worker is the thread that the load keeps busy.
  const worker = Math.max(...others);
  add(figures, 'firstAnswerMs', firstMs);
  add(figures, 'gatewayS', gateway);
  add(figures, 'workerS', worker);
  add(figures, 'otherThreadsS', others.reduce((sum, seconds) => sum + seconds, 0) - worker);
  add(figures, 'postgresS', cpu.postgres - cpuBefore.postgres);
  await reference(pool, service, figures);
  add(figures, 'msOverCopy', firstMs / (figures['copyMs']?.at(-1) ?? Number.NaN));
  await service.stop();
}

const pool = createPool(postgres.target, {
  max: 1,
  applicationName: 'bench',
  statementTimeoutMs: 0,
});
try {
  await fillTenants(pool);
  const figures: Figures[] = directories.map(() => ({}));
  for (let n = 0; n < ROUNDS; n++) {
    const order = n % 2 === 0 ? directories : directories.toReversed();
    for (const directory of order) {
      await round(directory, pool, figures[directories.indexOf(directory)] as Figures);
    }
    await steps(figures[0] as Figures);
    process.stderr.write(`round ${n + 1} of ${ROUNDS}\n`);
  }
  directories.forEach((directory, at) => {
    const own = figures[at] as Figures;
    const medians = Object.entries(own).map(([name, values]) => [
      name,
      Number(median(values).toPrecision(3)),
    ]);
    const ratios = Object.entries(own).map(([name, values]) => {
      const pairs = values.map((value, n) => value / (figures[0]?.[name]?.[n] ?? Number.NaN));
      return [name, Number(median(pairs).toPrecision(3))];
    });
    const line = {
      bench: 'shard-load',
      directory,
      medians: Object.fromEntries(medians),
      ratios: Object.fromEntries(ratios),
      rounds: own,
    };
    console.log(JSON.stringify(line));
  });
} finally {
  await pool.end();
  await postgres.stop();
  rmSync(dataDirectory, { recursive: true, force: true });
}
