import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import { PROJECT, PROJECT_ACTIVE, PROJECT_SUSPENDED, type ProjectEvent } from '../rules/project.ts';
import type { CreateProjectRequest, UpdateProjectRequest } from './project-input.ts';

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
  expect(services.settingsSource.peek('')).toMatchObject({
    projectId: 'default',
    readBudget: 10_000,
  });
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
  expect(services.settingsSource.peek('up')).toMatchObject({ version: 2, readBudget: 100 });
  await update({ id: 'up', maxCheckReads: 500, status: 2 });
  expect(services.settingsSource.peek('up')).toMatchObject({ readBudget: 500, suspended: true });
  await update({ id: 'up', clearMaxCheckReads: true, clearDataRegion: true, status: 1 });
  expect(services.settingsSource.peek('up')).toMatchObject({
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
  await services.settingsSource.load('models');
  expect(services.models).toHaveLength(distributed);
  expect(services.settingsSource.peek('models')).toMatchObject({
    version: 2,
    modelVersion: 1,
    readBudget: 200,
  });
  const next = MODEL.replace('{"viewer":', '{"editor":{},"viewer":');
  await update({ id: 'models', modelJson: next });
  expect(services.models.at(-1)).toEqual(['models', 3, next]);
  expect(services.settingsSource.peek('models')).toMatchObject({ version: 3, modelVersion: 3 });
});

test('a project of another region is refused and counted', async () => {
  await create({ id: 'us', dataRegion: 'us' });
  const settings = await services.settingsSource.load('us');
  const before = services.regionRefusals.count;
  for (const mode of ['data', 'subject-rights'] as const) {
    expect(() => services.settingsSource.guard(settings, mode)).toThrow(
      expect.objectContaining({ reason: 'REGION_REFUSED' }),
    );
  }
  expect(services.regionRefusals.count).toBe(before + 2);
});

test('an unknown project is asked for each time, so that a new one is seen at once', async () => {
  await expect(services.settingsSource.load('later')).rejects.toMatchObject({
    reason: 'PROJECT_UNKNOWN',
  });
  await expect(services.projects.get('later')).rejects.toMatchObject({ reason: 'PROJECT_UNKNOWN' });
  await create({ id: 'later' });
  expect(services.settingsSource.peek('later')).toMatchObject({ projectId: 'later' });
  expect(await services.projects.list()).toEqual(
    expect.arrayContaining([expect.objectContaining({ id: 'later' })]),
  );
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
