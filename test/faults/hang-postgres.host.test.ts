import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { worksIn } from '../../src/store/embedded/embedded-postgres-process.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { call, type Service, startService } from '../support/service.ts';
import { byLength, inLong } from '../support/test-length.ts';
import { until } from './support.ts';

/* A server that hangs ends no connection and refuses none: only a time-out of our own tells. */

const TTL_SECONDS = byLength(1, 5);
const ENV = {
  // Settings of a project are asked for again while the server hangs.
  GATEWAY_PROJECT_TTL_SECONDS: String(TTL_SECONDS),
  GATEWAY_REQUEST_TIMEOUT_MS: '8000',
};
const QUESTION = { namespace: 'resource', object_id: 'plan', relation: 'viewer' };
const READY = '200 {"status":"ready","degraded":[]}';
const DOWN = '503 {"status":"unavailable","reason":"postgres"}';

async function readyz(service: Service): Promise<string> {
  const response = await fetch(`${service.metricsUrl}/readyz`);
  return `${response.status} ${await response.text()}`;
}

async function write(service: Service, userId: string) {
  const updates = [{ op: 'OP_INSERT', tuple: { ...QUESTION, subject: { user_id: userId } } }];
  return await call(service, 'AuthzService/WriteRelationTuples', { updates });
}

async function check(service: Service, userId: string, tenantId = '') {
  const body = { ...QUESTION, tenant_id: tenantId, subject_user_id: userId };
  return await call(service, 'AuthzService/Check', body);
}

/** Stops every process of the server; gives what lets them go on. */
function stopProcesses(dataDirectory: string): () => void {
  const pids = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && worksIn(pid, join(dataDirectory, 'postgres')) === true);
  expect(pids.length).toBeGreaterThan(3);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  const goOn = (): void => {
    for (const pid of pids.splice(0)) process.kill(pid, 'SIGCONT');
  };
  onTestFinished(goOn);
  return goOn;
}

describe.skipIf(process.platform !== 'linux')(
  'PostgreSQL hangs (SIGSTOP)',
  { timeout: 120_000 },
  () => {
    test('the embedded one: not ready, loaded shards decide, and all comes back', async () => {
      const service = await startService({ env: ENV });
      onTestFinished(async () => void (await service.stop()));
      expect((await write(service, 'anne')).status).toBe(200);
      expect((await check(service, 'anne')).body).toEqual({ allowed: true });
      expect(await readyz(service)).toBe(READY);
      const goOn = stopProcesses(service.dataDir);
      await until(async () => (await readyz(service)) === DOWN);

      // Longer than the settings of the project are believed.
      const asked: Promise<unknown>[] = [];
      for (let i = 0; i < 10 * TTL_SECONDS + 20; i++) {
        asked.push(check(service, i % 2 === 0 ? 'anne' : 'bob').then(({ body }) => body));
        await sleep(100);
      }
      const expected = asked.map((_, i) => ({ allowed: i % 2 === 0 }));
      expect(await Promise.all(asked)).toEqual(expected);
      const unknown = await check(service, 'anne', 'never-loaded');
      expect(unknown.status).toBeGreaterThanOrEqual(500);
      expect(await readyz(service)).toBe(DOWN);

      goOn();
      await until(async () => (await readyz(service)) === READY);
      // A connection that hung is found when it is used next, and costs that call a refusal.
      await until(async () => (await write(service, 'bob')).status === 200);
      expect((await check(service, 'bob')).body).toEqual({ allowed: true });
      await until(async () => (await check(service, 'anne', 'never-loaded')).status === 200);
      expect((await check(service, 'anne', 'never-loaded')).body).toEqual({ allowed: false });
    });

    // Of two instances, several-instances.host.test.ts shows it in short.
    inLong(test)(
      'one of DATABASE_URL: nothing is decided that another instance may have changed',
      async () => {
        const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-hang-'));
        const server = await startEmbeddedPostgres({ dataDirectory });
        onTestFinished(async () => {
          await server.stop();
          rmSync(dataDirectory, { recursive: true, force: true });
        });
        const { user, password, database, host } = server.target;
        const url = `postgres://${user}:${password}@/${database}?host=${host}`;
        const service = await startService({ env: { ...ENV, DATABASE_URL: url } });
        onTestFinished(async () => void (await service.stop()));
        expect((await write(service, 'anne')).status).toBe(200);
        expect((await check(service, 'anne')).body).toEqual({ allowed: true });
        const goOn = stopProcesses(dataDirectory);
        await until(async () => (await readyz(service)) === DOWN);
        expect(await check(service, 'anne')).toMatchObject({
          status: 503,
          body: { code: 'unavailable' },
        });
        goOn();
        await until(async () => (await readyz(service)) === READY);
        expect((await check(service, 'anne')).body).toEqual({ allowed: true });
        expect(service.log.filter((line) => line.msg === 'call_failed')).toEqual([]);
      },
    );
  },
);
