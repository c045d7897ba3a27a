import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { olderTransaction } from '../../../test/support/older-transaction.ts';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { RelationTuple, Subject } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { silentReport } from '../../shared/loop-report.ts';
import { SharedWork } from '../../store/postgres/shared-work.ts';
import { writeGroup } from '../../store/sql/writes/write-group.ts';
import type { WriteMeta } from '../ports.ts';
import { planGroup } from '../write-groups/write-group.ts';
import { ActivationJob } from './activation-job.ts';

let database: TestDatabase;
let services: TestServices;
/** Another instance, which is not notified of anything. */
let other: TestServices;
/** One that does not wait until a model is in force. */
let hurried: TestServices;
let made = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
  other = await createTestServices(database);
  hurried = await createTestServices(database, { activationWaitMs: 0 });
});
afterAll(async () => {
  await services.close();
  await other.close();
  await hurried.close();
  await database.drop();
});

const meta: WriteMeta = {
  rpc: 'WriteRelationTuples',
  actingUserId: null,
  requestId: 'r',
  deadlineMs: Infinity,
};
const author = { createdBy: 'ann', rpc: 'WriteModel', requestId: 'r' };

const user = (userId: string): Subject => ({ kind: 'user', userId });
const group: Subject = { kind: 'set', namespace: 'group', objectId: 'g', relation: '' };
const tuple = (text: string, subject: Subject): RelationTuple => {
  const [namespace = '', objectId = '', relation = ''] = text.split(/[:#]/);
  return { namespace, objectId, relation, subject };
};

function modelOf(relations: Readonly<Record<string, readonly string[]>>): string {
  const documents = Object.entries(relations).map(([name, subjects]) => [
    name,
    subjects.length === 0 ? {} : { subjects },
  ]);
  const doc = { relations: Object.fromEntries(documents) as unknown };
  return JSON.stringify({ namespaces: { doc } });
}
const TYPED = modelOf({ viewer: ['user', 'group#member'], banned: ['user'] });
const UNTYPED = modelOf({ viewer: [], banned: [] });

async function newProject(modelJson = ''): Promise<string> {
  const id = `p${++made}`;
  await services.projects.create(
    { id, name: id, modelJson, dataRegion: '', maxCheckReads: 0 },
    'r',
  );
  return id;
}

function update(id: string, modelJson: string, by = services): Promise<unknown> {
  const request = { id, name: '', status: 0, modelJson, dataRegion: '', maxCheckReads: 0 };
  return by.projects.update({ ...request, clearDataRegion: false, clearMaxCheckReads: false }, 'r');
}

function write(id: string, tuples: readonly RelationTuple[], by = services): Promise<unknown> {
  const updates = tuples.map((one) => ({ op: 'insert' as const, tuple: one }));
  return by.writer.write({ projectId: id, tenantId: '' }, updates, meta);
}

async function stored(id: string): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ text: string }>(
    `select namespace || ':' || object_id || '#' || relation as text from relation_tuple
     where project_id = $1 order by 1`,
    [id],
  );
  return rows.map(({ text }) => text);
}

async function put(id: string, modelJson: string, force = false, by = services) {
  const write_ = { modelJson, modelGate: '', author, comment: '', rolledBackTo: 0, force };
  const { value } = await by.projects.change(
    id,
    async (client, before) => {
      const done = await by.staged.put(client, before, write_);
      return [before, done];
    },
    () => undefined,
  );
  await by.settingsSource.load(id);
  return value;
}

const admitted = expect.objectContaining({ reason: 'TUPLE_NOT_ADMITTED' }) as unknown;

