import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, type Service, startService } from '../support/service.ts';

const TENANTS = Array.from({ length: 40 }, (_, i) => `tenant-${i}`);

let service: Service;
beforeAll(async () => {
  const first = await startService({ env: { GATEWAY_WORKERS: '2' } });
  await Promise.all(TENANTS.map((tenant) => write(first, tenant, 'OP_INSERT', 'u')));
  await first.kill('SIGTERM');
  const { dataDir } = first;
  const env = { GATEWAY_WORKERS: '2', GATEWAY_WARM_UP_SECONDS: '0' };
  service = await startService({ dataDir, env });
}, 120_000);
afterAll(async () => await service.stop());

async function write(to: Service, tenant: string, op: string, userId: string): Promise<void> {
  const tuple = {
    namespace: 'document',
    object_id: 'd',
    relation: 'viewer',
    subject: { user_id: userId },
  };
  const updates = [{ op, tuple }];
  const { status } = await call(to, 'AuthzService/WriteRelationTuples', {
    tenant_id: tenant,
    updates,
  });
  expect(status).toBe(200);
}

async function check(tenant: string, userId: string): Promise<unknown> {
  const { status, body } = await call(service, 'AuthzService/Check', {
    tenant_id: tenant,
    namespace: 'document',
    object_id: 'd',
    relation: 'viewer',
    subject_user_id: userId,
  });
  expect(status).toBe(200);
  return body['allowed'] ?? false;
}

async function figure(name: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

const reads = (): Promise<number> => figure('gatehouse_read_index_reads_sum');

test('the first read of a tenant is answered by its load, and the next one knows its head', async () => {
  const before = await reads();
  const one = TENANTS.slice(0, 20);
  expect(await Promise.all(one.map((tenant) => check(tenant, 'u')))).toEqual(one.map(() => true));
  expect(await Promise.all(one.map((tenant) => check(tenant, 'v')))).toEqual(one.map(() => false));
  expect((await reads()) - before).toBe(0);
});

test('reads of one tenant that come at once are all answered, the later ones by its head', async () => {
  const [tenant = ''] = TENANTS.slice(20);
  const answers = await Promise.all(Array.from({ length: 50 }, () => check(tenant, 'u')));
  expect(answers).toEqual(answers.map(() => true));
});

test('a read sees what was acknowledged before it, whatever was known of its tenant', async () => {
  const ask = async (tenant: string): Promise<readonly unknown[]> => {
    const first = Promise.all([check(tenant, 'u'), check(tenant, 'u')]);
    await write(service, tenant, 'OP_INSERT', 'w');
    const afterInsert = await check(tenant, 'w');
    await write(service, tenant, 'OP_DELETE', 'u');
    return [afterInsert, await check(tenant, 'u'), ...(await first)];
  };
  const answers = await Promise.all(TENANTS.slice(21).map((tenant) => ask(tenant)));
  for (const [afterInsert, afterDelete] of answers) {
    expect([afterInsert, afterDelete]).toEqual([true, false]);
  }
});
