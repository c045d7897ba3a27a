import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failureOf, type LoadClient } from '../../bench/harness/client.ts';
import { cpuSeconds, type Service } from '../../bench/harness/service.ts';
import { ALLOWED, CHECK_PATH, fill, WRITE_PATH } from '../../bench/harness/target.ts';
import { shardHash } from '../../src/protocol/shard-routing.ts';
import { worksIn } from '../../src/store/embedded-postgres-process.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts';
import { type DueIssue, type RateResult, runAtRate } from '../harness/arrivals.ts';
import { openClient } from '../harness/prepare.ts';
import type { LoadOptions, Scenario } from '../harness/scenario.ts';

const PROJECT = 'default';
const TENANTS = Array.from({ length: 30 }, (_, i) => `tenant-${i}`);
const DOCUMENTS = 500;
const RATES = [300, 1_000, 2_000];
/** Of the arrivals of a phase with writes, one in so many is a write and the read after it. */
const WRITE_EVERY = 10;

type Phase = { readonly instances: number; readonly routed: boolean; readonly writes: boolean };
type Figures = Pick<RateResult, 'p50Ms' | 'p99Ms' | 'failed' | 'abandoned'> & {
  readonly rate: number;
  /** Reads after a write that another instance acknowledged; the others are in the figures above. */
  readonly afterWriteP50Ms?: number;
  readonly afterWriteP99Ms?: number;
  /** CPU milliseconds for 1,000 calls, all instances together, and all of PostgreSQL. */
  readonly gatewayCpuMs: number;
  readonly postgresCpuMs: number;
  readonly readsPerQuery: number;
};

/**
 * The price of freshness beside others: the same reads of one instance alone, of one that others stand
 * beside, and of two and three that share them, each tenant's to one instance or to all in turn.
 */
export const severalInstances: Scenario = {
  name: 'several-instances',
  purpose: 'Check alone, and where each read asks the read index, at three rates',
  question: 'What does it cost that no read is stale when several instances write?',
  async run(options, start) {
    const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-load-pg-'));
    const server = await startEmbeddedPostgres({ dataDirectory });
    const bed = new Bed(options, join(dataDirectory, 'postgres'));
    try {
      const { user, password, database, host } = server.target;
      const databaseUrl = `postgres://${user}:${password}@/${database}?host=${host}`;
      const env = { DATABASE_URL: databaseUrl, GATEWAY_WORKERS: '1', GATEWAY_PG_POOL_SIZE: '4' };
      const report: Record<string, unknown> = {};
      const measure = async (name: string, phase: Phase): Promise<void> => {
        report[name] = await bed.measure(phase);
      };
      bed.add(await start(env));
      await bed.fill();
      const alone = { instances: 1, routed: true, writes: false };
      await measure('alone', alone);
      await measure('alone, with writes', { ...alone, writes: true });
      bed.add(await start(env));
      await measure('one of two', alone);
      for (const instances of [2, 3]) {
        if (instances === 3) bed.add(await start(env));
        for (const routed of [true, false]) {
          const where = `${instances}, ${routed ? 'routed' : 'not routed'}`;
          await measure(where, { instances, routed, writes: false });
          await measure(`${where}, with foreign writes`, { instances, routed, writes: true });
        }
      }
      await bed.leaveOne();
      await measure('alone again', alone);
      await measure('alone again, with writes', { ...alone, writes: true });
      return report;
    } finally {
      await bed.close();
      await server.stop();
      await rm(dataDirectory, { recursive: true, force: true });
    }
  },
};

/** The instances and their clients. */
class Bed {
  readonly #options: LoadOptions;
  readonly #postgresDirectory: string;
  readonly #services: Service[] = [];
  readonly #clients: LoadClient[] = [];
  #written = 0;

  constructor(options: LoadOptions, postgresDirectory: string) {
    this.#options = options;
    this.#postgresDirectory = postgresDirectory;
  }

  add(service: Service): void {
    this.#services.push(service);
    this.#clients.push(openClient(service));
  }