describe('a typed model', () => {
  test('comes into force over tuples that fit, and refuses others from then on (A2)', async () => {
    const id = await newProject(UNTYPED);
    await write(id, [tuple('doc:a#viewer', user('u'))]);
    await update(id, TYPED);
    expect(await services.staged.activation(id)).toMatchObject({
      version: 2,
      state: 'active',
      tuplesScanned: 1,
    });
    await expect(
      write(id, [tuple('doc:a#viewer', user('v')), tuple('doc:a#baned', user('u'))]),
    ).rejects.toMatchObject({
      reason: 'TUPLE_NOT_ADMITTED',
      message:
        'updates[1].tuple.relation: the model declares no relation "baned" on doc; did you mean "banned"?',
      metadata: { field: 'updates[1].tuple.relation' },
    });
    await expect(write(id, [tuple('doc:a#viewer', group)])).rejects.toEqual(admitted);
    await write(id, [tuple('doc:b#viewer', user('v')), tuple('other:x#y', group)]);
    expect(await stored(id)).toEqual(['doc:a#viewer', 'doc:b#viewer', 'other:x#y']);
  });

  test('is refused with a count and three examples where stored tuples do not fit; the one before stays', async () => {
    const id = await newProject(UNTYPED);
    const misfits = Array.from({ length: 25 }, (_, i) => tuple(`doc:${i}#viewer`, group));
    await write(id, [...misfits, tuple('doc:ok#viewer', user('u'))]);
    await expect(update(id, TYPED)).rejects.toMatchObject({
      reason: 'MODEL_TUPLES_REFUSED',
      message: expect.stringMatching(
        /^model_json: 25 of 26 stored tuples do not fit; doc:0#viewer of tenant "": subject: doc#viewer admits user, group#member, not group; /,
      ) as unknown,
    });
    const activation = await services.staged.activation(id);
    expect(activation).toMatchObject({
      version: 2,
      state: 'refused',
      tuplesScanned: 26,
      tuplesRefused: 25,
    });
    expect(activation.examples).toHaveLength(3);
    expect(activation.examples[0]).toEqual({
      tenantId: '',
      columns: ['doc', '0', 'viewer', 'group', 'g', '', null, null, null],
      problem: 'subject: doc#viewer admits user, group#member, not group',
    });
    expect((await services.projects.get(id)).modelJson).toBe(UNTYPED);
    await write(id, [tuple('doc:again#viewer', group)]);
    await write(id, [tuple('doc:again#viewer', group)], other);
  });

  test('is in force at once in a new project', async () => {
    const id = await newProject(TYPED);
    expect(await services.staged.activation(id)).toMatchObject({ version: 1, state: 'active' });
    await expect(write(id, [tuple('doc:a#viewer', group)])).rejects.toEqual(admitted);
    await expect(write(id, [tuple('doc:a#viewer', group)], other)).rejects.toEqual(admitted);
  });

  test('can be left: then everything may be written again', async () => {
    const id = await newProject(TYPED);
    await update(id, '{"namespaces":{}}');
    await write(id, [tuple('doc:a#viewer', group)]);
    await write(id, [tuple('doc:b#viewer', group)], other);
    expect(await stored(id)).toHaveLength(2);
  });

  test('lets workspaces, groups and seats go on, and users be removed', async () => {
    const id = await newProject(TYPED);
    const call = { projectId: id, tenantId: '', actingUserId: 'ann', meta };
    const made_ = await services.groups.create(
      { ...call, displayName: 'G', slug: '', workspaceId: '' },
      meta,
    );
    const key = { ...call, groupId: made_.id };
    await services.groupMembers.add(
      { ...key, member: { member: { case: 'userId', value: 'bob' } } },
      meta,
    );
    expect(await stored(id)).toEqual([`group:${made_.id}#member`]);
    await write(id, [tuple('doc:a#viewer', user('bob'))]);
    expect(await services.tuples.deprovisionUser({ projectId: id, userId: 'bob', meta })).toBe(2);
  });

  test('takes deletes of what does not fit', async () => {
    const id = await newProject(UNTYPED);
    await write(id, [tuple('doc:a#viewer', group)]);
    await put(id, TYPED, true);
    expect(await services.staged.settled(id, 2, Infinity)).toMatchObject({
      state: 'active',
      tuplesRefused: 1,
    });
    const updates = [{ op: 'delete' as const, tuple: tuple('doc:a#viewer', group) }];
    await services.writer.write({ projectId: id, tenantId: '' }, updates, meta);
    expect(await stored(id)).toEqual([]);
  });
});

