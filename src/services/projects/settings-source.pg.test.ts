import type { Pool } from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { stagedModels } from '../../../test/support/staged-models.ts';
import { NO_INSTANCES } from '../../../test/support/write-admission.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { createPool } from '../../store/postgres/pool.ts';
import { ProjectService } from './project-service.ts';
import { SettingsSource } from './settings-source.ts';

const MODEL = '{"namespaces":{"doc":{"relations":{"viewer":{}}}}}';

/** Projects, and their settings, which are believed for a second, over a clock and a membership in the test's hand. */
function projectsOver(
  pool: Pool,
  clock: Clock,
  isAlone: () => boolean,
  distribute: () => Promise<void> = () => Promise.resolve(),
): { readonly projects: ProjectService; readonly settings: SettingsSource } {
  const settings = new SettingsSource({
    pool,
    admission: {
      get isOvertaken() {
        return isAlone();
      },
    },
    clock,
    region: '',
    defaultProjectId: 'default',
    readBudgetDefault: 10_000,
    ttlMs: 1_000,
    cacheMax: 10,
    distributor: { setModel: distribute },
    onRegionRefused: () => undefined,
    onUnsoundModel: () => undefined,
    onOld: () => undefined,
    isAlone,
  });
  const projects = new ProjectService({
    pool,
    admission: NO_INSTANCES,
    clock,
    defaultProjectId: 'default',
    readBudgetMin: 100,
    listMax: 10,
    models: stagedModels(pool, settings, () => projects),
    settingsSource: settings,
  });
  return { projects, settings };
}

/** Settings of one project of a database of their own. */
async function settingsApart() {
  const apart = await createTestDatabase();
  onTestFinished(() => apart.drop());
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const state = { isAlone: false };
  const { projects, settings } = projectsOver(apart.pool, clock, () => state.isAlone);
  await projects.provisionDefault();
  /** Writes like another instance. */
  const elsewhere = async (version: number): Promise<void> => {
    await apart.pool.query('update project set version = $1', [version]);
  };
  return { settings, clock, state, elsewhere, pool: apart.pool };
}

