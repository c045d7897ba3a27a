import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/authz/database/database.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { lockDirectory } from '../../src/shared/process/directory-lock.ts';
import { DatabaseTime } from '../../src/shared/time/database-clock.ts';
import { startInstance } from '../support/instance.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { call, spawnService, startService } from '../support/service.ts';
import { byLength, inLong } from '../support/test-length.ts';
import { startMember } from './members.ts';
import { attempt, type Batch, contradictions, ok, until, writeOf } from './support.ts';

/** Exit code and output of a start that fails. */
async function failedStart(
  dataDir: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: unknown; output: string }> {
  const child = spawnService(dataDir, env);
  const [output, [code]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ]);
  return { code, output };
}

// They wait for the ends of processes, at once.
describe.concurrent('at a start and at a stop', { timeout: 120_000 }, () => {
  test('an instance beside a release that must be alone refuses to start, and names it', async () => {
    const database = await createTestDatabase();
    const alone = await database.pool.connect();
    // 'gate', 'inst': what such a release holds.
    await alone.query('select pg_advisory_lock($1, $2)', [0x67617465, 0x696e7374]);
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-beside-'));
    const refusal = /another process uses this database .*server process \d+/;
    try {
      await expect(startInstance(database)).rejects.toThrow(refusal);
      if (byLength(true, false)) return;
      const env = { DATABASE_URL: urlOf(database.target) };
      const { code, output } = await failedStart(dataDir, env);
      expect(code).toBe(1);
      expect(output).toMatch(refusal);
      expect(output).not.toContain('"ready"');
    } finally {
      alone.release(true);
      rmSync(dataDir, { recursive: true, force: true });
      await database.drop();
    }
  });

  test('a data directory in use is refused', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-in-use-'));
    // As a service that uses it does.
    const lock = lockDirectory(join(dataDir, 'postgres.lock'), dataDir);
    try {
      if (byLength(true, false)) {
        const config = loadConfig({ GATEWAY_DATA_DIR: dataDir });
        const opening = openDatabase(config, () => undefined, new DatabaseTime());
        const refusal = new RegExp(`is in use by another process.*\\b${process.pid}\\b`);
        await expect(opening).rejects.toThrow(refusal);
        return;
      }
      const { code, output } = await failedStart(dataDir, {});
      expect(code).toBe(1);
      expect(output).toContain('is in use by another process');
      expect(output).toContain(String(process.pid));
    } finally {
      lock.release();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  inLong(test)(
    'a data directory of a service is refused to another one, and the first goes on',
    async () => {
      const first = await startService();
      try {
        const { code, output } = await failedStart(first.dataDir, {});
        expect(code).toBe(1);
        expect(output).toContain('is in use by another process');
        expect(output).toContain(String(first.pid));
        ok(await attempt(first, 'AuthzService/ReadRelationTuples', {}));
      } finally {
        expect(await first.stop()).toBe(0);
      }
    },
  );

  test('a stop fails readiness first, answers what is in flight, and ends with 0', async () => {
    const database = await createTestDatabase();
    const url = urlOf(database.target);
    const env = {
      DATABASE_URL: url,
      GATEWAY_DRAIN_MS: byLength('3000', '5000'),
      GATEWAY_WORKERS: '1',
    };
    const service = await startService({ env });
    const batches: Batch[] = [];
    const writeOne = async (name: string, size: number): Promise<void> => {
      const batch: Batch = { tenantId: 't', objectId: name, size, state: 'present', token: '' };
      // Not `attempt`: a connection that is lost is to be seen here.
      const body = ok(
        await call(service, 'AuthzService/WriteRelationTuples', writeOf(batch, 'OP_INSERT')),
      );
      batch.token = String(body['consistency_token']);
      batches.push(batch);
    };
    let isDraining = false;
    const caller = async (name: string): Promise<void> => {
      // As a balancer would: nothing new once readiness has failed, but for those that hear late.
      for (let number = 0, late = 0; late < 3; number++) {
        if (isDraining) late++;
        await writeOne(`${name}-${number}`, 1 + (number % 8));
      }
    };
    try {
      const callers = Array.from({ length: byLength(4, 10) }, (_, index) => caller(`c${index}`));
      await until(() => batches.length > byLength(30, 100));
      process.kill(service.pid, 'SIGINT');
      // npm's copy of a Ctrl-C that the terminal has sent to everybody.
      process.kill(service.pid, 'SIGTERM');
      await until(async () => (await fetch(`${service.metricsUrl}/readyz`)).status === 503);
      isDraining = true;
      const large = Array.from({ length: byLength(3, 8) }, (_, index) =>
        writeOne(`large-${index}`, 1_000),
      );
      await Promise.all([...callers, ...large]);
      expect(await service.exited).toBe(0);
      const second = await startMember(database, {});
      expect(await contradictions(second, ['t'], batches)).toEqual([]);
      expect(await second.stop()).toBe(0);
    } finally {
      await service.stop();
      await database.drop();
    }
  });

  test('a stop while an instance warms up does not wait for that, and ends with 0', async () => {
    const database = await createTestDatabase();
    const DATABASE_URL = urlOf(database.target);
    const holder = await database.pool.connect();
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-warming-'));
    try {
      // What was asked last cannot be read until this ends.
      await holder.query('begin; lock table recent_shards in access exclusive mode');
      const child = spawnService(dataDir, {
        DATABASE_URL,
        GATEWAY_WORKERS: '1',
        GATEWAY_WARM_UP_SECONDS: '3600',
      });
      const output = text(child.stderr as NodeJS.ReadableStream);
      await until(async () => {
        const { rows } = await database.pool.query(
          `select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%recent_shards%'`,
        );
        return rows.length > 0;
      });
      child.kill('SIGTERM');
      const [code] = await once(child, 'exit');
      expect(code).toBe(0);
      expect(await output).not.toContain('"ready"');
    } finally {
      holder.release(true);
      rmSync(dataDir, { recursive: true, force: true });
      await database.drop();
    }
  });
});
