import { describe, expect, test } from 'vitest';
import type { CommittedChange } from '../../model/packed-changes.ts';
import type { ReadJob } from '../jobs/job.ts';
import { HeldChanges } from '../shard/held-changes.ts';
import { ACTOR_TRANSITIONS, type ActorEvent, type ActorState } from '../shard/shard-actor-state.ts';
import { nextActorState } from '../shard/shard-actor-state.ts';
import { ShardJobs } from '../shard/shard-jobs.ts';
import { LoadSlots } from '../source/batched-loads.ts';
import { ModelRegistry } from './host-models.ts';

describe('the states of an actor', () => {
  const allowed: readonly (readonly [ActorState, ActorEvent, ActorState])[] = [
    ['unloaded', 'wanted', 'loading'],
    ['loading', 'wanted', 'loading'],
    ['loading', 'loaded', 'ready'],
    ['loading', 'loadFailed', 'unloaded'],
    ['ready', 'wanted', 'catchingUp'],
    ['ready', 'diverged', 'loading'],
    ['ready', 'damaged', 'unloaded'],
    ['ready', 'evicted', 'unloaded'],
    ['catchingUp', 'wanted', 'catchingUp'],
    ['catchingUp', 'caughtUp', 'ready'],
    ['catchingUp', 'catchUpFailed', 'ready'],
    ['catchingUp', 'diverged', 'loading'],
    ['catchingUp', 'damaged', 'unloaded'],
  ];

  test('these, and no others', () => {
    let others = 0;
    for (const state of Object.keys(ACTOR_TRANSITIONS) as ActorState[]) {
      for (const event of Object.keys(ACTOR_TRANSITIONS.ready) as ActorEvent[]) {
        const known = allowed.find(([from, on]) => from === state && on === event);
        if (known === undefined) {
          others++;
          expect(() => nextActorState(state, event)).toThrow(`${state} cannot be told '${event}'`);
        } else {
          expect(nextActorState(state, event)).toBe(known[2]);
        }
      }
    }
    expect(others).toBe(4 * 8 - allowed.length);
  });
});

describe('HeldChanges', () => {
  const change = (revision: number, bytes = 1): CommittedChange => ({
    projectId: 'p',
    tenantId: 't',
    epoch: 1,
    revision,
    forkId: '1',
    settingsVersion: 1,
    changes: 'x'.repeat(bytes),
  });

  test('gives back by seq, once', () => {
    const held = new HeldChanges();
    for (const revision of [3, 1, 2]) expect(held.tryAdd(change(revision))).toBe(true);
    expect(held.isEmpty).toBe(false);
    expect(held.drain().map(({ revision }) => revision)).toEqual([1, 2, 3]);
    expect(held.isEmpty).toBe(true);
    expect(held.drain()).toEqual([]);
  });

  test('holds 256 changes and 4 MiB, again and again', () => {
    const held = new HeldChanges();
    for (let round = 0; round < 2; round++) {
      for (let revision = 0; revision < 256; revision++)
        expect(held.tryAdd(change(revision))).toBe(true);
      expect(held.tryAdd(change(256))).toBe(false);
      expect(held.drain()).toHaveLength(256);
    }
    const half = 2 * 1024 * 1024;
    for (let round = 0; round < 2; round++) {
      expect([held.tryAdd(change(1, half)), held.tryAdd(change(2, half))]).toEqual([true, true]);
      expect(held.tryAdd(change(3, 1))).toBe(false);
      expect(held.drain().map(({ revision }) => revision)).toEqual([1, 2]);
    }
    expect(held.tryAdd(change(1, half * 2 + 1))).toBe(false);
    expect(held.isEmpty).toBe(true);
  });
});

