import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type ServedService, serveService } from '../support/serve-service.ts';
import { call, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';

/*
 * Two instances on one database, whose machines have clocks four days apart: what they hear of each other,
 * and what they have in common.
 */
const DAY_MS = 86_400_000;
const folder = mkdtempSync(join(tmpdir(), 'two-instances-'));
let database: TestDatabase;
let services: readonly [ServedService, ServedService];

beforeAll(async () => {
  database = await createTestDatabase();
  const preload = pathToFileURL('test/support/run-skewed-clock.ts').href;
  const env = {
    DATABASE_URL: urlOf(database.target),
    GATEWAY_WORKERS: byLength('1', '2'),
    // Whatever is heard of another's writes is heard by notifications.
    GATEWAY_POLL_INTERVAL_MS: '3600000',
  };
  const instance = async (name: string, skewMs: number): Promise<ServedService> => {
    const skew = join(folder, name);
    writeFileSync(skew, String(skewMs));
    const skewed = { NODE_OPTIONS: `--import=${preload}`, TEST_CLOCK_SKEW_FILE: skew };
    return await startService({ env: { ...env, ...skewed } });
  };
  services = await Promise.all([
    instance('ahead', byLength(4, 2) * DAY_MS),
    // In short this one has the clock of the test, and its process.
    byLength(true, false) ? serveService(env) : instance('behind', -2 * DAY_MS),
  ]);
}, 120_000);
afterAll(async () => {
  for (const service of services) expect(await service.stop()).toBe(0);
  await database.drop();
  rmSync(folder, { recursive: true });
});

async function write(service: ServedService, tenantId: string, fields: object): Promise<string> {
  const tuple = { namespace: 'resource', object_id: 'o', relation: 'viewer', ...fields };
  const updates = [{ op: 'OP_INSERT', tuple }];
  const body = { tenant_id: tenantId, updates };
  const answer = await call(service, 'AuthzService/WriteRelationTuples', body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return String(answer.body['consistency_token']);
}

async function check(
  service: ServedService,
  tenantId: string,
  userId: string,
  token?: string,
): Promise<boolean> {
  const body = { tenant_id: tenantId, namespace: 'resource', object_id: 'o', relation: 'viewer' };
  const answer = await call(service, 'AuthzService/Check', {
    ...body,
    subject_user_id: userId,
    ...(token === undefined ? {} : { at_least_consistency_token: token }),
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body['allowed'] === true;
}

async function series(service: ServedService, name: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? Number.NaN);
}

const DROPPED = 'gatehouse_feed_hints_total{outcome="dropped"}';
const HELD = 'gatehouse_feed_hints_total{outcome="held"}';
const OWN = 'gatehouse_feed_skipped_notifications_total{reason="own"}';

test('hints of a shard that is not held are dropped, those of one that is bring it forward', async () => {
  const [writer, other] = services;
  const before = [await series(other, DROPPED), await series(other, HELD)] as const;
  const ownBefore = await series(writer, OWN);
  const token = await write(writer, 'far', { subject: { user_id: 'first' } });
  await vi.waitFor(async () => expect(await series(other, DROPPED)).toBe(before[0] + 1), {
    timeout: 10_000,
  });
  await vi.waitFor(async () => expect(await series(writer, OWN)).toBe(ownBefore + 1), {
    timeout: 10_000,
  });
  expect([await series(other, HELD), await series(writer, HELD)]).toEqual([before[1], 0]);
  // From now on it is held there. A token of before asks nobody: only what was notified can show.
  expect(await check(other, 'far', 'first')).toBe(true);
  expect(await check(other, 'far', 'second', token)).toBe(false);
  await write(writer, 'far', { subject: { user_id: 'second' } });
  await vi.waitFor(async () => expect(await check(other, 'far', 'second', token)).toBe(true), {
    timeout: 10_000,
    interval: 5,
  });
  expect(await series(other, HELD)).toBeGreaterThan(before[1]);
});

test('many shards that are held come forward together', async () => {
  const [writer, other] = services;
  const tenants = Array.from({ length: byLength(25, 100) }, (_, i) => `many-${i}`);
  const tokens = await Promise.all(
    tenants.map((tenant) => write(writer, tenant, { subject: { user_id: 'first' } })),
  );
  await Promise.all(tenants.map((tenant) => check(other, tenant, 'first')));
  await Promise.all(
    tenants.map((tenant) => write(writer, tenant, { subject: { user_id: 'second' } })),
  );
  await vi.waitFor(
    async () => {
      const seen = await Promise.all(
        tenants.map((tenant, i) => check(other, tenant, 'second', tokens[i])),
      );
      expect(seen.filter(Boolean)).toHaveLength(tenants.length);
    },
    { timeout: 20_000, interval: 20 },
  );
});

test('expiry is one moment for both', async () => {
  const endMs = Date.now() + byLength(2_000, 3_000);
  const expiring = { subject: { user_id: 'u' }, expires_at: new Date(endMs).toISOString() };
  await write(services[0], 'expiry', expiring);
  await write(services[1], 'expiry', { ...expiring, object_id: 'p' });
  const slackMs = 250;
  for (;;) {
    const seen = await Promise.all(services.map((service) => check(service, 'expiry', 'u')));
    if (Date.now() >= endMs - slackMs) break;
    expect(seen).toEqual([true, true]);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await vi.waitFor(
    async () => {
      const seen = await Promise.all(services.map((service) => check(service, 'expiry', 'u')));
      expect(seen).toEqual([false, false]);
    },
    { timeout: 10_000, interval: 10 },
  );
});

test('the same secrets have the same fingerprint on both', async () => {
  const infos = await Promise.all(
    services.map(async ({ metricsUrl }) => {
      const text = await (await fetch(`${metricsUrl}/metrics`)).text();
      return text.split('\n').filter((line) => line.startsWith('gatehouse_credential_info{'));
    }),
  );
  expect(infos[0]).toHaveLength(2);
  expect(infos[1]).toEqual(infos[0]);
});
