import type { Pool } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../test/support/services.ts';
import { stagedModels } from '../../test/support/staged-models.ts';
import { NO_INSTANCES } from '../../test/support/write-admission.ts';
import type { Clock } from '../shared/clock.ts';
import { createPool } from '../store/pool.ts';
import type { CreateProjectRequest, UpdateProjectRequest } from './project-input.ts';
import { ProjectService } from './project-service.ts';
import { PROJECT, PROJECT_ACTIVE, PROJECT_SUSPENDED, type ProjectEvent } from './rules/project.ts';

let database: TestDatabase;
let services: TestServices;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
});
afterAll(async () => {
  await services.close();
  await database.drop();
});

const MODEL = '{"namespaces":{"doc":{"relations":{"viewer":{}}}}}';
const TWICE = '{"namespaces":{"doc":{"relations":{"viewer":{},"viewer":{}}}}}';
function create(fields: Partial<CreateProjectRequest> & { readonly id: string }): Promise<unknown> {
  const empty = { name: 'n', modelJson: '', dataRegion: '', maxCheckReads: 0 };
  return services.projects.create({ ...empty, ...fields }, 'r');
}
function update(fields: Partial<UpdateProjectRequest> & { readonly id: string }): Promise<unknown> {
  const empty = {
    name: '',
    status: 0,
    modelJson: '',
    dataRegion: '',
    clearDataRegion: false,
    maxCheckReads: 0,
    clearMaxCheckReads: false,
  };
  return services.projects.update({ ...empty, ...fields }, 'r');
}

test.each<[Partial<CreateProjectRequest> & { id: string }, string, string | undefined]>([
  [{ id: '' }, 'FIELD_REQUIRED', 'id'],
  [{ id: 'A' }, 'FIELD_INVALID', 'id'],
  [{ id: 'x', name: '  ' }, 'FIELD_REQUIRED', 'name'],
  [{ id: 'x', name: 'x'.repeat(201) }, 'FIELD_INVALID', 'name'],
  [{ id: 'x', dataRegion: 'EU' }, 'FIELD_INVALID', 'data_region'],
  [{ id: 'x', maxCheckReads: 99 }, 'FIELD_INVALID', 'max_check_reads'],
  [{ id: 'x', maxCheckReads: -1 }, 'FIELD_INVALID', 'max_check_reads'],
  [{ id: 'x', modelJson: '{' }, 'MODEL_INVALID', undefined],
  [{ id: 'x', modelJson: TWICE }, 'MODEL_INVALID', undefined],
  [{ id: 'x', modelJson: '\u0000' }, 'FIELD_INVALID', 'model_json'],
  [{ id: 'default' }, 'PROJECT_EXISTS', undefined],
])('create refuses %j', async (fields, reason, field) => {
  await expect(create(fields)).rejects.toMatchObject({
    reason,
    ...(field === undefined ? {} : { metadata: { field } }),
  });
});

test('the default project is there, also under its empty name', async () => {
  expect(services.projects.peek('')).toMatchObject({ projectId: 'default', readBudget: 10_000 });
  await services.projects.provisionDefault();
  expect(await services.projects.get('default')).toMatchObject({ id: 'default', status: 1 });
});

test('an update leaves what is empty, and is in effect when it is acknowledged (P3)', async () => {
  await create({ id: 'up', name: ' Up ', modelJson: MODEL, maxCheckReads: 100, dataRegion: 'eu' });
  expect(await update({ id: 'up' })).toMatchObject({
    name: 'Up',
    status: 1,
    modelJson: MODEL,
    maxCheckReads: 100,
    dataRegion: 'eu',
    version: 2,
  });
  expect(services.models.at(-1)).toEqual(['up', 1, MODEL]);
  expect(services.projects.peek('up')).toMatchObject({ version: 2, readBudget: 100 });
  await update({ id: 'up', maxCheckReads: 500, status: 2 });
  expect(services.projects.peek('up')).toMatchObject({ readBudget: 500, suspended: true });
  await update({ id: 'up', clearMaxCheckReads: true, clearDataRegion: true, status: 1 });
  expect(services.projects.peek('up')).toMatchObject({
    readBudget: 10_000,
    dataRegion: '',
    suspended: false,
  });
  await expect(update({ id: 'up', clearDataRegion: true, dataRegion: 'eu' })).rejects.toMatchObject(
    { metadata: { field: 'clear_data_region' } },
  );
  await expect(
    update({ id: 'up', clearMaxCheckReads: true, maxCheckReads: 100 }),
  ).rejects.toMatchObject({ metadata: { field: 'clear_max_check_reads' } });
  await expect(update({ id: 'up', status: 7 })).rejects.toMatchObject({
    metadata: { field: 'status' },
  });
  await expect(update({ id: 'nope' })).rejects.toMatchObject({ reason: 'PROJECT_UNKNOWN' });
});

