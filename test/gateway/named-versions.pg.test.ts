import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';

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
  const id = `versions-${(projects += 1)}`;
  await call('workspace.v1.AdminService/CreateProject', { id, name: id });
  return id;
}

async function writeModel(projectId: string, relations: Json, force = false): Promise<number> {
  const model = {
    namespaces: { doc: { relations }, team: { relations: { member: { subjects: ['user'] } } } },
  };
  const answer = await call('gatehouse.v1.ModelService/WriteModel', {
    project_id: projectId,
    model: { json: JSON.stringify(model) },
    force,
  });
  return Number(answer['version']);
}

const ANN = { user_id: 'ann' };
const TEAM = { set: { namespace: 'team', object_id: 'a', relation: 'member' } };
const doc = (relation: string, subject: Json): Json => ({
  namespace: 'doc',
  object_id: '1',
  relation,
  subject,
});

async function write(projectId: string, ...tuples: readonly Json[]): Promise<void> {
  const updates = tuples.map((tuple) => ({ op: 'OP_INSERT', tuple }));
  await call('workspace.v1.AuthzService/WriteRelationTuples', { project_id: projectId, updates });
}

type Asked = {
  readonly projectId: string;
  readonly version?: number | string;
  readonly scope?: Json;
};

const scopeOf = ({ projectId, version = 0, scope = {} }: Asked): Json => ({
  project_id: projectId,
  model_version: String(version),
  ...scope,
});

async function check(asked: Asked, question: Json): Promise<unknown> {
  const answer = await call('gatehouse.v1.QueryService/Check', { scope: scopeOf(asked), question });
  return answer['allowed'];
}

/** The Check of the contract, which names no version. */
async function plainCheck(projectId: string, relation: string): Promise<unknown> {
  const answer = await call('workspace.v1.AuthzService/Check', {
    project_id: projectId,
    namespace: 'doc',
    object_id: '1',
    relation,
    subject_user_id: 'ann',
  });
  return answer['allowed'];
}

const viewer = doc('viewer', ANN);
const OWN = { viewer: { subjects: ['user', 'team#member'] }, editor: { subjects: ['user'] } };
const FROM_EDITOR = { viewer: { computed: 'editor' }, editor: { subjects: ['user'] } };
const TEAMS_ONLY = { viewer: { subjects: ['team#member'] }, editor: { subjects: ['user'] } };

