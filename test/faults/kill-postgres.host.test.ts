import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import {
  attempt,
  type Batch,
  contradictions,
  ok,
  seededDice,
  until,
  writeBatches,
  writeOf,
} from './support.ts';

const TENANTS = ['t0', 't1'];

async function readyz(service: Service): Promise<string> {
  const response = await fetch(`${service.metricsUrl}/readyz`);
  return `${response.status} ${await response.text()}`;
}

/** Asks a shard that nobody writes to, until over: every answer must be right. */
async function readQuiet(service: Service, isOver: () => boolean): Promise<number> {
  let count = 0;
  while (!isOver()) {
    const question = { tenant_id: 'quiet', namespace: 'resource', object_id: 'kept' };
    const who = count % 2 === 0 ? 'u0' : 'nobody';
    const body = { ...question, relation: 'viewer', subject_user_id: who };
    const { allowed } = ok(await attempt(service, 'AuthzService/Check', body));
    if (allowed !== (who === 'u0')) throw new Error(`${who}: ${String(allowed)}`);
    count++;
    await sleep(1);
  }
  return count;
}

test('kill -9 of Postgres: writes fail as unavailable, loaded shards decide, all comes back', async () => {
  const dice = seededDice('kill of Postgres');
  const service = await startService();
  try {
    const kept: Batch = {
      tenantId: 'quiet',
      objectId: 'kept',
      size: 3,
      state: 'present',
      token: '',
    };
    ok(await attempt(service, 'AuthzService/WriteRelationTuples', writeOf(kept, 'OP_INSERT')));
    const batches: Batch[] = [];
    let isOver = false;
    const readers = [1, 2, 3].map(() => readQuiet(service, () => isOver));
    const writers = Array.from({ length: byLength(4, 8) }, (_, caller) =>
      writeBatches(service, `c${caller}`, TENANTS, dice, batches, () => isOver),
    );
    for (let round = 0; round < byLength(1, 2); round++) {
      const enough = batches.length + byLength(30, 50) + dice.below(byLength(30, 100));
      await until(() => batches.length >= enough);
      const pidFile = readFileSync(join(service.dataDir, 'postgres', 'postmaster.pid'), 'utf8');
      process.kill(Number(pidFile.split('\n')[0]), 'SIGKILL');
      await until(async () => (await readyz(service)).includes('"degraded":["postgres"]'));
      await until(async () => (await readyz(service)) === '200 {"status":"ready","degraded":[]}');
      const acknowledged = (): number => batches.filter((one) => one.state === 'present').length;
      const before = acknowledged();
      await until(() => acknowledged() > before + 20);
    }
    isOver = true;
    await Promise.all(writers);
    for (const count of await Promise.all(readers)) expect(count).toBeGreaterThan(0);
    expect(await contradictions(service, TENANTS, batches)).toEqual([]);
    expect(service.log.filter((line) => line.msg === 'call_failed')).toEqual([]);
  } finally {
    expect(await service.stop()).toBe(0);
  }
}, 120_000);