test('only a new model gets a new version: nothing is compiled again for a name (P1)', async () => {
  await create({ id: 'models', modelJson: MODEL });
  const distributed = services.models.length;
  await update({ id: 'models', name: 'other', maxCheckReads: 200 });
  await services.projects.load('models');
  expect(services.models).toHaveLength(distributed);
  expect(services.projects.peek('models')).toMatchObject({
    version: 2,
    modelVersion: 1,
    readBudget: 200,
  });
  const next = MODEL.replace('{"viewer":', '{"editor":{},"viewer":');
  await update({ id: 'models', modelJson: next });
  expect(services.models.at(-1)).toEqual(['models', 3, next]);
  expect(services.projects.peek('models')).toMatchObject({ version: 3, modelVersion: 3 });
});

test('a project of another region is refused and counted', async () => {
  await create({ id: 'us', dataRegion: 'us' });
  const settings = await services.projects.load('us');
  const before = services.regionRefusals.count;
  for (const mode of ['data', 'subject-rights'] as const) {
    expect(() => services.projects.guard(settings, mode)).toThrow(
      expect.objectContaining({ reason: 'REGION_REFUSED' }),
    );
  }
  expect(services.regionRefusals.count).toBe(before + 2);
});

test('an unknown project is asked for each time, so that a new one is seen at once', async () => {
  await expect(services.projects.load('later')).rejects.toMatchObject({
    reason: 'PROJECT_UNKNOWN',
  });
  await expect(services.projects.get('later')).rejects.toMatchObject({ reason: 'PROJECT_UNKNOWN' });
  await create({ id: 'later' });
  expect(services.projects.peek('later')).toMatchObject({ projectId: 'later' });
  expect(await services.projects.list()).toEqual(
    expect.arrayContaining([expect.objectContaining({ id: 'later' })]),
  );
});

/** Projects whose settings are believed for a second, over a clock and a membership in the test's hand. */
function projectsOver(
  pool: Pool,
  clock: Clock,
  isAlone: () => boolean,
  distribute: () => Promise<void> = () => Promise.resolve(),
): ProjectService {
  const models = stagedModels(pool, () => projects);
  const projects = new ProjectService({
    pool,
    admission: {
      ...NO_INSTANCES,
      get isOvertaken() {
        return isAlone();
      },
    },
    clock,
    region: '',
    defaultProjectId: 'default',
    readBudgetDefault: 10_000,
    readBudgetMin: 100,
    ttlMs: 1_000,
    cacheMax: 10,
    listMax: 10,
    distributor: { setModel: distribute },
    models,
    onRegionRefused: () => undefined,
    onUnsoundModel: () => undefined,
    onOld: () => undefined,
    isAlone,
  });
  return projects;
}

/** Settings of one project of a database of their own. */
async function settingsApart() {
  const apart = await createTestDatabase();
  onTestFinished(() => apart.drop());
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const state = { isAlone: false };
  const projects = projectsOver(apart.pool, clock, () => state.isAlone);
  await projects.provisionDefault();
  /** As another instance does. */
  const elsewhere = async (version: number): Promise<void> => {
    await apart.pool.query('update project set version = $1', [version]);
  };
  return { projects, clock, state, elsewhere, pool: apart.pool };
}