describe('LoadSlots', () => {
  test('as many at once as there are places, the others in order, failures included', async () => {
    const places = new LoadSlots(2);
    const started: number[] = [];
    const ends: ((fail: boolean) => void)[] = [];
    const runs = [0, 1, 2, 3].map((n) =>
      places
        .run(() => {
          started.push(n);
          return new Promise<number>((resolve, reject) => {
            ends[n] = (fail) => (fail ? reject(new Error(`no ${n}`)) : resolve(n));
          });
        })
        .catch((error: Error) => error.message),
    );
    const settle = () => new Promise(setImmediate);
    await settle();
    expect(started).toEqual([0, 1]);
    ends[1]?.(true);
    await settle();
    expect(started).toEqual([0, 1, 2]);
    ends[0]?.(false);
    ends[2]?.(false);
    await settle();
    expect(started).toEqual([0, 1, 2, 3]);
    ends[3]?.(false);
    expect(await Promise.all(runs)).toEqual([0, 'no 1', 2, 3]);
    // Both slots are free again, and no more than those.
    const again = [4, 5, 6].map(() => places.run(() => new Promise(() => started.push(9))));
    await settle();
    expect(started.filter((n) => n === 9)).toHaveLength(2);
    expect(again).toHaveLength(3);
  });
});

