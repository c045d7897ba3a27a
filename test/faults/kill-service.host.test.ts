import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import {
  attempt,
  type Batch,
  contradictions,
  ok,
  seededDice,
  until,
  writeBatches,
} from './support.ts';

const TENANTS = ['t0', 't1', 't2'];
const CALLERS = byLength(4, 12);
const ROUNDS = byLength(1, 3);

test('kill -9 under concurrent writes loses nothing acknowledged and tears no batch', async () => {
  const dice = seededDice('kill of the service');
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const batches: Batch[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startService({ dataDir });
    try {
      // Also everything from before earlier kills, tokens included.
      expect(await contradictions(service, TENANTS, batches)).toEqual([]);
      let isOver = false;
      const writers = Array.from({ length: CALLERS }, (_, caller) =>
        writeBatches(service, `r${round}c${caller}`, TENANTS, dice, batches, () => isOver),
      );
      const enough = batches.length + byLength(50, 100) + dice.below(byLength(50, 200));
      await until(() => batches.length >= enough);
      await service.kill();
      isOver = true;
      await Promise.all(writers);
    } finally {
      await service.kill();
    }
  }
  const service = await startService({ dataDir });
  try {
    expect(await contradictions(service, TENANTS, batches)).toEqual([]);
    expect(batches.filter((batch) => batch.state === 'present').length).toBeGreaterThan(
      byLength(20, 100),
    );
    const listed = await attempt(service, 'AuthzService/ListObjects', {
      tenant_id: 't0',
      namespace: 'resource',
      relation: 'viewer',
      subject_user_id: 'u0',
    });
    const known = batches.filter((one) => one.tenantId === 't0' && one.state === 'present');
    const ids = ok(listed)['object_ids'] as readonly string[];
    expect(known.filter((one) => !ids.includes(one.objectId))).toEqual([]);
  } finally {
    expect(await service.stop()).toBe(0);
  }
}, 120_000);
