import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHistogram } from 'node:perf_hooks';
import type { Pool } from 'pg';
import { LoadClient } from '../../bench/harness/client.ts';
import { type Service, cpuSeconds } from '../../bench/harness/service.ts';
import {
  CHECK_PATH,
  WRITE_PATH,
  createProject,
  fill,
  writeBody,
} from '../../bench/harness/target.ts';
import { readHeadRevisions } from '../../src/store/change-feed.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts';
import { type ServerTarget, createPool } from '../../src/store/pool.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type Issue, type RateResult, runAtRate } from '../harness/arrivals.ts';
import { checkIssue, openClient } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';
import { type FloodResult, createShards, flood } from '../harness/shard-flood.ts';

const PROJECT = 'load';
const FLOODED = 1_000;
const WRITES_PER_SECOND = 10_000;
const VISIBLE_WRITES = 200;
const HELD = 10_000;
/** As ShardHost asks. */
const HEADS_PER_QUERY = 1_000;
const POLLS = 40;

function urlOf({ user, password, database, host, port }: ServerTarget): string {
  const query = `host=${encodeURIComponent(host)}&port=${port}`;
  return `postgres://${user}:${encodeURIComponent(password)}@localhost/${database}?${query}`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Loop delay since the scrape before, and memory, of a service. */
async function figuresOf(metricsUrl: string): Promise<{ loopP99Ms: number; residentMb: number }> {
  const text = await (await fetch(metricsUrl)).text();
  const value = (name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1],
    );
  return {
    loopP99Ms: value('nodejs_eventloop_delay_p99_seconds') * 1_000,
    residentMb: Math.round(value('process_resident_memory_bytes') / 1_048_576),
  };
}

type Phase = RateResult & {
  readonly loopP99Ms: number;
  readonly residentMb: number;
  /** Of a processor: the instance that is asked, and the server for the workers of both. */
  readonly cpu: number;
  readonly serverCpu: number;
};

/** CPU seconds of the server for the decision workers of all instances. */
async function workerBackendsCpu(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>(
    `select pid from pg_stat_activity where application_name like 'gatehouse-worker-%'`,
  );
  const seconds = await Promise.all(rows.map(({ pid }) => cpuSeconds(pid)));
  return seconds.reduce((sum, one) => sum + one, 0);
}

/** Milliseconds from the acknowledgement of a write on one instance until another answers by it, from memory. */
async function visibility(writer: LoadClient, reader: LoadClient): Promise<object> {
  const scope = { project_id: PROJECT, tenant_id: 'visible' };
  const tuple = { namespace: 'doc', object_id: 'v', relation: 'viewer' };
  const write = async (user: string): Promise<string> => {
    const body = JSON.parse(writeBody([{ ...tuple, subject: `user:${user}` }], scope)) as object;
    return String((await writer.call(WRITE_PATH, body))['consistency_token']);
  };
  // A token that is older than the write: the reader asks nobody, and answers by what it was told.
  const token = await write('first');
  const histogram = createHistogram({ lowest: 1, highest: 60_000_000_000, figures: 3 });
  for (let i = 0; i < VISIBLE_WRITES; i++) {
    const question = {
      ...scope,
      ...tuple,
      subject_user_id: `u${i}`,
      at_least_consistency_token: token,
    };
    await reader.call(CHECK_PATH, question);
    await write(`u${i}`);
    const writtenMs = performance.now();
    while ((await reader.call(CHECK_PATH, question))['allowed'] !== true);
    histogram.record(Math.max(1, Math.round((performance.now() - writtenMs) * 1e6)));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
  }
  return { p50Ms: histogram.percentile(50) / 1e6, p99Ms: histogram.percentile(99) / 1e6 };
}

