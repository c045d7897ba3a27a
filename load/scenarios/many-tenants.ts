import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { failureOf, LoadClient } from '../../bench/harness/client.ts';
import { type Service, cpuSeconds, startService } from '../../bench/harness/service.ts';
import {
  ALLOWED,
  CHECK_PATH,
  createProject,
  writeBody,
  WRITE_PATH,
} from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import type { NeutralTuple } from '../../test/support/dataset/world.ts';
import type { LoadOptions, Scenario } from '../harness/scenario.ts';

const TENANTS = 10_000;
const CHURN_TENANTS = 100_000;
const CHURN_LIMIT = 64 * 1024 * 1024;
const TUPLES_EACH = 20;
const FILLERS = 32;
/** A second of the statistics' interval, and time for the collectors to rest. */
const SETTLE_MS = 1_500;

type Memory = { readonly residentBytes: number; readonly accountedBytes: number };

export const manyTenants: Scenario = {
  name: 'many-tenants',
  purpose: '10,000 tenants of 20 tuples (x scale) are asked once after a restart, then at random',
  question: 'What does a small tenant take of the process, and how many cold ones load a second?',
  run: (options) => measure(options, Math.round(TENANTS * options.scale), {}),
};

export const tenantChurn: Scenario = {
  name: 'tenant-churn',
  purpose: '100,000 tenants of 20 tuples (x scale) go through an instance of 64 MiB for indexes',
  question: 'Does the process stay within its limit when far more tenants come than fit?',
  run: (options) =>
    measure(options, Math.round(CHURN_TENANTS * options.scale), {
      GATEWAY_INDEX_BYTES: String(CHURN_LIMIT),
    }),
};

async function measure(
  options: LoadOptions,
  tenants: number,
  settings: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-tenants-'));
  const env = { GATEWAY_DATA_DIR: dataDir, GATEWAY_WARM_UP_SECONDS: '0' };
  try {
    await fillTenants(env, tenants, options.connections);
    const service = await startService({ ...env, ...settings });
    const { baseUrl, token, pid } = service;
    const client = new LoadClient({ baseUrl, connections: options.connections, token });
    const empty = await memoryOf(service);
    const cold = await askAll(client, pid, tenants, (i) => i);
    const full = await memoryOf(service);
    const again = await askAll(client, pid, tenants, (i) => (i * 7_919) % tenants);
    const afterwards = await memoryOf(service);
    await client.close();
    await service.stop();
    const grownBytes = full.residentBytes - empty.residentBytes;
    return {
      tenants,
      tuplesEach: TUPLES_EACH,
      empty,
      full,
      afterwards,
      grownBytes,
      bytesPerTenant: Math.round(grownBytes / tenants),
      accountedOfGrown: (full.accountedBytes - empty.accountedBytes) / grownBytes,
      grownOverLimit:
        settings['GATEWAY_INDEX_BYTES'] === undefined
          ? undefined
          : (afterwards.residentBytes - empty.residentBytes) / CHURN_LIMIT,
      cold,
      again,
    };
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** A tenant's own 20 tuples: two folders, groups of four, and documents. */
function tuplesOf(tenant: number): readonly NeutralTuple[] {
  const tuples: NeutralTuple[] = [];
  const add = (namespace: string, object_id: string, relation: string, subject: string): void => {
    tuples.push({ namespace, object_id, relation, subject });
  };
  for (let i = 0; i < 8; i++) {
    add('group', `g${i >> 2}`, 'member', `user:u${tenant}-${i}`);
  }
  for (let i = 0; i < 2; i++) {
    add('folder', `f${i}`, 'viewer', `group:g${i}#member`);
    add('folder', `f${i}`, 'owner', `user:u${tenant}-${i}`);
  }
  for (let i = 0; i < 4; i++) {
    add('doc', `d${tenant}-${i}`, 'parent', `folder:f${i & 1}`);
    add('doc', `d${tenant}-${i}`, 'editor', `user:u${tenant}-${i + 4}`);
  }
  return tuples;
}

async function askAll(
  client: LoadClient,
  pid: number,
  count: number,
  tenantOf: (index: number) => number,
): Promise<Record<string, unknown>> {
  const startedMs = performance.now();
  const cpuBefore = await cpuSeconds(pid);
  const failures: string[] = [];
  let next = 0;
  const ask = (done: () => void): void => {
    if (next === count) {
      done();
      return;
    }
    const tenant = tenantOf(next++);
    const body = {
      ...scopeOf(tenant),
      namespace: 'doc',
      object_id: `d${tenant}-1`,
      relation: 'viewer',
      subject_user_id: `u${tenant}-7`,
    };
    client.post(CHECK_PATH, JSON.stringify(body), (reply, error) => {
      const failure = failureOf(reply, error, (answer) => answer.equals(ALLOWED));
      if (failure !== undefined) failures.push(failure);
      ask(done);
    });
  };
  await Promise.all(Array.from({ length: 64 }, () => new Promise<void>((resolve) => ask(resolve))));
  const seconds = (performance.now() - startedMs) / 1000;
  return {
    perSecond: Math.round(count / seconds),
    perCpuSecond: Math.round(count / ((await cpuSeconds(pid)) - cpuBefore)),
    failed: failures.length,
    failures: failures.slice(0, 3),
  };
}

async function memoryOf(service: Service): Promise<Memory> {
  await delay(SETTLE_MS);
  const status = await readFile(`/proc/${service.pid}/status`, 'utf8');
  const resident = /VmRSS:\s+(\d+) kB/.exec(status)?.[1];
  const metrics = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const accounted = /^gatehouse_index_bytes (\S+)$/m.exec(metrics)?.[1];
  if (resident === undefined || accounted === undefined) throw new Error('no figures of memory');
  return { residentBytes: Number(resident) * 1024, accountedBytes: Number(accounted) };
}

const scopeOf = (tenant: number): Record<string, string> => ({
  project_id: 'load',
  tenant_id: `tenant-${tenant}`,
});

async function fillTenants(
  env: Readonly<Record<string, string>>,
  tenants: number,
  connections: number,
): Promise<void> {
  const service = await startService(env);
  const client = new LoadClient({ baseUrl: service.baseUrl, connections, token: service.token });
  try {
    await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
    let next = 0;
    const filler = async (): Promise<void> => {
      while (next < tenants) {
        const tenant = next++;
        await client.call(WRITE_PATH, JSON.parse(writeBody(tuplesOf(tenant), scopeOf(tenant))));
      }
    };
    await Promise.all(Array.from({ length: FILLERS }, filler));
  } finally {
    await client.close();
    await service.stop();
  }
}