describe('a query names a version of the model', () => {
  test('each version answers as it means, and the one in force where none is named', async () => {
    const projectId = await projectWith();
    const own = await writeModel(projectId, OWN);
    await write(projectId, viewer);
    const fromEditor = await writeModel(projectId, FROM_EDITOR, true);
    expect(await check({ projectId, version: own }, viewer)).toBe(true);
    expect(await check({ projectId, version: fromEditor }, viewer)).toBe(false);
    expect(await check({ projectId }, viewer)).toBe(false);
    await write(projectId, doc('editor', ANN));
    expect(await check({ projectId, version: fromEditor }, viewer)).toBe(true);
    expect(await check({ projectId, version: own }, viewer)).toBe(true);
  });

  test('tuples that a version does not admit never allow under it', async () => {
    const projectId = await projectWith();
    const own = await writeModel(projectId, OWN);
    await write(projectId, viewer, doc('viewer', TEAM), {
      namespace: 'team',
      object_id: 'a',
      relation: 'member',
      subject: { user_id: 'ben' },
    });
    const teams = await writeModel(projectId, TEAMS_ONLY, true);
    const ben = doc('viewer', { user_id: 'ben' });
    for (const [version, allowed] of [
      [own, [true, true]],
      [teams, [false, true]],
      [own, [true, true]],
      [0, [false, true]],
    ] as const) {
      const asked = { projectId, version };
      expect([await check(asked, viewer), await check(asked, ben)], String(version)).toEqual(
        allowed,
      );
    }
    // After a force the contract's methods pass them over, too.
    expect(await plainCheck(projectId, 'viewer')).toBe(false);
    const batch = await call('workspace.v1.AuthzService/BatchCheck', {
      project_id: projectId,
      items: [{ namespace: 'doc', object_id: '1', relation: 'viewer', subject_user_id: 'ann' }],
    });
    expect(batch['results']).toMatchObject([{ allowed: false }]);
    const listed = await call('workspace.v1.AuthzService/ListObjects', {
      project_id: projectId,
      namespace: 'doc',
      relation: 'viewer',
      subject_user_id: 'ann',
    });
    expect(listed['object_ids']).toEqual([]);
    const tree = await call('workspace.v1.AuthzService/Expand', {
      project_id: projectId,
      namespace: 'doc',
      object_id: '1',
      relation: 'viewer',
    });
    expect(JSON.stringify(tree)).not.toContain('ann');
    const subjects = await call('gatehouse.v1.QueryService/ListSubjects', {
      scope: scopeOf({ projectId }),
      namespace: 'doc',
      object_id: '1',
      relation: 'viewer',
    });
    expect(subjects['user_ids']).toEqual(['ben']);
    const older = await call('gatehouse.v1.QueryService/ListSubjects', {
      scope: scopeOf({ projectId, version: own }),
      namespace: 'doc',
      object_id: '1',
      relation: 'viewer',
    });
    expect(older['user_ids']).toEqual(['ann', 'ben']);
    const why = await call('gatehouse.v1.QueryService/Explain', {
      scope: scopeOf({ projectId, version: teams }),
      question: viewer,
    });
    expect(why['allowed']).toBe(false);
    // A version whose stored tuples were all looked at follows them again.
    await writeModel(projectId, OWN);
    expect(await plainCheck(projectId, 'viewer')).toBe(true);
  });

  test('five versions in rotation stay right while tuples change', async () => {
    const projectId = await projectWith();
    const versions: { readonly version: number; readonly isOwn: boolean }[] = [];
    for (let n = 0; n < 6; n += 1) {
      const isOwn = n % 2 === 0;
      const more = { [`extra${n}`]: { subjects: ['user'] } };
      versions.push({
        version: await writeModel(projectId, { ...(isOwn ? OWN : FROM_EDITOR), ...more }, true),
        isOwn,
      });
    }
    const states = [
      [false, false],
      [true, false],
      [true, true],
      [false, true],
    ] as const;
    for (const [isViewer, isEditor] of states) {
      const updates = (
        [
          ['viewer', isViewer],
          ['editor', isEditor],
        ] as const
      ).map(([relation, holds]) => ({
        op: holds ? 'OP_INSERT' : 'OP_DELETE',
        tuple: doc(relation, ANN),
      }));
      // What the version in force does not admit it still lets go; it is written under the one that admits it.
      await writeModel(projectId, OWN, true);
      await call('workspace.v1.AuthzService/WriteRelationTuples', {
        project_id: projectId,
        updates,
      });
      for (const { version, isOwn } of [...versions, ...versions.toReversed()]) {
        expect(await check({ projectId, version }, viewer), `${version}`).toBe(
          isOwn ? isViewer : isEditor,
        );
      }
    }
  });

  test('contextual tuples are held to the version that is named', async () => {
    const projectId = await projectWith();
    const own = await writeModel(projectId, OWN);
    const teams = await writeModel(projectId, TEAMS_ONLY, true);
    const scope = { contextual_tuples: [viewer] };
    expect(await check({ projectId, version: own, scope }, viewer)).toBe(true);
    const refused = await call(
      'gatehouse.v1.QueryService/Check',
      { scope: scopeOf({ projectId, version: teams, scope }), question: viewer },
      false,
    );
    expect(refused).toMatchObject({ code: 'invalid_argument' });
    expect(JSON.stringify(refused)).toContain('contextual_tuples[0]');
  });

  test.each([
    ['7', 'not_found'],
    ['-1', 'invalid_argument'],
    ['9223372036854775807', 'invalid_argument'],
    ['1.5', 'invalid_argument'],
    ['x', 'invalid_argument'],
  ])('version %s is refused and named', async (version, code) => {
    const projectId = await projectWith();
    await writeModel(projectId, OWN);
    const answer = await call(
      'gatehouse.v1.QueryService/Check',
      { scope: scopeOf({ projectId, version }), question: viewer },
      false,
    );
    expect(answer).toMatchObject({ code });
    expect(JSON.stringify(answer)).toContain('model_version');
  });

  test('a version of another project is none of this one', async () => {
    const [one, other] = [await projectWith(), await projectWith()];
    await writeModel(one, OWN);
    const second = await writeModel(one, FROM_EDITOR);
    await writeModel(other, OWN);
    const answer = await call(
      'gatehouse.v1.QueryService/Check',
      { scope: scopeOf({ projectId: other, version: second }), question: viewer },
      false,
    );
    expect(answer).toMatchObject({ code: 'not_found' });
  });
});