/** What one instance that holds 10,000 shards has the server do with each poll. */
async function pollCost(pool: Pool, target: ServerTarget): Promise<object> {
  const shards = Array.from({ length: HELD }, (_, i) => ({
    projectId: PROJECT,
    tenantId: `held-${i}`,
  }));
  await createShards(
    pool,
    PROJECT,
    shards.map(({ tenantId }) => tenantId),
  );
  await pool.query('vacuum analyze shard');
  const single = createPool(target, { max: 1, applicationName: 'load-poll' });
  const { rows } = await single.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid ?? 0;
  const poll = async (): Promise<void> => {
    for (let at = 0; at < HELD; at += HEADS_PER_QUERY) {
      await readHeadRevisions(single, shards.slice(at, at + HEADS_PER_QUERY));
    }
  };
  for (let i = 0; i < 5; i++) await poll();
  const [cpuBefore, startMs, ownBefore] = [
    await cpuSeconds(pid),
    performance.now(),
    process.cpuUsage(),
  ];
  for (let i = 0; i < POLLS; i++) await poll();
  const serverCpuMs = (((await cpuSeconds(pid)) - cpuBefore) * 1_000) / POLLS;
  const own = process.cpuUsage(ownBefore);
  const wallMs = (performance.now() - startMs) / POLLS;
  await single.end();
  return { shards: HELD, serverCpuMs, ownCpuMs: (own.user + own.system) / 1_000 / POLLS, wallMs };
}

/** The quiet tenant's questions at a constant rate, beside whatever else goes on. */
async function measured(
  asked: { readonly metricsUrl: string; readonly pid: number; readonly pool: Pool },
  run: { readonly perSecond: number; readonly seconds: number; readonly issue: Issue },
): Promise<Phase> {
  const { metricsUrl, pid, pool } = asked;
  await figuresOf(metricsUrl);
  const before = [await cpuSeconds(pid), await workerBackendsCpu(pool)] as const;
  const startMs = performance.now();
  const result = await runAtRate(run);
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    ...result,
    ...(await figuresOf(metricsUrl)),
    cpu: ((await cpuSeconds(pid)) - before[0]) / seconds,
    serverCpu: ((await workerBackendsCpu(pool)) - before[1]) / seconds,
  };
}

export const feedFlood: Scenario = {
  name: 'feed-flood',
  purpose:
    'two instances on one PostgreSQL: 10,000 writes a second to 1,000 tenants on one of them',
  question:
    'What do writes elsewhere cost who asks of another tenant here, and how soon are they seen?',
  async run(options, start) {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-feed-'));
    const server = await startEmbeddedPostgres({
      dataDirectory: join(directory, 'data'),
      maxConnections: 200,
    });
    const pool = createPool(server.target, { max: 4, applicationName: 'load' });
    const metricsPort = await freePort();
    const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
    const services: Service[] = [];
    try {
      const env = { DATABASE_URL: urlOf(server.target), GATEWAY_WORKERS: '1' };
      const writing = await start(env);
      services.push(writing);
      const reading = await start({ ...env, GATEWAY_METRICS_PORT: String(metricsPort) });
      services.push(reading);
      const clientOf = ({ baseUrl, token }: Service): LoadClient =>
        new LoadClient({ baseUrl, connections: options.connections, token });
      const [writer, reader, open] = [clientOf(writing), clientOf(reading), openClient(reading)];
      await createProject(writer, writing.adminSecret, PROJECT, DATASET_MODEL_JSON);
      const visible = await visibility(writer, reader);
      const small = new World(0.1, options.seed);
      const quiet = { project_id: PROJECT, tenant_id: 'quiet' };
      await fill(writer, small.tuples, quiet);
      const issue = checkIssue(open, mixedQuestions(small, 10_000, 'uniform'), quiet);
      const run = { perSecond: options.rate ?? 300, seconds: options.seconds, issue };
      await runAtRate({ ...run, seconds: 2 });
      const asked = { metricsUrl, pid: reading.pid, pool };
      const alone = await measured(asked, run);
      const tenants = Array.from({ length: FLOODED }, (_, i) => `flooded-${i}`);
      await createShards(pool, PROJECT, tenants);
      const beside = async (): Promise<{ checks: Phase; flood: FloodResult }> => {
        const until = measured(asked, run);
        const writes = { pool, projectId: PROJECT, tenants, perSecond: WRITES_PER_SECOND, until };
        const [result, checks] = await Promise.all([flood(writes), until]);
        return { checks, flood: result };
      };
      const notHeld = await beside();
      const tuple = { namespace: 'doc', object_id: 'flooded', relation: 'viewer' };
      for (const tenantId of tenants) {
        const scope = { project_id: PROJECT, tenant_id: tenantId };
        await reader.call(CHECK_PATH, { ...scope, ...tuple, subject_user_id: 'u1' });
      }
      const held = await beside();
      await Promise.all([writer.close(), reader.close(), open.close()]);
      const poll = await pollCost(pool, server.target);
      return { visible, alone, notHeld, held, poll };
    } finally {
      for (const service of services) await service.stop();
      await pool.end();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    }
  },
};
