import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';

/* Writes that a named version of the model admits, in force or not. */

const { instance } = await instanceForFile();

type Json = { readonly [name: string]: unknown };

async function call(method: string, body: Json, isOk = true): Promise<Json> {
  const response = await fetch(`${instance.baseUrl}/${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
    },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Json;
  if (isOk) expect(answer, method).not.toHaveProperty('code');
  return answer;
}

let projects = 0;
async function projectWith(): Promise<string> {
  const id = `named-writes-${(projects += 1)}`;
  await call('workspace.v1.AdminService/CreateProject', { id, name: id });
  return id;
}

type Relations = Readonly<Record<string, readonly string[]>>;
/** `doc` with relations that admit these subjects. */
async function writeModel(projectId: string, subjects: Relations, force = false): Promise<number> {
  const relations = Object.fromEntries(
    Object.entries(subjects).map(([name, list]) => [name, { subjects: list }]),
  );
  const document = { namespaces: { doc: { relations }, robot: { relations: {} } } };
  const answer = await call('gatehouse.v1.ModelService/WriteModel', {
    project_id: projectId,
    model: { json: JSON.stringify(document) },
    force,
  });
  expect(answer['activation']).toMatchObject({ state: 'MODEL_ACTIVATION_STATE_ACTIVE' });
  return Number(answer['version']);
}

const ROBOT = { set: { namespace: 'robot', object_id: 'r2' } };
const ANN = { user_id: 'ann' };
const doc = (objectId: string, relation: string, subject: Json): Json => ({
  namespace: 'doc',
  object_id: objectId,
  relation,
  subject,
});

const inserts = (...tuples: readonly Json[]): readonly Json[] =>
  tuples.map((tuple) => ({ op: 'OP_INSERT', tuple }));

async function write(
  projectId: string,
  version: number | string,
  updates: readonly Json[],
  more: Json = {},
  isOk = true,
): Promise<Json> {
  const body = { project_id: projectId, updates, model_version: version, ...more };
  return await call('gatehouse.v1.TupleService/WriteTuples', body, isOk);
}

async function holds(
  projectId: string,
  tuple: Json,
  { version = 0, token = '' }: { version?: number; token?: string } = {},
): Promise<unknown> {
  const answer = await call('gatehouse.v1.QueryService/Check', {
    scope: {
      project_id: projectId,
      model_version: version,
      userset_mode: 'USERSET_MODE_EXACT',
      at_least_consistency_token: token,
    },
    question: tuple,
  });
  return answer['allowed'];
}

async function plainCheck(projectId: string, objectId: string, userId: string): Promise<unknown> {
  const answer = await call('workspace.v1.AuthzService/Check', {
    project_id: projectId,
    namespace: 'doc',
    object_id: objectId,
    relation: 'viewer',
    subject_user_id: userId,
  });
  return answer['allowed'];
}

const PEOPLE = { viewer: ['user'] };
const ROBOTS = { viewer: ['robot'] };

describe('a write names a version of the model', () => {
  test('which admits it, and the one in force ignores what it does not admit itself', async () => {
    const projectId = await projectWith();
    const robots = await writeModel(projectId, ROBOTS);
    const people = await writeModel(projectId, PEOPLE);
    const robot = doc('1', 'viewer', ROBOT);
    const ann = doc('1', 'viewer', ANN);
    await write(projectId, people, inserts(ann));
    const { consistency_token: token } = await write(projectId, robots, inserts(robot));
    for (const at of ['', String(token)]) {
      expect(await holds(projectId, robot, { version: robots, token: at })).toBe(true);
      expect(await holds(projectId, robot, { token: at })).toBe(false);
      expect(await holds(projectId, ann, { token: at })).toBe(true);
      expect(await holds(projectId, ann, { version: robots, token: at })).toBe(false);
    }
    expect(await plainCheck(projectId, '1', 'ann')).toBe(true);
    // Every surface of the contract does so, too: a user that only the older version admits.
    const users = await writeModel(projectId, { viewer: ['robot', 'user'] });
    const robotsAgain = await writeModel(projectId, ROBOTS, true);
    await write(projectId, users, inserts(doc('2', 'viewer', { user_id: 'ben' })));
    expect(await plainCheck(projectId, '2', 'ben')).toBe(false);
    const tree = await call('workspace.v1.AuthzService/Expand', {
      project_id: projectId,
      namespace: 'doc',
      object_id: '2',
      relation: 'viewer',
    });
    expect(JSON.stringify(tree)).not.toContain('ben');
    // A version that comes into force after a whole examination counts them again.
    expect(robotsAgain).toBeGreaterThan(users);
    await writeModel(projectId, { viewer: ['robot', 'user'] });
    expect(await plainCheck(projectId, '2', 'ben')).toBe(true);
  });

  test('and no other: not the one in force', async () => {
    const projectId = await projectWith();
    const robots = await writeModel(projectId, ROBOTS);
    const people = await writeModel(projectId, PEOPLE);
    const ann = doc('1', 'viewer', ANN);
    const refused = await write(projectId, robots, inserts(ann), {}, false);
    expect(refused).toMatchObject({ code: 'invalid_argument' });
    expect(JSON.stringify(refused)).toContain('TUPLE_NOT_ADMITTED');
    expect(JSON.stringify(refused)).toContain('updates[0].tuple.subject');
    expect(await holds(projectId, ann)).toBe(false);
    await write(projectId, people, inserts(ann));
    expect(await holds(projectId, ann)).toBe(true);
    // A delete asks no version.
    await write(projectId, robots, [{ op: 'OP_DELETE', tuple: ann }]);
    expect(await holds(projectId, ann)).toBe(false);
  });

  test('also after the rules changed, with modes, preconditions and a key', async () => {
    const projectId = await projectWith();
    const robots = await writeModel(projectId, ROBOTS);
    await writeModel(projectId, PEOPLE);
    const robot = doc('1', 'viewer', ROBOT);
    const updates = inserts(robot);
    const absent = { modes: ['UPDATE_MODE_ABSENT'] };
    await write(projectId, robots, updates, absent);
    const again = await write(projectId, robots, updates, absent, false);
    expect(again).toMatchObject({ code: 'already_exists' });
    const guarded = {
      idempotency_key: 'k1',
      preconditions: [{ must_exist: { namespace: 'doc', object_id: '1' } }],
    };
    const two = inserts(doc('2', 'viewer', ROBOT));
    const first = await write(projectId, robots, two, guarded);
    const replayed = await write(projectId, robots, two, guarded);
    expect(replayed).toEqual({ ...first, replayed: true });
    // The same write by another version is another one.
    const used = await write(projectId, 0, two, guarded, false);
    expect(JSON.stringify(used)).toContain('IDEMPOTENCY_KEY_USED');
    // One more version in force, whose examination was whole: it is told to ignore them once more.
    await write(projectId, robots, [
      { op: 'OP_DELETE', tuple: robot },
      { op: 'OP_DELETE', tuple: doc('2', 'viewer', ROBOT) },
    ]);
    await writeModel(projectId, { viewer: ['user'], editor: ['user'] });
    await write(projectId, robots, two, { idempotency_key: 'k2' });
    expect(await holds(projectId, two[0]?.['tuple'] as Json, { version: robots })).toBe(true);
    expect(await holds(projectId, two[0]?.['tuple'] as Json)).toBe(false);
  });

  test('while another is pending, it may not write what that one would miss', async () => {
    const projectId = await projectWith();
    const robots = await writeModel(projectId, ROBOTS);
    await writeModel(projectId, PEOPLE);
    // Many writes by the old version beside many new versions: whatever comes first, none counts where it is not admitted.
    const robot = (i: number): Json => doc(`${i}`, 'viewer', ROBOT);
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, async (_, i) => {
        if (i % 4 === 3) {
          const relations = { viewer: { subjects: ['user'] }, [`r${i}`]: { subjects: ['user'] } };
          await call(
            'gatehouse.v1.ModelService/WriteModel',
            {
              project_id: projectId,
              model: { json: JSON.stringify({ namespaces: { doc: { relations }, robot: {} } }) },
            },
            false,
          );
          return 'model';
        }
        const answer = await write(projectId, robots, inserts(robot(i)), {}, false);
        return answer['code'] ?? 'written';
      }),
    );
    expect(new Set(outcomes.filter((one) => one !== 'model'))).toEqual(
      new Set(
        outcomes.includes('failed_precondition') ? ['written', 'failed_precondition'] : ['written'],
      ),
    );
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome === 'model') continue;
      expect(await holds(projectId, robot(i)), `${i}`).toBe(false);
      const isStored = outcome === 'written';
      expect(await holds(projectId, robot(i), { version: robots }), `${i}`).toBe(isStored);
    }
  });

  test.each([
    ['7', 'not_found'],
    ['-1', 'invalid_argument'],
    ['9223372036854775807', 'invalid_argument'],
    ['1.5', 'invalid_argument'],
    ['x', 'invalid_argument'],
  ])('version %s is refused and named', async (version, code) => {
    const projectId = await projectWith();
    await writeModel(projectId, PEOPLE);
    const answer = await write(projectId, version, inserts(doc('1', 'viewer', ANN)), {}, false);
    expect(answer).toMatchObject({ code });
    expect(JSON.stringify(answer)).toContain('model_version');
    expect(await holds(projectId, doc('1', 'viewer', ANN))).toBe(false);
  });

  test('a version of another project is none of this one', async () => {
    const [one, other] = [await projectWith(), await projectWith()];
    await writeModel(one, PEOPLE);
    const second = await writeModel(one, ROBOTS);
    await writeModel(other, PEOPLE);
    const answer = await write(other, second, inserts(doc('1', 'viewer', ROBOT)), {}, false);
    expect(answer).toMatchObject({ code: 'not_found' });
  });

  test('the version in force then says that it is forced', async () => {
    const projectId = await projectWith();
    const robots = await writeModel(projectId, ROBOTS);
    const people = await writeModel(projectId, PEOPLE);
    await write(projectId, robots, inserts(doc('1', 'viewer', ROBOT)));
    await write(projectId, robots, inserts(doc('2', 'viewer', ROBOT)));
    const { version } = await call('gatehouse.v1.ModelService/GetModel', {
      project_id: projectId,
      version: people,
    });
    expect(version).toMatchObject({ forced: true });
  });
});
