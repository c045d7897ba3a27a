/**
 * Yields what writes over HTTP JSON cost: tuples a CPU-second of the service and PostgreSQL together (and of each), for
 * requests of 1 (32 and 128 callers) and of 100 new tuples, of deletes of 100, and bytes of WAL and of tables a tuple. Beside it, in the same
 * rounds, the least that PostgreSQL can do: a prepared statement that inserts 100 rows into the same table, one transaction each.
 * Run: npm run bench -- write-cost [-- DIRECTORY…]; with directories of other checkouts these take turns.
 * BENCH_SECONDS (2) a round, BENCH_ROUNDS (5). Prints one JSON line a checkout.
 */
import type { Pool } from 'pg';
import { createPool } from '../src/store/pool.ts';
import { closedLoop, postRequest } from './harness/closed-loop.ts';
import { type MeasuredService, startMeasured } from './harness/measured-service.ts';
import { PEER_SCOPE, fillService } from './harness/service-data.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SCALE = Number(process.env['BENCH_SCALE'] ?? 1);
const ONLY = process.env['BENCH_ONLY']?.split(',');
const WRITE = '/workspace.v1.AuthzService/WriteRelationTuples';
const directories = process.argv.length > 2 ? process.argv.slice(2) : [process.cwd()];

type Workload = {
  readonly name: string;
  readonly callers: number;
  readonly size: number;
  readonly op: 'OP_INSERT' | 'OP_DELETE';
};

const WORKLOADS: readonly Workload[] = [
  { name: 'write1', callers: 32, size: 1, op: 'OP_INSERT' },
  { name: 'write1of128', callers: 128, size: 1, op: 'OP_INSERT' },
  { name: 'write100', callers: 32, size: 100, op: 'OP_INSERT' },
  { name: 'delete100', callers: 32, size: 100, op: 'OP_DELETE' },
];

/** The i-th request's tuples: each on a new document, of users that exist. */
function bodyOf(run: string, i: number, size: number, op: string): string {
  const updates = Array.from({ length: size }, (_, k) => ({
    op,
    tuple: {
      namespace: 'doc',
      object_id: `n${run}_${i}_${k}`,
      relation: 'viewer',
      subject: { user_id: `x${(i + k) % 1000}` },
    },
  }));
  return JSON.stringify({ ...PEER_SCOPE, updates });
}

type Figures = Record<string, number[]>;

async function one<T>(pool: Pool, text: string): Promise<T> {
  const { rows } = await pool.query(text);
  return Object.values(rows[0] as object)[0] as T;
}

