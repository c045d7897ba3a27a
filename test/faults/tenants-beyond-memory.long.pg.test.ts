import { existsSync, readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createMemoryGroup } from '../support/memory-group.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startService, type Service } from '../support/service.ts';

/** A fifth of them fit. */
const TENANTS = 40_000;
const TUPLES_EACH = 20;
const LIMIT_BYTES = 64 * 1024 * 1024;
/** Over the resident memory of the empty process, pages of files among it: what the kernel ends it at, where it watches, and what may be resident at the end. */
const GROWN_BYTES_MAX = LIMIT_BYTES * 1.25;
const CALLERS = 64;
const FILLED_AT_ONCE = 500;
const CHECK = '/workspace.v1.AuthzService/Check';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
}, 120_000);
afterAll(async () => await database.drop());

/** Tenants as writes would have left them, without the writes. */
async function fill(): Promise<void> {
  for (let from = 1; from <= TENANTS; from += FILLED_AT_ONCE) {
    const range = [from, from + FILLED_AT_ONCE - 1];
    await database.pool.query(
      `insert into relation_tuple (project_id, tenant_id, namespace, object_id, relation, subject_namespace, subject_id,
         subject_relation, seq)
       select 'default', 't' || t, 'document', 'd' || i % 4, 'viewer', '', 'u' || t || '-' || i, '', 1
       from generate_series($1::int, $2::int) t, generate_series(1, $3::int) i`,
      [...range, TUPLES_EACH],
    );
    await database.pool.query(
      `insert into shard (project_id, tenant_id, seq, retained_from)
       select 'default', 't' || t, 1, 2 from generate_series($1::int, $2::int) t`,
      range,
    );
  }
}

function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

/** A check in each tenant; what was wrong about them. */
async function askAll({ baseUrl, token }: Service): Promise<readonly string[]> {
  const pool = new Pool(baseUrl, { connections: CALLERS });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const failures: string[] = [];
  let next = 1;
  const caller = async (): Promise<void> => {
    for (let tenant = next++; tenant <= TENANTS; tenant = next++) {
      const body = JSON.stringify({
        tenant_id: `t${tenant}`,
        namespace: 'document',
        object_id: 'd3',
        relation: 'viewer',
        subject_user_id: `u${tenant}-7`,
      });
      const answer = await pool.request({ path: CHECK, method: 'POST', headers, body });
      const text = await answer.body.text();
      if (text !== '{"allowed":true}') failures.push(`${answer.statusCode} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  await pool.close();
  return failures;
}

async function figure(service: Service, name: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

test.skipIf(!existsSync('/proc/self/status'))(
  'an instance lives, and grows little beyond its limit, when more tenants come than fit',
  async () => {
    const group = createMemoryGroup('tenants');
    // Also when the service did not start.
    onTestFinished(() => group?.remove());
    await fill();
    const launcher = group && {
      command: [...group.enter, process.execPath, 'src/main.ts'] as const,
    };
    const service = await startService({
      env: {
        DATABASE_URL: urlOf(database.target),
        GATEWAY_WORKERS: '1',
        GATEWAY_INDEX_BYTES: String(LIMIT_BYTES),
        GATEWAY_WARM_UP_SECONDS: '0',
      },
      ...(launcher === null ? {} : { launcher }),
    });
    try {
      const empty = residentBytes(service.pid);
      // Where there are control groups the kernel watches as well, every moment.
      group?.limit(Math.floor(empty + GROWN_BYTES_MAX));
      expect(await askAll(service)).toEqual([]);
      await expect
        .poll(() => figure(service, 'gatehouse_shard_evictions_total'), { timeout: 10_000 })
        .toBeGreaterThan(TENANTS / 4);
      expect(await figure(service, 'gatehouse_index_bytes')).toBeLessThanOrEqual(LIMIT_BYTES);
      expect(residentBytes(service.pid) - empty).toBeLessThanOrEqual(GROWN_BYTES_MAX);
    } finally {
      await service.stop();
    }
  },
  300_000,
);