describe('ModelRegistry', () => {
  const json = '{"namespaces":{"doc":{"relations":{"viewer":{}}}}}';
  test('keeps the models that were used last within its bytes, the longest document among them', () => {
    const models = new ModelRegistry(16 * 1024 * 1024);
    const named = (i: number): string => json.replace('viewer', `viewer${i}`).padEnd(32 * 1024);
    for (let i = 1; i <= 20; i++) models.set('p', -i, named(i));
    expect(models.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    expect(models.bytes).toBeGreaterThan(1024 * 1024);
    expect(models.get('p', -20)).toBeDefined();
    expect(models.get('p', -1)).toBeUndefined();
    const least = new ModelRegistry(0);
    least.set('p', 1, json.padEnd(64 * 1024));
    expect(least.get('p', 1)).toBeDefined();
  });

  test('models by project and version; the built-in one is shared', () => {
    const models = new ModelRegistry(0);
    models.set('p', 1, json);
    models.set('p', 2, '');
    models.set('q', 1, '');
    expect(models.get('p', 1)?.namespaces.has('doc')).toBe(true);
    expect(models.get('p', 2)?.namespaces.has('resource')).toBe(true);
    expect(models.get('q', 1)).toBe(models.get('p', 2));
    expect([models.get('p', 3), models.get('q', 2), models.get('r', 1)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(() => models.set('p', 3, '{')).toThrow('is not valid JSON');
    expect(models.get('p', 3)).toBeUndefined();
  });
});

describe('ShardJobs', () => {
  const job = (
    requestId: number,
    isLong = false,
  ): ReadJob & { failed: number; restarts: number } => ({
    requestId,
    scope: {
      projectId: 'p',
      tenantId: 't',
      modelVersion: 1,
      readBudget: 1,
      settingsVersion: 1,
      epoch: 1,
      forkId: '',
      isHeldOnly: false,
      expectedProjectId: '',
      expectedTenantId: '',
    },
    minRevision: 0,
    deadlineMs: Infinity,
    isDeadlineStated: false,
    waitUntilMs: requestId,
    isCancelled: false,
    isLong,
    isReadFirst: false,
    model: null,
    hasDropped: false,
    failed: 0,
    restarts: 0,
    read: () => true,
    drop: () => undefined,
    run: () => 'done',
    restart() {
      this.restarts++;
    },
    fail() {
      this.failed++;
    },
  });
  const ids = (jobs: readonly (ReadJob | null)[]): (number | undefined)[] =>
    jobs.map((one) => one?.requestId);
  const yes = (): boolean => true;
  const no = (): boolean => false;

  test('short ones in order of arrival', () => {
    const jobs = new ShardJobs();
    expect([jobs.hasShort, jobs.takeShort()]).toEqual([false, null]);
    for (let round = 0; round < 2; round++) {
      for (const id of [1, 2, 3]) jobs.admit(job(id));
      expect([jobs.hasShort, jobs.hasLong, jobs.count]).toEqual([true, false, 3]);
      expect(ids([jobs.takeShort(), jobs.takeShort()])).toEqual([1, 2]);
      jobs.admit(job(4));
      expect(jobs.count).toBe(2);
      expect(ids([jobs.takeShort(), jobs.takeShort(), jobs.takeShort()])).toEqual([
        3,
        4,
        undefined,
      ]);
      expect([jobs.hasShort, jobs.count]).toEqual([false, 0]);
    }
  });

  test('long ones: begun ones take turns with new ones, which begin only where they may', () => {
    const jobs = new ShardJobs();
    for (const id of [10, 11, 12]) jobs.admit(job(id, true));
    expect([jobs.hasLong, jobs.hasBegun, jobs.hasShort]).toEqual([true, false, false]);
    jobs.suspend(job(1));
    jobs.suspend(job(2));
    expect([jobs.hasBegun, jobs.count]).toEqual([true, 5]);
    const begun = new ShardJobs();
    begun.suspend(job(1));
    expect([begun.hasLong, begun.hasShort]).toEqual([true, false]);
    // A new one first in every other slice; begun ones otherwise only when no new one may begin.
    expect(jobs.takeLong(true, yes)?.requestId).toBe(10);
    expect(jobs.takeLong(true, yes)?.requestId).toBe(1);
    expect(jobs.takeLong(true, no)?.requestId).toBe(2);
    expect(jobs.takeLong(true, no)).toBeNull();
    expect(jobs.takeLong(false, yes)?.requestId).toBe(11);
    expect(jobs.takeLong(true, yes)?.requestId).toBe(12);
    expect(jobs.takeLong(true, yes)).toBeNull();
    expect([jobs.hasLong, jobs.count]).toEqual([false, 0]);
  });

  test('later ones of a slice leave whose turn it is at the next one', () => {
    const jobs = new ShardJobs();
    for (const id of [10, 11, 12]) jobs.admit(job(id, true));
    for (const id of [1, 2, 3]) jobs.suspend(job(id));
    expect(jobs.takeLong(true, yes)?.requestId).toBe(10);
    expect(jobs.takeLong(false, yes)?.requestId).toBe(11);
    expect(jobs.takeLong(true, yes)?.requestId).toBe(1);
    expect(jobs.takeLong(false, yes)?.requestId).toBe(12);
    expect(jobs.takeLong(false, yes)?.requestId).toBe(2);
    expect(jobs.takeLong(true, yes)?.requestId).toBe(3);
  });

  test('at most 8 long ones begin, and 16 are begun at all', () => {
    const jobs = new ShardJobs();
    jobs.admit(job(99, true));
    for (let id = 0; id < 7; id++) jobs.suspend(job(id));
    expect(jobs.takeLong(false, yes)?.requestId).toBe(99);
    jobs.suspend(job(7));
    jobs.admit(job(99, true));
    expect(jobs.takeLong(false, yes)?.requestId).toBe(0);
    jobs.suspend(job(0));
    for (let id = 8; id < 15; id++) jobs.suspend(job(id));
    expect(jobs.canAcquire).toBe(true);
    jobs.suspend(job(15));
    expect(jobs.canAcquire).toBe(false);
  });

  test('who waits is taken when ready, failed when told, forgotten when cancelled', () => {
    const jobs = new ShardJobs();
    expect(jobs.takeReady(yes)).toEqual([]);
    const all = [1, 2, 3, 4].map((id) => job(id));
    for (const one of all) jobs.wait(one);
    expect([jobs.hasWaiting, jobs.count]).toEqual([true, 4]);
    Object.assign(all[0] as ReadJob, { isCancelled: true });
    expect(ids(jobs.takeReady((one) => one.requestId === 3))).toEqual([3]);
    expect(jobs.count).toBe(2);
    const error = (): never => undefined as never;
    jobs.failWaiting(error, (one) => one.waitUntilMs <= 2);
    expect(all.map(({ failed }) => failed)).toEqual([0, 1, 0, 0]);
    jobs.failWaiting(error);
    expect(all.map(({ failed }) => failed)).toEqual([0, 1, 0, 1]);
    expect([jobs.hasWaiting, jobs.count]).toEqual([false, 0]);
  });

  test('all begin anew in order: begun, short, long, then those that waited', () => {
    const jobs = new ShardJobs();
    const begun = job(1);
    jobs.admit(job(20));
    jobs.admit(job(2));
    expect(jobs.takeShort()?.requestId).toBe(20);
    jobs.admit(job(3, true));
    jobs.wait(job(4));
    jobs.suspend(begun);
    jobs.waitAgain();
    expect([begun.restarts, jobs.hasBegun, jobs.hasShort, jobs.hasLong, jobs.count]).toEqual([
      1,
      false,
      false,
      false,
      4,
    ]);
    expect(ids(jobs.takeReady(yes))).toEqual([1, 2, 3, 4]);
    jobs.admit(job(5));
    expect(jobs.takeShort()?.requestId).toBe(5);
  });
});
