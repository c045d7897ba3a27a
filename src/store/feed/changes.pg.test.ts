import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { writeChange } from '../../../test/support/write-change.ts';
import { silentReport } from '../../shared/loop-report.ts';
import { SharedWork } from '../postgres/shared-work.ts';
import { mustReload, readChanges } from './changes.ts';
import { ChangeRetention, pruneChanges } from './retention.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

const shard = { projectId: 'p', tenantId: 't' };
const neighbour = { projectId: 'p', tenantId: 'u' };

describe('readChanges', () => {
  it('answers an empty head for a shard that was never written', async () => {
    const page = await readChanges(database.pool, { projectId: 'p', tenantId: 'none' }, 0);
    expect(page).toMatchObject({
      headRevision: { revision: 0, forkId: '0', retainedFrom: 1 },
      forkIdAtStart: '0',
      changes: [],
    });
    expect(page.headRevision.epoch).toBeGreaterThan(0);
    expect(mustReload({ epoch: page.headRevision.epoch, revision: 0, forkId: '0' }, page)).toBe(
      false,
    );
  });

  it('pages from any watermark to the head', async () => {
    for (let i = 1; i <= 10; i++) {
      await writeChange(database.pool, shard, `[${i}]`);
      await writeChange(database.pool, neighbour, `["other",${i}]`);
    }
    const seen: string[] = [];
    let watermark = {
      epoch: (await readChanges(database.pool, shard, 0)).headRevision.epoch,
      revision: 0,
      forkId: '0',
    };
    for (;;) {
      const page = await readChanges(database.pool, shard, watermark.revision, 3);
      expect(page.changes.length).toBeLessThanOrEqual(3);
      expect(mustReload(watermark, page)).toBe(false);
      if (page.changes.length === 0) {
        break;
      }
      for (const { revision, forkId, changes } of page.changes) {
        seen.push(changes);
        watermark = { ...watermark, revision, forkId };
      }
    }
    const { headRevision } = await readChanges(database.pool, shard, watermark.revision);
    expect(headRevision).toMatchObject(watermark);
    expect(seen).toEqual(Array.from({ length: 10 }, (_, i) => `[${i + 1}]`));
  });

  it('ends a page by bytes, but never before its first change', async () => {
    const big = { projectId: 'p', tenantId: 'big' };
    const text = `["${'x'.repeat(3 * 1024 * 1024)}"]`;
    for (let i = 0; i < 4; i++) await writeChange(database.pool, big, text);
    expect((await readChanges(database.pool, big, 0)).changes.map((c) => c.revision)).toEqual([
      1, 2,
    ]);
    expect((await readChanges(database.pool, big, 2)).changes.map((c) => c.revision)).toEqual([
      3, 4,
    ]);
  });

  it('says reload for another epoch, a head below, or another stamp', async () => {
    const page = await readChanges(database.pool, shard, 5);
    const good = { epoch: page.headRevision.epoch, revision: 5, forkId: page.forkIdAtStart ?? '' };
    expect(mustReload(good, page)).toBe(false);
    expect(mustReload({ ...good, epoch: good.epoch + 1 }, page)).toBe(true);
    expect(mustReload({ ...good, forkId: '1' }, page)).toBe(true);
    const ahead = await readChanges(database.pool, shard, 11);
    expect(ahead.changes).toEqual([]);
    expect(mustReload({ ...good, revision: 11 }, ahead)).toBe(true);
  });

  it('stops at a gap instead of skipping it', async () => {
    const torn = { projectId: 'p', tenantId: 'torn' };
    for (let i = 0; i < 3; i++) await writeChange(database.pool, torn);
    await database.pool.query(`delete from tuple_change where tenant_id = 'torn' and seq = 2`);
    await expect(readChanges(database.pool, torn, 0)).rejects.toThrow('without a gap');
  });
});

describe('pruneChanges', () => {
  it('by count: raises the border with the delete, and sends readers behind it to reload', async () => {
    const before = await readChanges(database.pool, shard, 0);
    const rule = { ageMaxMs: 3_600_000, countMax: 4, ageMinMs: 0 };
    expect(await pruneChanges(database.pool, rule)).toBeGreaterThanOrEqual(12);
    const behind = await readChanges(database.pool, shard, 5);
    expect(behind.headRevision.retainedFrom).toBe(7);
    expect(behind.changes).toEqual([]);
    const forkIdOf = (revision: number): string => before.changes[revision - 1]?.forkId ?? '';
    const epoch = before.headRevision.epoch;
    expect(mustReload({ epoch, revision: 5, forkId: forkIdOf(5) }, behind)).toBe(true);
    // At the border the changes are there, but the fork id of the watermark is not: reload as well.
    const border = await readChanges(database.pool, shard, 6);
    expect(border.changes.map((change) => change.revision)).toEqual([7, 8, 9, 10]);
    expect(mustReload({ epoch, revision: 6, forkId: forkIdOf(6) }, border)).toBe(true);
    const inside = await readChanges(database.pool, shard, 7);
    expect(mustReload({ epoch, revision: 7, forkId: forkIdOf(7) }, inside)).toBe(false);
    expect(await pruneChanges(database.pool, rule)).toBe(0);
  });

  it('by age: leaves nothing old, keeps the head, and a reader at the head goes on', async () => {
    await database.pool.query(
      `update tuple_change set created_at = now() - interval '2 hours' where tenant_id = 'u'`,
    );
    await pruneChanges(database.pool, { ageMaxMs: 3_600_000, countMax: 1_000, ageMinMs: 60_000 });
    const page = await readChanges(database.pool, neighbour, 10);
    expect(page.headRevision).toMatchObject({ revision: 10, retainedFrom: 11 });
    expect(mustReload({ ...page.headRevision }, page)).toBe(false);
    await writeChange(database.pool, neighbour);
    const next = await readChanges(database.pool, neighbour, 10);
    expect(next.changes.map((change) => change.revision)).toEqual([11]);
  });

  it('keeps young rows whatever their number', async () => {
    const rule = { ageMaxMs: 3_600_000, countMax: 1, ageMinMs: 60_000 };
    expect(await pruneChanges(database.pool, rule)).toBe(0);
  });
});

describe('ChangeRetention', () => {
  it('prunes by itself until it is stopped', async () => {
    const kept = { projectId: 'p', tenantId: 'kept' };
    for (let i = 0; i < 5; i++) await writeChange(database.pool, kept);
    const rule = { ageMaxMs: 3_600_000, countMax: 2, ageMinMs: 0 };
    const retention = new ChangeRetention({
      pool: database.pool,
      shared: new SharedWork({ target: database.target }),
      rule,
      intervalMs: 5,
      report: silentReport,
    });
    retention.start();
    let retainedFrom = 1;
    while (retainedFrom !== 4) {
      await sleep(5);
      ({ retainedFrom } = (await readChanges(database.pool, kept, 5)).headRevision);
    }
    await retention.stop();
    await writeChange(database.pool, kept);
    await sleep(20);
    expect((await readChanges(database.pool, kept, 6)).headRevision.retainedFrom).toBe(4);
  });
});
