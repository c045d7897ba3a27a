import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type ServedService, serveService } from '../support/serve-service.ts';
import { call, startService, type Service } from '../support/service.ts';

/*
 * A machine whose wall clock is wrong, and is set while the service runs: expiry goes by the database's
 * clock, which here is that of the test.
 */
const DAY_MS = 86_400_000;
const folder = mkdtempSync(join(tmpdir(), 'clock-skew-'));
const skew = join(folder, 'skew');
let database: TestDatabase;
let service: Service;
/** Less certain of the time than it must be. */
let strict: ServedService;

beforeAll(async () => {
  database = await createTestDatabase();
  writeFileSync(skew, String(2 * DAY_MS));
  const preload = pathToFileURL('test/support/run-skewed-clock.ts').href;
  const env = { GATEWAY_WORKERS: '1', DATABASE_URL: urlOf(database.target) };
  const skewed = { NODE_OPTIONS: `--import=${preload}`, TEST_CLOCK_SKEW_FILE: skew };
  [service, strict] = await Promise.all([
    startService({ env: { ...env, ...skewed } }),
    // Between two renewals clocks may drift that far apart.
    serveService({ ...env, GATEWAY_CLOCK_UNCERTAINTY_MAX_MS: '1' }),
  ]);
});
afterAll(async () => {
  expect(await Promise.all([service.stop(), strict.stop()])).toEqual([0, 0]);
  await database.drop();
  rmSync(folder, { recursive: true });
});

async function grant(userId: string, expiresAtMs: number): Promise<void> {
  const tuple = {
    namespace: 'resource',
    object_id: 'o',
    relation: 'viewer',
    subject: { user_id: userId },
    expires_at: new Date(expiresAtMs).toISOString(),
  };
  const updates = [{ op: 'OP_INSERT', tuple }];
  const answer = await call(service, 'AuthzService/WriteRelationTuples', {
    tenant_id: 't',
    updates,
  });
  expect(answer.status).toBe(200);
}

/** What the worker says (Check, on the hot and on the general path), and the gateway's thread (the export). */
async function isAllowed(userId: string): Promise<readonly boolean[]> {
  const body = { tenant_id: 't', namespace: 'resource', object_id: 'o', relation: 'viewer' };
  const question = { ...body, subject_user_id: userId };
  const hot = await call(service, 'AuthzService/Check', question);
  const general = await call(service, 'AuthzService/Check', { ...question, context: { x: 1 } });
  const all = await call(service, 'AuthzService/ExportSubjectGrants', { user_id: userId });
  expect([hot.status, general.status, all.status]).toEqual([200, 200, 200]);
  const grants = (all.body['grants'] ?? []) as readonly unknown[];
  return [hot.body['allowed'] === true, general.body['allowed'] === true, grants.length > 0];
}

async function offsetSeconds(): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(/^gatehouse_clock_offset_seconds (.*)$/m.exec(text)?.[1]);
}

const YES = [true, true, true];
const NO = [false, false, false];

test('expiry goes by the database, by whatever the clock of the machine is wrong', async () => {
  expect(await offsetSeconds()).toBeCloseTo((-2 * DAY_MS) / 1000, -1);
  await grant('hour', Date.now() + 3_600_000);
  await grant('past', Date.now() - 1_000);
  expect([await isAllowed('hour'), await isAllowed('past')]).toEqual([YES, NO]);
  writeFileSync(skew, String(-2 * DAY_MS));
  await vi.waitFor(async () => expect(await offsetSeconds()).toBeGreaterThan(DAY_MS / 1000), {
    timeout: 10_000,
  });
  expect([await isAllowed('hour'), await isAllowed('past')]).toEqual([YES, NO]);
  // The clock of the process really was wrong: its log says so.
  const loggedMs = new Date(String(service.log[0]?.['time'])).getTime();
  expect(loggedMs - Date.now()).toBeGreaterThan(DAY_MS);
  expect((await fetch(`${service.baseUrl}/readyz`)).status).toBe(200);
});

test('a grant ends at its moment, while the clock of the machine is being set to and fro', async () => {
  const endMs = Date.now() + 2_000;
  await grant('soon', endMs);
  onTestFinished(() => clearInterval(setting));
  const setting = setInterval(() => {
    writeFileSync(skew, String(Math.round((Math.random() - 0.5) * 2 * DAY_MS)));
  }, 50);
  // Both clocks are this machine's, and the estimate is certain to a few milliseconds.
  const slackMs = 200;
  let looks = 0;
  for (;;) {
    const seen = await isAllowed('soon');
    if (Date.now() >= endMs - slackMs) break;
    expect(seen).toEqual(YES);
    looks++;
    // Asking without a pause would take two cores for as long.
    await sleep(20);
  }
  await vi.waitFor(async () => expect(await isAllowed('soon')).toEqual(NO), {
    timeout: 10_000,
    interval: 10,
  });
  expect(Date.now() - endMs).toBeGreaterThan(-slackMs);
  expect(looks).toBeGreaterThan(5);
});

test('an instance that is less certain of the time than it must be is not ready', async () => {
  await vi.waitFor(
    async () => {
      const answer = await fetch(`${strict.baseUrl}/readyz`);
      expect([answer.status, await answer.text()]).toEqual([
        503,
        '{"status":"unavailable","reason":"clock"}',
      ]);
    },
    { timeout: 20_000, interval: 20 },
  );
});