  async fill(): Promise<void> {
    for (const tenantId of TENANTS) {
      const tuples = Array.from({ length: DOCUMENTS }, (_, i) => ({
        namespace: 'resource',
        object_id: `d${i}`,
        relation: 'viewer',
        subject: 'user:u',
      }));
      await fill(this.#client(0), tuples, { project_id: PROJECT, tenant_id: tenantId });
    }
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close();
    for (const service of this.#services) await service.stop();
  }

  /** Ends all but the first, and waits until that one is alone. */
  async leaveOne(): Promise<void> {
    for (const service of this.#services.splice(1)) await service.stop();
    for (const client of this.#clients.splice(1)) await client.close();
    for (let queries = -1, before = -2; queries !== before;) {
      before = queries;
      await runAtRate({
        perSecond: 50,
        seconds: 1,
        issue: this.#issue({ instances: 1, routed: true, writes: false }, []),
      });
      ({ queries } = await this.#used());
    }
  }

  async measure(phase: Phase): Promise<readonly Figures[]> {
    const figures: Figures[] = [];
    // Loads shards where they were not asked for yet.
    await runAtRate({ perSecond: 300, seconds: 2, issue: this.#issue(phase, []) });
    const rates = this.#options.rate === undefined ? RATES : [this.#options.rate];
    for (const rate of rates) figures.push(await this.#atRate(phase, rate));
    return figures;
  }

  async #atRate(phase: Phase, rate: number): Promise<Figures> {
    const afterWrites: number[] = [];
    const before = await this.#used();
    const { seconds } = this.#options;
    const issue = this.#issue(phase, afterWrites);
    const result = await runAtRate({ perSecond: rate, seconds, issue });
    const after = await this.#used();
    const { p50Ms, p99Ms, failed, abandoned, failures } = result;
    if (failures !== undefined) process.stderr.write(`${failures.join('\n')}\n`);
    afterWrites.sort((a, b) => a - b);
    const at = (share: number): number =>
      afterWrites[Math.floor(share * afterWrites.length)] ?? Number.NaN;
    const perThousand = (a: number, b: number): number => ((b - a) * 1e6) / result.count;
    return {
      rate,
      p50Ms,
      p99Ms,
      failed,
      abandoned,
      ...(phase.writes ? { afterWriteP50Ms: at(0.5), afterWriteP99Ms: at(0.99) } : {}),
      gatewayCpuMs: perThousand(before.gatewayS, after.gatewayS),
      postgresCpuMs: perThousand(before.postgresS, after.postgresS),
      readsPerQuery: (after.reads - before.reads) / (after.queries - before.queries),
    };
  }

  #client(index: number): LoadClient {
    return this.#clients[index] as LoadClient;
  }

  #issue({ instances, routed, writes }: Phase, afterWrites: number[]): DueIssue {
    return (index, done) => {
      const tenantId = TENANTS[(index * 7) % TENANTS.length] ?? '';
      const home = shardHash({ projectId: PROJECT, tenantId }) % instances;
      const reader = routed ? home : index % instances;
      if (writes && index % WRITE_EVERY === 0) {
        this.#writeAndRead(tenantId, (reader + 1) % instances, reader, done, afterWrites);
        return;
      }
      const isGranted = index % 2 === 0;
      const objectId = isGranted ? `d${index % DOCUMENTS}` : 'none';
      this.#check(reader, tenantId, objectId, isGranted, done);
    };
  }

  #check(
    reader: number,
    tenantId: string,
    objectId: string,
    isGranted: boolean,
    done: (failure: string | undefined) => void,
  ): void {
    const object = { namespace: 'resource', object_id: objectId, relation: 'viewer' };
    const body = JSON.stringify({ tenant_id: tenantId, ...object, subject_user_id: 'u' });
    this.#client(reader).post(CHECK_PATH, body, (reply, error) => {
      done(failureOf(reply, error, (bytes) => bytes.equals(ALLOWED) === isGranted));
    });
  }

  /** A tuple that was never there, written through one instance, asked for at another. */
  #writeAndRead(
    tenantId: string,
    writer: number,
    reader: number,
    done: (failure: string | undefined) => void,
    afterWrites: number[],
  ): void {
    const objectId = `w${this.#written++}`;
    const tuple = {
      namespace: 'resource',
      object_id: objectId,
      relation: 'viewer',
      subject: { user_id: 'u' },
    };
    const body = JSON.stringify({ tenant_id: tenantId, updates: [{ op: 'OP_INSERT', tuple }] });
    this.#client(writer).post(WRITE_PATH, body, (reply, error) => {
      const failure = failureOf(reply, error);
      if (failure !== undefined) return done(failure);
      const startMs = performance.now();
      this.#check(reader, tenantId, objectId, true, (wrong) => {
        afterWrites.push(performance.now() - startMs);
        done(wrong);
      });
    });
  }

  async #used() {
    const gateways = await Promise.all(this.#services.map(({ pid }) => cpuSeconds(pid)));
    const servers = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && worksIn(pid, this.#postgresDirectory) === true);
    const postgres = await Promise.all(servers.map((pid) => cpuSeconds(pid)));
    const texts = await Promise.all(
      this.#services.map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()),
    );
    const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
    const total = (name: string): number =>
      sum(texts.map((text) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? 0)));
    return {
      gatewayS: sum(gateways),
      postgresS: sum(postgres),
      reads: total('gatehouse_read_index_reads_sum'),
      queries: total('gatehouse_read_index_reads_count'),
    };
  }
}