test('settings that somebody saw unchanged are believed from then on, others are not confirmed (P4)', async () => {
  const { projects, clock, elsewhere, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query');
  clock.now = 900;
  expect(projects.confirm('default', 1, 800)).toMatchObject({ version: 1 });
  clock.now = 1_500;
  expect(projects.peek('')).toMatchObject({ version: 1 });
  expect(query).not.toHaveBeenCalled();
  clock.now = 1_800;
  expect(projects.peek('')).toBeUndefined();
  expect(projects.known('')).toMatchObject({ version: 1 });
  expect(projects.confirm('default', 2, 1_800)).toBeUndefined();
  expect(projects.confirm('default', null, 1_800)).toBeUndefined();
  await elsewhere(2);
  expect(await projects.atLeast('', 2)).toMatchObject({ version: 2 });
  // Asked for before the newer ones were known: they are in force as well.
  expect(projects.confirm('default', 1, 1_700)).toMatchObject({ version: 2 });
  // Asked for afterwards: the newer ones were lost.
  expect(projects.confirm('default', 1, 1_900)).toBeUndefined();
});

test('settings in use are asked for ahead, once, so that no read waits for the database (P4)', async () => {
  const { projects, clock, elsewhere, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query');
  await elsewhere(2);
  query.mockClear();
  clock.now = 749;
  expect([projects.peek('')?.version, query.mock.calls.length]).toEqual([1, 0]);
  clock.now = 750;
  expect([1, 2, 3].map(() => projects.peek('')?.version)).toEqual([1, 1, 1]);
  // What is under way already.
  await projects.load('');
  expect(query).toHaveBeenCalledTimes(1);
  clock.now = 1_499;
  expect([projects.peek('')?.version, query.mock.calls.length]).toEqual([2, 1]);
  // Of no use since, they are asked for when they are needed.
  clock.now = 1_750;
  expect([projects.peek(''), query.mock.calls.length]).toEqual([undefined, 1]);
});

test('settings that could not be asked for ahead are believed for the rest of their time alone', async () => {
  const { projects, clock, pool } = await settingsApart();
  const query = vi.spyOn(pool, 'query').mockRejectedValue(new Error('away'));
  clock.now = 800;
  expect(projects.peek('')).toMatchObject({ version: 1 });
  await expect(projects.load('')).rejects.toThrow('away');
  clock.now = 999;
  expect(projects.peek('')).toMatchObject({ version: 1 });
  expect(query).toHaveBeenCalledTimes(1);
  clock.now = 1_000;
  expect(projects.peek('')).toBeUndefined();
});

test('once a newer version is known to exist the older settings are not given out any more (P3)', async () => {
  const { projects, clock, elsewhere } = await settingsApart();
  projects.mustBeAtLeast('', 1);
  expect(projects.peek('')).toMatchObject({ version: 1 });
  projects.mustBeAtLeast('', 3);
  expect([projects.peek(''), projects.known('')]).toEqual([undefined, undefined]);
  await elsewhere(3);
  clock.now = 1;
  expect(await projects.settings('')).toMatchObject({ version: 3 });
  expect(projects.peek('')).toMatchObject({ version: 3 });
});

test('a version that was lost is replaced by what the database has (P2)', async () => {
  const { projects, clock, elsewhere } = await settingsApart();
  await elsewhere(7);
  clock.now = 10;
  expect(await projects.load('')).toMatchObject({ version: 7 });
  projects.mustBeAtLeast('', 8);
  await elsewhere(4);
  clock.now = 20;
  expect(await projects.atLeast('', 8)).toMatchObject({ version: 4 });
  expect(projects.peek('')).toMatchObject({ version: 4 });
});

test('what was known is asked for again when all is forgotten, also what is being asked for', async () => {
  const { projects, clock, elsewhere } = await settingsApart();
  const before = projects.load('');
  clock.now = 10;
  projects.forgetAll();
  await before;
  expect([projects.peek(''), projects.known('')]).toEqual([undefined, undefined]);
  await elsewhere(2);
  clock.now = 20;
  expect(await projects.settings('')).toMatchObject({ version: 2 });
});

test('alone, what others may see of a change under way is not withheld from reads here', async () => {
  const apart = await createTestDatabase();
  onTestFinished(() => apart.drop());
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const gate = { isShut: false, waiting: 0, opened: Promise.withResolvers<void>() };
  const projects = projectsOver(
    apart.pool,
    clock,
    () => true,
    async () => {
      gate.waiting += 1;
      if (gate.isShut) await gate.opened.promise;
    },
  );
  await projects.provisionDefault();
  expect(projects.peek('')).toMatchObject({ version: 1 });
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
  expect(projects.peek('')).toBeUndefined();
  let isAnswered = false;
  const asked = projects.settings('').finally(() => (isAnswered = true));
  await expect.poll(() => gate.waiting).toBe(2);
  expect(isAnswered).toBe(false);
  gate.opened.resolve();
  expect(await asked).toMatchObject({ version: 2, modelJson: MODEL });
  await updated;
  expect(projects.peek('')).toMatchObject({ version: 2 });

  // Refused: nothing can have changed.
  await expect(projects.update({ ...change, id: 'nope' }, 'r')).rejects.toMatchObject({
    reason: 'PROJECT_UNKNOWN',
  });
  expect(projects.peek('nope')).toBeUndefined();
  await expect(projects.update({ ...change, modelJson: '{' }, 'r')).rejects.toMatchObject({
    reason: 'MODEL_INVALID',
  });
  expect(projects.peek('')).toMatchObject({ version: 2 });

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
  expect(projects.peek('')).toBeUndefined();
  expect(await projects.settings('')).toMatchObject({ readBudget: 500 });
  expect(projects.peek('')).toBeUndefined();
  clock.now = 1_000;
  expect(await projects.settings('')).toMatchObject({ readBudget: 500 });
  expect(projects.peek('')).toMatchObject({ readBudget: 500 });
});

test('beside other instances settings are not believed beyond their time because the database is away', async () => {
  const { projects, clock, state, pool } = await settingsApart();
  const away = createPool(
    { host: '127.0.0.1', port: 1, user: '', password: '', database: '' },
    { max: 1, applicationName: 'away' },
  );
  const original = { query: pool.query.bind(pool) };
  Object.assign(pool, { query: away.query.bind(away) });
  clock.now = 900;
  expect(await projects.settings('')).toMatchObject({ version: 1 });
  clock.now = 1_100;
  await expect(projects.settings('')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  state.isAlone = true;
  expect(await projects.settings('')).toMatchObject({ version: 1 });
  // Since it was away just now nobody waits, but beside others nobody is given what is over, either.
  state.isAlone = false;
  clock.now = 5_000;
  await expect(projects.settings('')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  Object.assign(pool, original);
  await away.end();
});

test('while the database is away what was known last stays in force (P4)', async () => {
  const own = await createTestDatabase();
  const pool = createPool(own.target, { max: 1, applicationName: 'away' });
  pool.on('error', () => undefined);
  const clock = { now: 0, nowMs: () => 0, monotonicMs: () => clock.now };
  const projects = projectsOver(pool, clock, () => true);
  await projects.provisionDefault();
  const settings = await projects.settings('');
  expect(projects.modelOf('default', settings.modelVersion)).toBe('');
  expect(projects.modelOf('default', settings.modelVersion + 1)).toBeUndefined();
  await pool.end();
  await own.drop();
  const away = createPool(
    { ...own.target, host: '127.0.0.1', port: 1 },
    { max: 1, applicationName: 'away' },
  );
  Object.assign(pool, { query: away.query.bind(away), connect: away.connect.bind(away) });
  clock.now = 5_000;
  expect(projects.peek('')).toBeUndefined();
  expect(await projects.settings('')).toEqual(settings);
  expect(projects.peek('')).toEqual(settings);
  await expect(projects.settings('other')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  await away.end();
});

test('J1: updates move the status as the table says', async () => {
  const id = 'moving';
  await create({ id });
  const requested: Readonly<Record<ProjectEvent, number>> = {
    keep: 0,
    activate: PROJECT_ACTIVE,
    suspend: PROJECT_SUSPENDED,
  };
  for (const from of [PROJECT_ACTIVE, PROJECT_SUSPENDED] as const) {
    for (const event of ['keep', 'activate', 'suspend'] as const) {
      await update({ id, status: from });
      await update({ id, status: requested[event] });
      expect([from, event, (await services.projects.get(id)).status]).toEqual([
        from,
        event,
        PROJECT[from][event],
      ]);
    }
  }
});