async function walOf(pool: Pool): Promise<number> {
  return Number(
    await one<string>(pool, `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text`),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

class Contestant {
  readonly service: MeasuredService;
  readonly pool: Pool;
  readonly figures: Figures = {};
  readonly #written: { readonly run: string; readonly i: number }[] = [];
  #next = 0;

  constructor(service: MeasuredService) {
    this.service = service;
    this.pool = createPool(service.postgres.target, { max: 4, applicationName: 'bench' });
  }

  async round(workload: Workload, isCounted: boolean): Promise<void> {
    const run = process.pid.toString(36);
    const { name, size, op } = workload;
    const requests: Buffer[] = [];
    // Made before the clock runs, so that the generator takes little of the two cores meanwhile.
    const count = Math.ceil(SECONDS * (size === 1 ? 8000 : 500));
    for (let n = 0; n < count; n++) {
      const i = op === 'OP_DELETE' ? this.#written.shift()?.i : this.#next++;
      if (i === undefined) break;
      requests.push(postRequest(WRITE, bodyOf(run, i, size, op)));
      if (op === 'OP_INSERT' && size > 1) this.#written.push({ run, i });
    }
    let at = 0;
    await this.#measured(name, size, isCounted, async () => {
      const { callers } = workload;
      const result = await closedLoop(this.service.port(), callers, SECONDS, () => requests[at++]);
      at = Math.min(at, requests.length);
      if (isCounted)
        this.#add(`${name}.p99Ms`, result.latencies[Math.floor(result.requests * 0.99)] ?? 0);
      return result.requests;
    });
    // What was not sent was not written.
    if (op === 'OP_INSERT' && size > 1) this.#written.length -= requests.length - at;
  }

  /** The reference: PostgreSQL alone, four sessions, a prepared statement and a commit for each 100 rows. */
  async plainInserts(isCounted: boolean): Promise<void> {
    await this.pool.query(
      'create table if not exists bench_tuple (like relation_tuple including all)',
    );
    await this.#measured('plain100', 100, isCounted, async () => {
      let statements = 0;
      const endMs = performance.now() + SECONDS * 1000;
      const session = async (): Promise<void> => {
        const client = await this.pool.connect();
        while (performance.now() < endMs) {
          const i = this.#next++;
          const objects = Array.from({ length: 100 }, (_, k) => `p${i}_${k}`);
          const users = Array.from({ length: 100 }, (_, k) => `x${(i + k) % 1000}`);
          await client.query({
            name: 'plain',
            text: `insert into bench_tuple select 'default', 'acme', 'doc', k.o, 'viewer', '', k.u, '', null, null, null, $3::bigint
              from unnest($1::text[], $2::text[]) k (o, u)`,
            values: [objects, users, i],
          });
          statements++;
        }
        client.release();
      };
      await Promise.all(Array.from({ length: 4 }, session));
      return statements;
    });
  }

  async #measured(
    name: string,
    size: number,
    isCounted: boolean,
    work: () => Promise<number>,
  ): Promise<void> {
    const [walBefore, before] = [await walOf(this.pool), this.service.cpu()];
    const startMs = performance.now();
    const tuples = (await work()) * size;
    const seconds = (performance.now() - startMs) / 1000;
    const after = this.service.cpu();
    const wal = (await walOf(this.pool)) - walBefore;
    if (!isCounted) return;
    const service = after.service - before.service;
    const postgres = after.postgres - before.postgres;
    this.#add(`${name}.perSecond`, tuples / seconds);
    this.#add(`${name}.perCpuSecond`, tuples / (service + postgres));
    this.#add(`${name}.serviceUs`, (service / tuples) * 1e6);
    this.#add(`${name}.postgresUs`, (postgres / tuples) * 1e6);
    this.#add(`${name}.walBytes`, wal / tuples);
  }

  /** Bytes of a table with its indexes, for each row in it. */
  async tableBytes(): Promise<Record<string, number>> {
    const sizes = await this.pool.query<{ name: string; bytes: string; rows: string }>(
      `select 'relation_tuple' as name, pg_total_relation_size('relation_tuple')::text as bytes,
         (select count(*)::text from relation_tuple) as rows
       union all select 'relation_tuple_heap', pg_relation_size('relation_tuple')::text, (select count(*)::text from relation_tuple)
       union all select 'tuple_change', pg_total_relation_size('tuple_change')::text,
         (select sum(json_array_length(changes::json))::text from tuple_change)`,
    );
    return Object.fromEntries(
      sizes.rows.map(({ name, bytes, rows }) => [name, Math.round(Number(bytes) / Number(rows))]),
    );
  }

  #add(name: string, value: number): void {
    (this.figures[name] ??= []).push(value);
  }
}

const contestants: Contestant[] = [];
try {
  for (const directory of directories) {
    const contestant = new Contestant(await startMeasured(directory));
    contestants.push(contestant);
    await fillService(contestant.service, SCALE);
  }
  const workloads = WORKLOADS.filter(({ name }) => ONLY === undefined || ONLY.includes(name));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const workload of workloads) {
      const order = round % 2 === 0 ? contestants : contestants.toReversed();
      for (const contestant of order) await contestant.round(workload, round > 0);
    }
    for (const contestant of contestants.slice(0, 1)) await contestant.plainInserts(round > 0);
    process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  }
  const first = contestants[0]?.figures ?? {};
  for (const { service, figures, ...contestant } of contestants) {
    const medians = Object.fromEntries(
      Object.entries(figures).map(([name, values]) => [
        name,
        Number(median(values).toPrecision(4)),
      ]),
    );
    // Pairs of one round: both saw the same neighbours.
    const ratios = Object.fromEntries(
      Object.entries(figures).map(([name, values]) => [
        name,
        Number(
          median(values.map((value, i) => value / (first[name]?.[i] ?? Number.NaN))).toPrecision(3),
        ),
      ]),
    );
    void contestant;
    const bytes = await (contestants.find((c) => c.service === service) as Contestant).tableBytes();
    console.log(
      JSON.stringify({ bench: 'write-cost', directory: service.directory, medians, ratios, bytes }),
    );
  }
} finally {
  for (const { pool, service } of contestants) {
    await pool.end();
    await service.stop();
  }
}
