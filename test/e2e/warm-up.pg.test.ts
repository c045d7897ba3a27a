import { afterAll, beforeAll, expect, it } from 'vitest';
import { readRecentShards } from '../../src/store/sql/reads/recent-shards.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type ServedService, serveService } from '../support/serve-service.ts';
import { call, type Service, startService } from '../support/service.ts';
import { byLength, inLong } from '../support/test-length.ts';
import { linesOf, plainTuples, postLines } from '../tuples/support.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

const settings = (
  env: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> & { readonly DATABASE_URL: string } => ({
  GATEWAY_WORKERS: byLength('1', '2'),
  ...env,
  DATABASE_URL: urlOf(database.target),
});
const startProcess = (env?: Readonly<Record<string, string>>): Promise<Service> =>
  startService({ env: settings(env) });
/** A process in the long run alone. */
const start = (env?: Readonly<Record<string, string>>): Promise<ServedService> =>
  byLength(true, false) ? serveService(settings(env)) : startProcess(env);

async function ask(service: ServedService, tenant: string): Promise<unknown> {
  const { status, body } = await call(service, 'AuthzService/Check', {
    tenant_id: tenant,
    namespace: 'document',
    object_id: 'd',
    relation: 'viewer',
    subject_user_id: 'u',
  });
  expect(status).toBe(200);
  return body['allowed'];
}

async function figure(service: ServedService, name: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

const tenants = Array.from({ length: 20 }, (_, n) => `tenant-${n}`);

it('an instance that is ready has loaded what the one before was asked for last', async () => {
  const first = await start();
  for (const tenant_id of tenants) {
    const tuple = {
      namespace: 'document',
      object_id: 'd',
      relation: 'viewer',
      subject: { user_id: 'u' },
    };
    const updates = [{ op: 'OP_INSERT', tuple }];
    await call(first, 'AuthzService/WriteRelationTuples', { tenant_id, updates });
    expect(await ask(first, tenant_id)).toBe(true);
  }
  // The workers tell every two seconds.
  await expect.poll(() => figure(first, 'gatehouse_index_shards'), { timeout: 10_000 }).toBe(20);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await first.stop();

  const second = await start();
  expect(await figure(second, 'gatehouse_warm_up_shards')).toBe(20);
  expect(second.log.find(({ msg }) => msg === 'warmed_up')).toMatchObject({ shards: 20 });
  const loads = await figure(second, 'gatehouse_shard_loads_total');
  for (const tenant of tenants) expect(await ask(second, tenant)).toBe(true);
  await expect.poll(() => figure(second, 'gatehouse_shard_loads_total')).toBe(20);
  expect(loads).toBeLessThanOrEqual(20);
  await second.stop();

  if (byLength(true, false)) return;
  const third = await start({ GATEWAY_WARM_UP_SECONDS: '0' });
  expect(await figure(third, 'gatehouse_index_shards')).toBe(0);
  await third.stop();
}, 120_000);

inLong(it)(
  'a large tenant that was loaded just before the end, even a violent one, is warm at the next start',
  async () => {
    const recent = async (): Promise<readonly string[]> =>
      (await readRecentShards(database.pool)).flat().map(({ tenantId }) => tenantId);
    const first = await startProcess();
    // What the start itself wrote is past.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const { status } = await postLines(first, '?tenant_id=large', linesOf(plainTuples(30_000)));
    expect(status).toBe(200);
    expect(await ask(first, 'large')).toBe(false);
    await expect.poll(recent, { timeout: 40_000 }).toContain('large');
    await first.kill();

    const second = await start();
    // Nobody asks it anything: those of the test before, and this one.
    await expect
      .poll(() => figure(second, 'gatehouse_index_shards'), { timeout: 40_000 })
      .toBe(tenants.length + 1);
    expect(await ask(second, 'large')).toBe(false);
    await second.stop();
  },
  120_000,
);