describe('while a model is pending', () => {
  test('tuples must fit it and the one in force; afterwards that one alone', async () => {
    const id = await newProject(modelOf({ viewer: ['user', 'user:*'], owner: ['user'] }));
    const older = await olderTransaction(database.pool);
    const next = modelOf({ viewer: ['user', 'group'], editor: ['user'] });
    await expect(update(id, next, hurried)).rejects.toMatchObject({
      reason: 'MODEL_NOT_IN_FORCE',
    });
    expect(await services.staged.activation(id)).toMatchObject({ version: 2, state: 'pending' });
    for (const by of [services, other]) {
      await expect(
        write(id, [tuple('doc:a#viewer', { kind: 'wildcard' })], by),
      ).rejects.toMatchObject({
        message:
          'updates[0].tuple.subject: doc#viewer admits user, group, not user:* (by the model that is pending)',
      });
      await expect(write(id, [tuple('doc:a#viewer', group)], by)).rejects.toEqual(admitted);
      await expect(write(id, [tuple('doc:a#owner', user('u'))], by)).rejects.toEqual(admitted);
      await expect(write(id, [tuple('doc:a#editor', user('u'))], by)).rejects.toEqual(admitted);
      await write(id, [tuple('doc:a#viewer', user('u'))], by);
    }
    await older.end();
    expect(await services.staged.settled(id, 2, Infinity)).toMatchObject({ state: 'active' });
    for (const by of [services, other]) {
      await write(id, [tuple('doc:a#viewer', group), tuple('doc:a#editor', user('u'))], by);
      await expect(write(id, [tuple('doc:a#owner', user('u'))], by)).rejects.toEqual(admitted);
    }
  });

  test('it can be given up, and a newer one gives it up', async () => {
    const id = await newProject(UNTYPED);
    await olderTransaction(database.pool);
    await put(id, TYPED);
    await expect(write(id, [tuple('doc:a#viewer', group)])).rejects.toEqual(admitted);
    expect(await services.staged.cancel(id, author)).toMatchObject({
      version: 2,
      state: 'cancelled',
    });
    await write(id, [tuple('doc:a#viewer', group)]);
    await expect(services.staged.cancel(id, author)).rejects.toMatchObject({
      reason: 'MODEL_NOT_PENDING',
    });
    await put(id, TYPED);
    await put(id, modelOf({ viewer: ['group'] }));
    await update(id, UNTYPED);
    const { rows } = await database.pool.query(
      `select v.state, a.state as way from model_version v
       left join model_activation a using (project_id, version) where project_id = $1 order by version`,
      [id],
    );
    expect(rows).toEqual([
      { state: 2, way: null },
      { state: 4, way: 4 },
      { state: 4, way: 4 },
      { state: 4, way: 4 },
      { state: 2, way: null },
    ]);
  });

  test('a model that is put in by hand ends it and its rules', async () => {
    const id = await newProject(TYPED);
    await olderTransaction(database.pool);
    await put(id, modelOf({ viewer: ['group'] }));
    await database.pool.query(
      'update project set model_json = $2, version = version + 1 where id = $1',
      [id, UNTYPED],
    );
    await write(id, [tuple('doc:a#viewer', { kind: 'wildcard' })], other);
    const job = services.activations;
    await job.run(new AbortController().signal);
    expect((await services.projects.get(id)).modelJson).toBe(UNTYPED);
    expect(services.activationErrors).toEqual([]);
    expect(await services.staged.activation(id)).toMatchObject({ version: 3, state: 'active' });
  });
});

describe('beside running writers', () => {
  test('an older transaction is awaited, and what it wrote is seen (A1)', async () => {
    const id = await newProject(UNTYPED);
    const older = await olderTransaction(database.pool);
    const misfit = { op: 'insert' as const, tuple: tuple('doc:a#viewer', group) };
    const plan = planGroup([
      {
        shard: { projectId: id, tenantId: 't' },
        updates: [misfit],
        meta,
        commitId: '00000000-0000-0000-0000-000000000001',
        forkId: '1',
      },
    ]);
    await writeGroup(older.client, null, plan.values, 5_000);
    await put(id, TYPED);
    // Long enough for the whole look, and without effect.
    await services.activations.run(AbortSignal.timeout(500));
    const pending = { state: 'pending', tuplesScanned: 0 };
    expect(await services.staged.activation(id)).toMatchObject(pending);
    await older.end();
    expect(await services.staged.settled(id, 2, Infinity)).toMatchObject({
      state: 'refused',
      tuplesRefused: 1,
    });
  });

  test('a write that was looked at by rules that are over is refused by its statement (W4)', async () => {
    const id = await newProject(TYPED);
    const misfit = { op: 'insert' as const, tuple: tuple('doc:a#viewer', group) };
    const one = {
      shard: { projectId: id, tenantId: '' },
      updates: [misfit],
      meta,
      commitId: '00000000-0000-0000-0000-000000000002',
      forkId: '1',
    };
    const send = (rules: number): Promise<unknown> =>
      writeGroup(database.pool as never, null, planGroup([one], () => rules).values, 5_000);
    await expect(send(0)).rejects.toMatchObject({ code: 'GH003', detail: id });
    await expect(send(99)).rejects.toMatchObject({ code: 'GH003' });
    expect(await stored(id)).toEqual([]);
    const { rows } = await database.pool.query('select seq from shard where project_id = $1', [id]);
    expect(rows).toEqual([]);
  });

  test('statements that look at no tuples may write where nothing is asked for, and nowhere else', async () => {
    const free = await newProject(UNTYPED);
    const typed = await newProject(TYPED);
    const send = async (id: string): Promise<void> => {
      const { values } = planGroup([
        {
          shard: { projectId: id, tenantId: '' },
          updates: [{ op: 'insert', tuple: tuple('doc:a#viewer', user('u')) }],
          meta,
          commitId: crypto.randomUUID(),
          forkId: '1',
        },
      ]);
      // s_rules is null: nobody looked.
      const unseen = [...values.slice(0, 3), null, ...values.slice(4)];
      await writeGroup(database.pool as never, null, unseen as never, 5_000);
    };
    await send(free);
    expect(await stored(free)).toEqual(['doc:a#viewer']);
    await expect(send(typed)).rejects.toMatchObject({ code: 'GH003' });
    expect(await stored(typed)).toEqual([]);
  });

  test('nothing that is admitted by now is refused for what was known before (R2)', async () => {
    const id = await newProject(TYPED);
    await expect(write(id, [tuple('doc:a#viewer', group)], other)).rejects.toEqual(admitted);
    await update(id, modelOf({ viewer: ['user', 'group'] }));
    await write(id, [tuple('doc:a#viewer', group)], other);
  });

  test('writes of several projects in one group: only those that do not fit are refused', async () => {
    const ids = await Promise.all([newProject(UNTYPED), newProject(UNTYPED), newProject(UNTYPED)]);
    await write(ids[0], [tuple('doc:a#viewer', user('u'))], other);
    await update(ids[1], TYPED);
    const results = await Promise.allSettled(
      ids.flatMap((id) => [
        write(id, [tuple('doc:b#viewer', group)], other),
        write(id, [tuple('doc:c#viewer', user('u'))], other),
      ]),
    );
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
    expect(await stored(ids[1])).toEqual(['doc:c#viewer']);
  });
});

