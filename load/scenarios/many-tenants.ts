import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { atEnd } from '../../bench/harness/cleanup.ts';
import { LoadClient } from '../../bench/harness/client.ts';
import { type Service, startService } from '../../bench/harness/service.ts';
import { CHECK_PATH, WRITE_PATH, createProject, writeBody } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import type { NeutralTuple } from '../../test/support/dataset/world.ts';
import type { Scenario } from './scenario.ts';

/** At scale 1. */
const TENANTS = 10_000;
const CALLERS = 64;
/** A second of the statistics' interval, and time for the collectors to rest. */
const SETTLE_MS = 1_500;

export const manyTenants: Scenario = {
  name: 'many-tenants',
  question:
    'What does a small tenant take of memory, how many load a second, and does a process keep to a limit that few of them fit in?',
  run: async ({ scale }) => {
    const tenants = Math.round(TENANTS * scale);
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-tenants-'));
    atEnd(() => rm(directory, { recursive: true, force: true }));
    const env = { GATEWAY_DATA_DIR: directory, GATEWAY_WARM_UP_SECONDS: '0' };
    await withClient(env, (client, service) => fillTenants(client, service, tenants));
    const unlimited = await askTenants(env, tenants);
    // A fifth of them fits, or as few as the least limit of 16 MiB lets.
    const limitBytes = Math.ceil(Math.max(2 ** 24, unlimited.indexBytes / 5));
    const limit = { GATEWAY_INDEX_BYTES: String(limitBytes) };
    const limited = await askTenants({ ...env, ...limit }, tenants);
    return {
      figures: {
        tenants,
        unlimited,
        limitBytes,
        limitOfIndex: limitBytes / unlimited.indexBytes,
        limited,
      },
    };
  },
};

/** Starts a service on the tenants' data and asks in each once, and once more. */
function askTenants(env: Readonly<Record<string, string>>, tenants: number) {
  return withClient(env, async (client, service) => {
    const empty = await memoryOf(service);
    const cold = await askAll(client, tenants);
    const again = await askAll(client, tenants);
    const full = await memoryOf(service);
    const grownBytes = full.resident - empty.resident;
    const indexBytes = full.index - empty.index;
    return { grownBytes, bytesPerTenant: grownBytes / tenants, indexBytes, cold, again };
  });
}

async function withClient<T>(
  env: Readonly<Record<string, string>>,
  work: (client: LoadClient, service: Service) => Promise<T>,
): Promise<T> {
  const service = await startService(env);
  const client = new LoadClient({ ...service, connections: CALLERS });
  try {
    return await work(client, service);
  } finally {
    await client.close();
    await service.stop();
  }
}

/** Calls `work` for each number below `count`, so many of them at once as there are callers. */
async function forEach(count: number, work: (index: number) => Promise<void>): Promise<void> {
  const numbers = Array.from({ length: count }, (_, i) => i).values();
  const caller = async (): Promise<void> => {
    for (const index of numbers) await work(index);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

const scopeOf = (tenant: number) => ({ project_id: 'load', tenant_id: `tenant-${tenant}` });
async function fillTenants(client: LoadClient, service: Service, tenants: number): Promise<void> {
  await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
  await forEach(tenants, async (tenant) => {
    await client.call(WRITE_PATH, JSON.parse(writeBody(tuplesOf(tenant), scopeOf(tenant))));
  });
}

/** A tenant's own 20 tuples: two folders, each with a group of four and two documents. */
function tuplesOf(tenant: number): readonly NeutralTuple[] {
  const user = (n: number): string => `user:u${tenant}-${n}`;
  const tuple = (object: string, relation: string, subject: string): NeutralTuple => {
    const [namespace = '', objectId = ''] = object.split(':');
    return { namespace, object_id: objectId, relation, subject };
  };
  return [0, 1].flatMap((f) => [
    tuple(`folder:f${f}`, 'viewer', `group:g${f}#member`),
    tuple(`folder:f${f}`, 'owner', user(f)),
    ...[0, 1, 2, 3].map((n) => tuple(`group:g${f}`, 'member', user(4 * f + n))),
    ...[0, 1].flatMap((n) => [
      tuple(`doc:d${tenant}-${2 * f + n}`, 'parent', `folder:f${f}`),
      tuple(`doc:d${tenant}-${2 * f + n}`, 'editor', user(f)),
    ]),
  ]);
}

/** Asks in each tenant once. */
async function askAll(client: LoadClient, tenants: number) {
  const startMs = performance.now();
  let wrong = 0;
  await forEach(tenants, async (tenant) => {
    const subject = { relation: 'viewer', subject_user_id: `u${tenant}-7` };
    const body = { ...scopeOf(tenant), namespace: 'doc', object_id: `d${tenant}-2`, ...subject };
    const { allowed } = await client.call(CHECK_PATH, body);
    if (allowed !== true) wrong++;
  });
  return { perSecond: (1000 * tenants) / (performance.now() - startMs), wrong };
}

async function memoryOf({ metricsUrl }: Service) {
  await delay(SETTLE_MS);
  const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
  const figure = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  return {
    resident: figure('process_resident_memory_bytes'),
    index: figure('gatehouse_index_bytes'),
  };
}