test('settings that somebody saw unchanged are believed from then on, others are not confirmed (P4)', async () => {
  const { settings, clock, elsewhere, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query');
  clock.now = 900;
  expect(settings.confirm('default', 1, 800)).toMatchObject({ version: 1 });
  clock.now = 1_500;
  expect(settings.peek('')).toMatchObject({ version: 1 });
  expect(query).not.toHaveBeenCalled();
  clock.now = 1_800;
  expect(settings.peek('')).toBeUndefined();
  expect(settings.known('')).toMatchObject({ version: 1 });
  expect(settings.confirm('default', 2, 1_800)).toBeUndefined();
  expect(settings.confirm('default', null, 1_800)).toBeUndefined();
  await elsewhere(2);
  expect(await settings.atLeast('', 2)).toMatchObject({ version: 2 });
  // Asked for before the newer ones were known: they are in force as well.
  expect(settings.confirm('default', 1, 1_700)).toMatchObject({ version: 2 });
  // Asked for afterwards: the newer ones were lost.
  expect(settings.confirm('default', 1, 1_900)).toBeUndefined();
});

test('settings in use are asked for ahead, once, so that no read waits for the database (P4)', async () => {
  const { settings, clock, elsewhere, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query');
  await elsewhere(2);
  query.mockClear();
  clock.now = 749;
  expect([settings.peek('')?.version, query.mock.calls.length]).toEqual([1, 0]);
  clock.now = 750;
  expect([1, 2, 3].map(() => settings.peek('')?.version)).toEqual([1, 1, 1]);
  // What is under way already.
  await settings.load('');
  expect(query).toHaveBeenCalledTimes(1);
  clock.now = 1_499;
  expect([settings.peek('')?.version, query.mock.calls.length]).toEqual([2, 1]);
  // Of no use since, they are requested when they are needed.
  clock.now = 1_750;
  expect([settings.peek(''), query.mock.calls.length]).toEqual([undefined, 1]);
});

test('settings that could not be asked for ahead are believed for the rest of their time alone', async () => {
  const { settings, clock, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query').mockRejectedValue(new Error('away'));
  clock.now = 800;
  expect(settings.peek('')).toMatchObject({ version: 1 });
  await expect(settings.load('')).rejects.toThrow('away');
  clock.now = 999;
  expect(settings.peek('')).toMatchObject({ version: 1 });
  expect(query).toHaveBeenCalledTimes(1);
  clock.now = 1_000;
  expect(settings.peek('')).toBeUndefined();
});

test('once a newer version is known to exist the older settings are not given out any more (P3)', async () => {
  const { settings, clock, elsewhere } = await settingsApart();
  settings.mustBeAtLeast('', 1);
  expect(settings.peek('')).toMatchObject({ version: 1 });
  settings.mustBeAtLeast('', 3);
  expect([settings.peek(''), settings.known('')]).toEqual([undefined, undefined]);
  await elsewhere(3);
  clock.now = 1;
  expect(await settings.settings('')).toMatchObject({ version: 3 });
  expect(settings.peek('')).toMatchObject({ version: 3 });
});

test('a version that was lost is replaced by what the database has (P2)', async () => {
  const { settings, clock, elsewhere } = await settingsApart();
  await elsewhere(7);
  clock.now = 10;
  expect(await settings.load('')).toMatchObject({ version: 7 });
  settings.mustBeAtLeast('', 8);
  await elsewhere(4);
  clock.now = 20;
  expect(await settings.atLeast('', 8)).toMatchObject({ version: 4 });
  expect(settings.peek('')).toMatchObject({ version: 4 });
});

test('what was known is asked for again when all is forgotten, also what is being asked for', async () => {
  const { settings, clock, elsewhere } = await settingsApart();
  const before = settings.load('');
  clock.now = 10;
  settings.forgetAll();
  await before;
  expect([settings.peek(''), settings.known('')]).toEqual([undefined, undefined]);
  await elsewhere(2);
  clock.now = 20;
  expect(await settings.settings('')).toMatchObject({ version: 2 });
});

test('alone, what others may see of a change under way is not withheld from reads here', async () => {
  const apart = await createTestDatabase();
  onTestFinished(() => apart.drop());
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const gate = { isShut: false, waiting: 0, opened: Promise.withResolvers<void>() };
  const { projects, settings } = projectsOver(
    apart.pool,
    clock,
    () => true,
    async () => {
      gate.waiting += 1;
      if (gate.isShut) await gate.opened.promise;
    },
  );
  await projects.provisionDefault();
  expect(settings.peek('')).toMatchObject({ version: 1 });
  gate.isShut = true;
  gate.waiting = 0;
  const change = {
    id: 'default',
    name: '',
    status: 0,
    modelJson: MODEL,
    dataRegion: '',
    clearDataRegion: false,
    maxCheckReads: 0,
    clearMaxCheckReads: false,
  };
  const updated = projects.update(change, 'r');
  // It is committed: an instance that asks the database decides by it already.
  await expect.poll(() => gate.waiting).toBe(1);
  expect(settings.peek('')).toBeUndefined();
  let isAnswered = false;
  const asked = settings.settings('').finally(() => (isAnswered = true));
  await expect.poll(() => gate.waiting).toBe(2);
  expect(isAnswered).toBe(false);
  gate.opened.resolve();
  expect(await asked).toMatchObject({ version: 2, modelJson: MODEL });
  await updated;
  expect(settings.peek('')).toMatchObject({ version: 2 });

  // Refused: nothing can have changed.
  await expect(projects.update({ ...change, id: 'nope' }, 'r')).rejects.toMatchObject({
    reason: 'PROJECT_UNKNOWN',
  });
  expect(settings.peek('nope')).toBeUndefined();
  await expect(projects.update({ ...change, modelJson: '{' }, 'r')).rejects.toMatchObject({
    reason: 'MODEL_INVALID',
  });
  expect(settings.peek('')).toMatchObject({ version: 2 });

  // The answer to the commit was lost: asked for again and again while it may yet come.
  const connect = apart.pool.connect.bind(apart.pool);
  Object.assign(apart.pool, {
    connect: async () => {
      const client = await connect();
      const query = client.query.bind(client);
      return Object.assign(client, {
        query: async (...statement: unknown[]) => {
          const result: unknown = await Reflect.apply(query, client, statement);
          const text = (statement[0] as { readonly text?: string }).text ?? statement[0];
          if (text === 'commit') throw Object.assign(new Error('cut'), { code: 'ECONNRESET' });
          return result;
        },
      });
    },
  });
  await expect(projects.update({ ...change, maxCheckReads: 500 }, 'r')).rejects.toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  });
  Object.assign(apart.pool, { connect });
  expect(settings.peek('')).toBeUndefined();
  expect(await settings.settings('')).toMatchObject({ readBudget: 500 });
  expect(settings.peek('')).toBeUndefined();
  clock.now = 1_000;
  expect(await settings.settings('')).toMatchObject({ readBudget: 500 });
  expect(settings.peek('')).toMatchObject({ readBudget: 500 });
});

test('beside other instances settings are not believed beyond their time because the database is away', async () => {
  const { settings, clock, state, pool } = await settingsApart();
  const away = createPool(
    { host: '127.0.0.1', port: 1, user: '', password: '', database: '' },
    { max: 1, applicationName: 'away' },
  );
  const original = { query: pool.query.bind(pool) };
  Object.assign(pool, { query: away.query.bind(away) });
  clock.now = 900;
  expect(await settings.settings('')).toMatchObject({ version: 1 });
  clock.now = 1_100;
  await expect(settings.settings('')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  state.isAlone = true;
  expect(await settings.settings('')).toMatchObject({ version: 1 });
  // Since it was away just now nobody waits, but beside others nobody is given what is over, either.
  state.isAlone = false;
  clock.now = 5_000;
  await expect(settings.settings('')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  Object.assign(pool, original);
  await away.end();
});

test('while the database is away what was known last stays in force (P4)', async () => {
  const own = await createTestDatabase();
  const pool = createPool(own.target, { max: 1, applicationName: 'away' });
  pool.on('error', () => undefined);
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const { projects, settings } = projectsOver(pool, clock, () => true);
  await projects.provisionDefault();
  const known = await settings.settings('');
  expect(settings.modelOf('default', known.modelVersion)).toBe('');
  expect(settings.modelOf('default', known.modelVersion + 1)).toBeUndefined();
  await pool.end();
  await own.drop();
  const away = createPool(
    { ...own.target, host: '127.0.0.1', port: 1 },
    { max: 1, applicationName: 'away' },
  );
  Object.assign(pool, { query: away.query.bind(away), connect: away.connect.bind(away) });
  clock.now = 5_000;
  expect(settings.peek('')).toBeUndefined();
  expect(await settings.settings('')).toEqual(known);
  expect(settings.peek('')).toEqual(known);
  await expect(settings.settings('other')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  await away.end();
});