describe('the look at stored tuples', () => {
  test('goes on where it was stopped, on another instance, and counts each tuple once (A3)', async () => {
    const id = await newProject(UNTYPED);
    await write(
      id,
      Array.from({ length: 95 }, (_, i) =>
        tuple(`doc:${i}#viewer`, i % 10 === 3 ? group : user('u')),
      ),
    );
    const older = await olderTransaction(database.pool);
    await put(id, TYPED);
    await older.end();
    let scanned = 0;
    const stop = new AbortController();
    const shared = new SharedWork({ target: database.target });
    const parts = { pool: database.pool, shared, region: 'eu', intervalMs: 3_600_000, rowsMax: 10 };
    const first = new ActivationJob({
      ...parts,
      projects: services.projects,
      metrics: {
        scanned: (tuples) => {
          scanned += tuples;
          if (scanned >= 30) stop.abort();
        },
        ended: () => undefined,
      },
      report: silentReport,
    });
    await first.run(stop.signal);
    expect(await services.staged.activation(id)).toMatchObject({
      state: 'pending',
      tuplesScanned: 30,
    });
    // Two at once, as where a lock was lost.
    await Promise.all([
      other.activations.run(new AbortController().signal),
      services.activations.run(new AbortController().signal),
    ]);
    expect(await services.staged.activation(id)).toMatchObject({
      state: 'refused',
      tuplesScanned: 95,
      tuplesRefused: 10,
    });
    expect([...other.activationErrors, ...services.activationErrors]).toEqual([]);
  });

  test('is left to instances of the region that a project is pinned to', async () => {
    const id = `p${++made}`;
    await services.projects.create(
      { id, name: id, modelJson: '', dataRegion: 'us', maxCheckReads: 0 },
      'r',
    );
    await put(id, TYPED);
    await services.activations.run(new AbortController().signal);
    expect(await services.staged.activation(id)).toMatchObject({ state: 'pending' });
  });
});

test('stored models load as they are, and somebody is told', async () => {
  const id = await newProject();
  const typo = JSON.stringify({ namespaces: { doc: { relations: { a: { computed: 'nope' } } } } });
  await expect(update(id, typo)).rejects.toMatchObject({ reason: 'MODEL_INVALID' });
  await database.pool.query(
    'update project set model_json = $2, version = version + 1 where id = $1',
    [id, typo],
  );
  expect((await other.settingsSource.load(id)).modelJson).toBe(typo);
  expect(other.unsound).toEqual([[id, '$.namespaces.doc.relations.a.computed']]);
});

test('the error of a project that is away is not taken for a rule', async () => {
  const error = await write('nowhere', [tuple('doc:a#viewer', group)]).catch(
    (failure: unknown) => failure,
  );
  expect(error instanceof AppError && error.reason === 'TUPLE_NOT_ADMITTED').toBe(false);
});
