import { beforeAll, describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Every object of a namespace as a subject: what it grants, where it is shown, and what is refused. */
const { instance } = await instanceForFile();
const general = { ...instance, baseUrl: instance.generalUrl };

const STAFF = ['user', 'user:*', 'employee', 'employee:*', 'team', 'team#member'];
const MODEL = {
  namespaces: {
    employee: {
      relations: { manager: { subjects: ['employee'] }, member: { subjects: ['employee'] } },
    },
    team: { relations: { member: { subjects: ['user', 'employee', 'employee:*'] } } },
    doc: {
      relations: {
        parent: { subjects: ['doc'] },
        banned: { subjects: ['employee', 'employee:*', 'team:*'] },
        viewer: { subjects: STAFF },
        reader: { exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } } },
        heir: { tuple_to_userset: { tupleset: 'viewer', computed: 'member' } },
        few: { subjects: ['user', 'team:*'] },
      },
    },
  },
};
const user = (user_id: string) => ({ user_id });
const every = (wildcard_of: string) => ({ wildcard_of });
const set = (namespace: string, object_id: string, relation = '') => ({
  set: { namespace, object_id, relation },
});
const tuple = (text: string, subject: object) => {
  const [namespace, object_id, relation] = text.split(/[:#]/);
  return { namespace, object_id, relation, subject };
};

async function write(subject: object, text: string, more: object = {}, at = instance) {
  const updates = [{ op: 'OP_INSERT', tuple: { ...tuple(text, subject), ...more } }];
  return await call(at, 'AuthzService/WriteRelationTuples', { updates });
}

async function ok(method: string, body: object): Promise<Record<string, unknown>> {
  const answer = await query(instance, method, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

/** Check of workspace.v1, by both gateways. */
async function allows(text: string, subject: ReturnType<typeof set> | { user_id: string }) {
  const [namespace, object_id, relation] = text.split(/[:#]/);
  const who =
    'set' in subject ? { subject_set: subject.set } : { subject_user_id: subject.user_id };
  const answers = [];
  for (const at of [instance, general]) {
    const asked = { namespace, object_id, relation, ...who };
    const { status, body } = await call(at, 'AuthzService/Check', asked);
    expect(status, JSON.stringify(body)).toBe(200);
    answers.push(body['allowed']);
  }
  expect(answers[0]).toBe(answers[1]);
  return answers[0];
}

beforeAll(async () => {
  const settings = { id: 'default', name: 'default', model_json: JSON.stringify(MODEL) };
  const updated = await call(instance, 'AdminService/UpdateProject', settings);
  expect(updated.status, JSON.stringify(updated.body)).toBe(200);
  const stored = [
    tuple('doc:open#viewer', every('employee')),
    tuple('doc:open#banned', set('employee', 'e9')),
    tuple('doc:star#viewer', set('employee', '*')),
    tuple('doc:all#viewer', { wildcard: true }),
    tuple('doc:team#viewer', set('team', 't', 'member')),
    tuple('team:t#member', every('employee')),
    tuple('team:t#member', user('ann')),
    tuple('doc:shut#viewer', set('team', 't', 'member')),
    tuple('doc:shut#viewer', set('employee', 'e1')),
    tuple('doc:shut#banned', every('employee')),
  ];
  const updates = stored.map((one) => ({ op: 'OP_INSERT', tuple: one }));
  const { status, body } = await call(instance, 'AuthzService/WriteRelationTuples', { updates });
  expect(status, JSON.stringify(body)).toBe(200);
});

describe('what it grants', () => {
  test('every object of its namespace, named or not, and nobody else', async () => {
    expect(await allows('doc:open#viewer', set('employee', 'e1'))).toBe(true);
    expect(await allows('doc:open#viewer', set('employee', 'never-named'))).toBe(true);
    expect(await allows('doc:open#viewer', set('employee', '*'))).toBe(true);
    expect(await allows('doc:open#viewer', set('team', 'e1'))).toBe(false);
    expect(await allows('doc:open#viewer', set('employee', 'e1', 'manager'))).toBe(false);
    expect(await allows('doc:open#viewer', user('e1'))).toBe(false);
    expect(await allows('doc:open#viewer', user('employee'))).toBe(false);
    expect(await allows('doc:team#viewer', set('employee', 'e7'))).toBe(true);
    expect(await allows('doc:all#viewer', set('employee', 'e1'))).toBe(false);
    expect(await allows('doc:open#heir', set('employee', 'e1'))).toBe(false);
  });

  test('an object whose id is * is that object', async () => {
    expect(await allows('doc:star#viewer', set('employee', '*'))).toBe(true);
    expect(await allows('doc:star#viewer', set('employee', 'e1'))).toBe(false);
  });

  test('who is excluded does not hold it, and a wildcard excludes every set', async () => {
    expect(await allows('doc:open#reader', set('employee', 'e9'))).toBe(false);
    expect(await allows('doc:open#reader', set('employee', 'e1'))).toBe(true);
    expect(await allows('doc:shut#reader', set('employee', 'e1'))).toBe(false);
    expect(await allows('doc:shut#viewer', set('team', 't', 'member'))).toBe(true);
    // ann holds it, who is no employee; the set by itself does not.
    expect(await allows('doc:shut#reader', user('ann'))).toBe(true);
    await write(every('team'), 'doc:shut#banned');
    expect(await allows('doc:shut#reader', user('ann'))).toBe(true);
  });

  test('until it is deleted, or has expired', async () => {
    const past = { expires_at: '2001-01-01T00:00:00Z' };
    expect((await write(every('employee'), 'doc:late#viewer', past)).status).toBe(200);
    expect(await allows('doc:late#viewer', set('employee', 'e1'))).toBe(false);
    expect((await write(every('employee'), 'doc:gone#viewer')).status).toBe(200);
    expect(await allows('doc:gone#viewer', set('employee', 'e1'))).toBe(true);
    const updates = [{ op: 'OP_DELETE', tuple: tuple('doc:gone#viewer', every('employee')) }];
    expect((await call(instance, 'AuthzService/WriteRelationTuples', { updates })).status).toBe(
      200,
    );
    expect(await allows('doc:gone#viewer', set('employee', 'e1'))).toBe(false);
  });

  test('as a contextual tuple for one request', async () => {
    const question = { ...tuple('doc:new#viewer', set('employee', 'e1')) };
    const scope = { contextual_tuples: [tuple('doc:new#viewer', every('employee'))] };
    expect(await ok('Check', { scope, question })).toMatchObject({ allowed: true });
    expect(await ok('Check', { question })).toMatchObject({ allowed: false });
  });
});

describe('where it is shown', () => {
  test('reads, expansions and explanations name it', async () => {
    const { body } = await call(instance, 'AuthzService/ReadRelationTuples', {
      namespace: 'doc',
      object_id: 'open',
      relation: 'viewer',
    });
    expect(body).toMatchObject({ tuples: [{ subject: { wildcard_of: 'employee' } }] });
    const asked = { namespace: 'doc', object_id: 'open', relation: 'viewer' };
    const expanded = await call(instance, 'AuthzService/Expand', asked);
    expect(expanded.body).toMatchObject({
      tree: {
        type: 'NODE_TYPE_LEAF',
        user_ids: [],
        sets: [],
        wildcards_of: { namespaces: ['employee'] },
      },
    });
    const heirs = await call(instance, 'AuthzService/Expand', { ...asked, relation: 'heir' });
    expect(heirs.body).toMatchObject({ tree: { type: 'NODE_TYPE_UNION', children: [] } });
    const question = tuple('doc:open#reader', set('employee', 'never-named'));
    const explained = await ok('Explain', { question });
    expect(JSON.stringify(explained)).toContain('"subject":{"wildcard_of":"employee"}');
    const denied = await ok('Explain', {
      question: tuple('doc:shut#reader', set('employee', 'e1')),
    });
    expect(JSON.stringify(denied)).toContain('employee:e1 is excluded from doc:shut#reader');
  });

  test('a remedy is the wildcard where the model admits nothing else', async () => {
    const { remedies } = await ok('Explain', {
      question: tuple('doc:nobody#few', set('team', 't9')),
      remedies_max: 3,
    });
    expect(remedies).toMatchObject([{ subject: { wildcard_of: 'team' } }]);
  });

  test('lists of objects have what it grants', async () => {
    const listed = async (subject: object) =>
      (await ok('ListObjects', { namespace: 'doc', relation: 'reader', subject }))['object_ids'];
    expect(await listed(set('employee', 'unheard-of'))).toEqual(['open', 'team']);
    expect(await listed(set('employee', 'e9'))).toEqual(['team']);
    expect(await listed(set('employee', '*'))).toEqual(['open', 'star', 'team']);
    expect(await listed(set('team', 't'))).toEqual([]);
  });

  test('lists of subjects of its namespace, with who is excluded', async () => {
    const of = (object_id: string, more: object) =>
      ok('ListSubjects', { namespace: 'doc', object_id, relation: 'reader', ...more });
    const employees = { subject_namespace: 'employee' };
    expect(await of('open', employees)).toMatchObject({
      user_ids: [],
      wildcard: true,
      excluded_user_ids: ['e9'],
    });
    expect(await of('star', employees)).toMatchObject({ user_ids: ['*'], wildcard: false });
    expect(await of('shut', employees)).toMatchObject({ user_ids: [], wildcard: false });
    expect(await of('open', {})).toMatchObject({ user_ids: [], wildcard: false });
    const members = { subject_namespace: 'team', subject_relation: 'member' };
    expect(await of('team', members)).toMatchObject({ user_ids: ['t'], wildcard: false });
    expect(await of('open', members)).toMatchObject({ user_ids: [] });
    // Nobody is written on it: it holds itself, and what it is computed from.
    const self = { subject_namespace: 'doc', subject_relation: 'viewer' };
    expect(await of('unwritten', self)).toMatchObject({ user_ids: ['unwritten'] });
    const other = { subject_namespace: 'team', subject_relation: 'member' };
    expect(await of('unwritten', other)).toMatchObject({ user_ids: [] });
  });

  test('pages of a list go on by the kind that they began with', async () => {
    for (const id of ['p1', 'p2', 'p3']) await write(set('employee', id), 'doc:pages#viewer');
    const wanted = { namespace: 'doc', object_id: 'pages', relation: 'viewer', page_size: 2 };
    const employees = { ...wanted, subject_namespace: 'employee' };
    const first = await ok('ListSubjects', employees);
    expect(first['user_ids']).toEqual(['p1', 'p2']);
    const page_token = first['next_page_token'];
    const next = await ok('ListSubjects', { ...employees, page_token });
    expect(next['user_ids']).toEqual(['p3']);
    const others = { ...wanted, subject_namespace: 'team', page_token };
    expect(await query(instance, 'ListSubjects', others)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('page_token') as string },
    });
  });
});

describe('what is refused, by the name of the field', () => {
  const field = 'updates[0].tuple.subject.wildcard_of';
  const bad = ['', 'A', '*', 'a#b', 'a:b', ' a', 'a'.repeat(65), 'a'.repeat(5_000), 'ü', '1a'];
  test.each(bad.map((name) => [name.slice(0, 70), name]))(
    'a name that is none: %s',
    async (_, name) => {
      for (const at of [instance, general]) {
        const { status, body } = await write(every(name), 'doc:x#viewer', {}, at);
        expect([status, body['code']]).toEqual([400, 'invalid_argument']);
        expect(body['message']).toContain(field);
      }
    },
  );

  test('names of every length that is one, in a model without types', async () => {
    const created = { id: 'untyped', name: 'untyped' };
    expect((await call(instance, 'AdminService/CreateProject', created)).status).toBe(200);
    for (const length of [1, 2, 63, 64]) {
      const namespace = 'n'.repeat(length);
      const updates = [{ op: 'OP_INSERT', tuple: tuple('thing:x#viewer', every(namespace)) }];
      const scope = { project_id: 'untyped' };
      const answer = await call(instance, 'AuthzService/WriteRelationTuples', {
        ...scope,
        updates,
      });
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      const asked = { ...scope, namespace: 'thing', object_id: 'x', relation: 'viewer' };
      for (const [object_id, wanted] of [
        ['i'.repeat(256), true],
        ['i', true],
      ] as const) {
        const subject_set = { namespace, object_id, relation: '' };
        const { body } = await call(instance, 'AuthzService/Check', { ...asked, subject_set });
        expect(body['allowed']).toBe(wanted);
      }
      const other = { namespace: `${namespace.slice(1)}m`, object_id: 'i', relation: '' };
      const { body } = await call(instance, 'AuthzService/Check', { ...asked, subject_set: other });
      expect(body['allowed']).toBe(false);
    }
  });

  test('what the model does not admit, of a type that it does not have either', async () => {
    for (const name of ['employee', 'ghost', 'user', 'seat']) {
      const { status, body } = await write(every(name), 'doc:x#few');
      expect(status).toBe(400);
      expect(body['message']).toContain(`doc#few admits user, team:*, not ${name}:*`);
      expect(body['message']).toContain('updates[0].tuple.subject');
    }
    // Objects of a type are not admitted by its wildcard.
    expect((await write(set('team', 't'), 'doc:x#few')).status).toBe(400);
  });

  test('nobody asks as a wildcard', async () => {
    const question = tuple('doc:open#viewer', every('employee'));
    const subject = every('employee');
    const asked: readonly (readonly [string, object, string])[] = [
      ['Check', { question }, 'question.subject'],
      ['Explain', { question }, 'question.subject'],
      ['ListObjects', { namespace: 'doc', relation: 'viewer', subject }, 'subject'],
      ['ListRelations', { namespace: 'doc', object_id: 'open', subject }, 'subject'],
    ];
    for (const [method, body, name] of asked) {
      expect(await query(instance, method, body)).toMatchObject({
        status: 400,
        body: {
          code: 'invalid_argument',
          message: expect.stringContaining(`${name}: must be a user or a set`) as string,
        },
      });
    }
    const subject_set = { namespace: '*', object_id: 'employee', relation: '' };
    const check = { namespace: 'doc', object_id: 'open', relation: 'viewer', subject_set };
    const { status, body } = await call(instance, 'AuthzService/Check', check);
    expect([status, body['message']]).toEqual([
      400,
      expect.stringContaining('subject_set.namespace'),
    ]);
  });

  test('a kind of list that is none', async () => {
    const wanted = { namespace: 'doc', object_id: 'open', relation: 'viewer' };
    const bads: readonly (readonly [object, string])[] = [
      [{ subject_relation: 'member' }, 'subject_relation: needs a subject_namespace'],
      [{ subject_namespace: '*' }, 'subject_namespace'],
      [{ subject_namespace: 'n'.repeat(65) }, 'subject_namespace'],
      [{ subject_namespace: 'team', subject_relation: 'No' }, 'subject_relation'],
    ];
    for (const [more, message] of bads) {
      expect(await query(instance, 'ListSubjects', { ...wanted, ...more })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining(message) as string },
      });
    }
  });

  test('a model that does not admit what is stored names the tuple', async () => {
    const doc = { ...MODEL.namespaces.doc.relations, viewer: { subjects: ['user', 'employee'] } };
    const narrow = { ...MODEL.namespaces, doc: { relations: doc } };
    const { body } = await call(instance, 'AdminService/UpdateProject', {
      id: 'default',
      name: 'default',
      model_json: JSON.stringify({ namespaces: narrow }),
    });
    expect(JSON.stringify(body)).toMatch(/not (?:employee:\*|team#member|user:\*|team)/);
  });
});
