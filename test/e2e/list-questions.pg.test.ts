import { createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile, startInstance } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Who, which relations, which objects: the lists of QueryService, in pages and as a stream. */
const { database, instance } = await instanceForFile({ GATEWAY_MAX_BATCH_ITEMS: '2000' });

const MODEL = {
  namespaces: {
    doc: {
      relations: {
        parent: {},
        banned: {},
        editor: {},
        viewer: {
          exclusion: {
            include: {
              union: [
                {},
                { computed: 'editor' },
                { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
              ],
            },
            exclude: { computed: 'banned' },
          },
        },
      },
    },
    folder: { relations: { viewer: {} } },
  },
};
const user = (user_id: string) => ({ user_id });
const set = (namespace: string, object_id: string, relation = '') => ({
  set: { namespace, object_id, relation },
});
const tuple = (text: string, subject: unknown) => {
  const [namespace, object_id, relation] = text.split(/[:#]/);
  return { namespace, object_id, relation, subject };
};
const viewersOf = (object_id: string) => ({ namespace: 'doc', object_id, relation: 'viewer' });
const viewable = (subject: unknown) => ({ namespace: 'doc', relation: 'viewer', subject });

async function write(tenant_id: string, tuples: readonly object[], op = 'OP_INSERT') {
  for (let at = 0; at < tuples.length; at += 1_000) {
    const updates = tuples.slice(at, at + 1_000).map((one) => ({ op, tuple: one }));
    const { status, body } = await call(instance, 'AuthzService/WriteRelationTuples', {
      tenant_id,
      updates,
    });
    expect(status, JSON.stringify(body)).toBe(200);
  }
}

type Asked = Pick<typeof instance, 'baseUrl' | 'token'>;
async function ok(method: string, body: object, at: Asked = instance) {
  const answer = await query(at, method, body);
  expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).toBe(200);
  return answer.body;
}

beforeAll(async () => {
  const settings = { id: 'default', name: 'default', model_json: JSON.stringify(MODEL) };
  expect((await call(instance, 'AdminService/UpdateProject', settings)).status).toBe(200);
  await write('', [
    tuple('doc:plan#viewer', user('ann')),
    tuple('doc:plan#editor', user('eve')),
    tuple('doc:plan#parent', set('folder', 'f')),
    tuple('folder:f#viewer', set('group', 'g', 'member')),
    tuple('group:g#member', user('bob')),
    tuple('group:g#member', user('mal')),
    tuple('doc:plan#banned', user('mal')),
    tuple('doc:open#viewer', { wildcard: true }),
    tuple('doc:open#banned', user('mal')),
    tuple('doc:other#editor', user('eve')),
  ]);
});

describe('ListSubjects', () => {
  test('names who holds a relation, and with a wildcard who does not', async () => {
    const { consistency_token, ...plan } = await ok('ListSubjects', viewersOf('plan'));
    expect(plan).toEqual({
      user_ids: ['ann', 'bob', 'eve'],
      wildcard: false,
      excluded_user_ids: [],
      undecided_user_ids: [],
      next_page_token: '',
      revision_changed: false,
      wildcard_undecided: false,
    });
    expect(consistency_token).toMatch(/^[\w-]{40}$/);
    expect(await ok('ListSubjects', viewersOf('open'))).toMatchObject({
      user_ids: [],
      wildcard: true,
      excluded_user_ids: ['mal'],
    });
    expect(await ok('ListSubjects', viewersOf('none'))).toMatchObject({
      user_ids: [],
      wildcard: false,
    });
  });

  test('counts contextual tuples and the context, for one request', async () => {
    const guest = {
      ...tuple('group:g#member', user('guest')),
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    };
    const contextual_tuples = [guest, tuple('doc:plan#banned', user('ann'))];
    const asked = { ...viewersOf('plan'), scope: { contextual_tuples } };
    expect(await ok('ListSubjects', asked)).toMatchObject({
      user_ids: ['bob', 'eve'],
      undecided_user_ids: ['guest'],
    });
    const grown = { ...asked, scope: { contextual_tuples, context: { age: 30 } } };
    expect(await ok('ListSubjects', grown)).toMatchObject({ user_ids: ['bob', 'eve', 'guest'] });
    const plain = await ok('ListSubjects', viewersOf('plan'));
    expect(plain).toMatchObject({ user_ids: ['ann', 'bob', 'eve'] });
  });

  test('an object of 12,000 users comes whole, sorted, and in pages', async () => {
    const ids = Array.from({ length: 12_000 }, (_, i) => `user-${i}`).sort();
    await write(
      'crowd',
      ids.map((id) => tuple('doc:d#viewer', user(id))),
    );
    const scope = { tenant_id: 'crowd' };
    const whole = await ok('ListSubjects', { ...viewersOf('d'), scope });
    expect(whole['user_ids']).toEqual(ids);
    const client = createClient(
      QueryService,
      createGrpcTransport({ baseUrl: instance.baseUrl, useBinaryFormat: true }),
    );
    const headers = { authorization: `Bearer ${instance.token}` };
    const request = { namespace: 'doc', objectId: 'd', relation: 'viewer' };
    const binary = await client.listSubjects(
      { ...request, scope: { tenantId: 'crowd' } },
      { headers },
    );
    expect(binary.userIds).toEqual(ids);
    expect(binary.consistencyToken).toBe(whole['consistency_token']);
    const joined: unknown[] = [];
    for (let page_token = '', pages = 0; pages === 0 || page_token !== ''; pages++) {
      const page = { ...viewersOf('d'), scope, page_size: 5_000, page_token };
      const answer = await ok('ListSubjects', page);
      joined.push(...(answer['user_ids'] as string[]));
      expect(answer['revision_changed']).toBe(false);
      page_token = String(answer['next_page_token']);
    }
    expect(joined).toEqual(ids);
  }, 180_000);
});

describe('ListRelations and FilterObjects', () => {
  test('say what Check says of each', async () => {
    const on = (object_id: string, subject: unknown) => ({ namespace: 'doc', object_id, subject });
    const relationsOf = async (body: object) => {
      const { relations, undecided_relations } = await ok('ListRelations', body);
      return [relations, undecided_relations];
    };
    expect(await relationsOf(on('plan', user('eve')))).toEqual([['editor', 'viewer'], []]);
    expect(await relationsOf(on('plan', user('mal')))).toEqual([['banned'], []]);
    // One member is banned, another one views.
    const group = await relationsOf(on('plan', set('group', 'g', 'member')));
    expect(group).toEqual([['banned', 'viewer'], []]);
    const only = { ...on('plan', user('eve')), relations: ['viewer', 'banned', 'viewer'] };
    expect(await relationsOf(only)).toEqual([['viewer'], []]);
    const object_ids = ['other', 'none', 'plan', 'other', 'open'];
    const filtered = await ok('FilterObjects', { ...viewable(user('eve')), object_ids });
    expect(filtered['object_ids']).toEqual(['other', 'plan', 'other', 'open']);
    const empty = await ok('FilterObjects', viewable(user('eve')));
    expect([empty['object_ids'], empty['consistency_token']]).toEqual([
      [],
      filtered['consistency_token'],
    ]);
  });
});

describe('ListObjects and StreamObjects', () => {
  test('say what the whole answer of workspace.v1 says, of users and of sets', async () => {
    for (const who of ['ann', 'bob', 'eve', 'mal', 'nobody']) {
      const plain = { namespace: 'doc', relation: 'viewer', subject_user_id: who };
      const { body } = await call(instance, 'AuthzService/ListObjects', plain);
      const listed = await ok('ListObjects', viewable(user(who)));
      expect([who, listed['object_ids']]).toEqual([who, body['object_ids']]);
    }
    const group = await ok('ListObjects', viewable(set('group', 'g', 'member')));
    expect(group['object_ids']).toEqual(['open', 'plan']);
    const itself = await ok('ListObjects', viewable(set('doc', 'unheard', 'editor')));
    expect(itself['object_ids']).toEqual(['unheard']);
  });
});

describe('pages', () => {
  const objects = Array.from({ length: 25 }, (_, i) => `d${String(i).padStart(2, '0')}`);
  const scope = { tenant_id: 'pages' };
  const asked = { ...viewable(user('ann')), scope };

  beforeAll(async () => {
    await write(
      'pages',
      objects.map((id) => tuple(`doc:${id}#viewer`, user('ann'))),
    );
  });

  test('put together are the whole; what was written meanwhile is told', async () => {
    const first = await ok('ListObjects', { ...asked, page_size: 10 });
    expect(first['object_ids']).toEqual(objects.slice(0, 10));
    const page_token = first['next_page_token'];
    const second = await ok('ListObjects', { ...asked, page_size: 5, page_token });
    expect([second['object_ids'], second['revision_changed']]).toEqual([
      objects.slice(10, 15),
      false,
    ]);
    // Of a page's own id nothing need be there any more.
    await write('pages', [tuple('doc:d14#viewer', user('ann'))], 'OP_DELETE');
    const third = await ok('ListObjects', { ...asked, page_token: second['next_page_token'] });
    expect([third['object_ids'], third['revision_changed'], third['next_page_token']]).toEqual([
      objects.slice(15),
      true,
      '',
    ]);
    await write('pages', [tuple('doc:d14#viewer', user('ann'))]);
  });

  test('tell of a change of the model', async () => {
    const id = 'changing';
    const project = { id, name: id, model_json: JSON.stringify(MODEL) };
    expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
    const updates = ['a', 'b'].map((one) => ({
      op: 'OP_INSERT',
      tuple: tuple(`doc:${one}#viewer`, user('ann')),
    }));
    const written = { project_id: id, updates };
    expect((await call(instance, 'AuthzService/WriteRelationTuples', written)).status).toBe(200);
    const of = { ...viewable(user('ann')), scope: { project_id: id } };
    const { next_page_token } = await ok('ListObjects', { ...of, page_size: 1 });
    const model = { ...project, model_json: JSON.stringify({ namespaces: { doc: {} } }) };
    const update = { ...model, model_json: '{"namespaces":{"doc":{"relations":{"viewer":{}}}}}' };
    expect((await call(instance, 'AdminService/UpdateProject', update)).status).toBe(200);
    const next = await ok('ListObjects', { ...of, page_size: 1, page_token: next_page_token });
    expect([next['object_ids'], next['revision_changed']]).toEqual([['b'], true]);
  });

  test('of another question, tenant or method are refused, and so are broken tokens', async () => {
    const { next_page_token } = await ok('ListObjects', { ...asked, page_size: 3 });
    const page_token = String(next_page_token);
    const bytes = Buffer.from(page_token, 'base64url');
    const bent = (at: number): string => {
      const other = Buffer.from(bytes);
      other[at] = (other[at] ?? 0) ^ 1;
      return other.toString('base64url');
    };
    const scoped = (more: object) => ({ ...asked, scope: { ...scope, ...more }, page_token });
    const cases: readonly (readonly [string, object, RegExp])[] = [
      ['ListObjects', { ...asked, relation: 'editor', page_token }, /another question/],
      ['ListObjects', { ...asked, subject: user('bob'), page_token }, /another question/],
      ['ListObjects', scoped({ context: { a: 1 } }), /another question/],
      ['ListObjects', scoped({ tenant_id: 'elsewhere' }), /^page_token: is not a token of this/],
      ['ListSubjects', { ...viewersOf('d00'), scope, page_token }, /another question/],
      ['ListObjects', { ...asked, page_token: bent(0) }, /is not a token of a page/],
      ['ListObjects', { ...asked, page_token: bent(5) }, /^page_token: is not a token of this/],
      ['ListObjects', { ...asked, page_token: bent(40) }, /another question/],
      ['ListObjects', { ...asked, page_token: 'x' }, /is not a token of a page/],
      ['ListObjects', { ...asked, page_token: `${page_token}=` }, /is not a token of a page/],
      ['ListObjects', { ...asked, page_token: 'A'.repeat(500) }, /is not a token of a page/],
      ['ListObjects', { ...asked, page_size: -1 }, /^page_size/],
      ['ListObjects', { ...asked, page_size: 10_001 }, /^page_size/],
      ['ListSubjects', { ...viewersOf('d00'), page_size: 10_001 }, /^page_size/],
    ];
    for (const [method, body, message] of cases) {
      const answer = await query(instance, method, body);
      expect([answer.status, answer.body['code']], JSON.stringify(body)).toEqual([
        400,
        'invalid_argument',
      ]);
      expect(answer.body['message']).toMatch(message);
    }
  });

  test('made up from another id on are a page of the same list', async () => {
    const { next_page_token } = await ok('ListObjects', { ...asked, page_size: 3 });
    const head = Buffer.from(String(next_page_token), 'base64url').subarray(0, 46);
    const forged = (key: string): string =>
      Buffer.concat([head, Buffer.from(key)]).toString('base64url');
    const from = async (key: string) =>
      (await ok('ListObjects', { ...asked, page_token: forged(key) }))['object_ids'];
    expect(await from('d20')).toEqual(objects.slice(21));
    expect(await from('\u0000')).toEqual(objects);
    expect(await from('zzz')).toEqual([]);
  });

  test('go on at a later consistency token, if the request has one', async () => {
    const { next_page_token: page_token } = await ok('ListObjects', { ...asked, page_size: 24 });
    const updates = [{ op: 'OP_INSERT', tuple: tuple('doc:d99#viewer', user('ann')) }];
    const body = { tenant_id: 'pages', updates };
    const written = await call(instance, 'AuthzService/WriteRelationTuples', body);
    const token = written.body['consistency_token'];
    const next = await ok('ListObjects', {
      ...asked,
      scope: { ...scope, at_least_consistency_token: token },
      page_token,
    });
    expect(next).toMatchObject({
      object_ids: ['d24', 'd99'],
      consistency_token: token,
      revision_changed: true,
    });
    await write('pages', [tuple('doc:d99#viewer', user('ann'))], 'OP_DELETE');
  });

  test('are of any of three instances', async () => {
    const others = [await startInstance(database), await startInstance(database)];
    const all = [instance, ...others];
    try {
      for (let start = 0; start < 3; start++) {
        const [joined, users]: [unknown[], unknown[]] = [[], []];
        let page_token: unknown = '';
        for (let page = start; page === start || page_token !== ''; page++) {
          const at = all[page % 3] ?? instance;
          const answer = await ok('ListObjects', { ...asked, page_size: 4, page_token }, at);
          joined.push(...(answer['object_ids'] as string[]));
          expect(answer['revision_changed']).toBe(false);
          page_token = answer['next_page_token'];
        }
        expect(joined).toEqual(objects);
        // What one of them wrote is in the lists of all.
        const who = `new-${start}`;
        const updates = [{ op: 'OP_INSERT', tuple: tuple('doc:d00#viewer', user(who)) }];
        const wrote = { tenant_id: 'pages', updates };
        const writer = all[start] ?? instance;
        const written = await call(writer, 'AuthzService/WriteRelationTuples', wrote);
        expect(written.status).toBe(200);
        for (const at of all) {
          const answer = await ok('ListSubjects', { ...viewersOf('d00'), scope }, at);
          users.push(answer['user_ids']);
          const relations = { namespace: 'doc', object_id: 'd00', subject: user(who), scope };
          expect(await ok('ListRelations', relations, at)).toMatchObject({ relations: ['viewer'] });
          const filter = { ...viewable(user(who)), scope, object_ids: ['d01', 'd00'] };
          expect(await ok('FilterObjects', filter, at)).toMatchObject({ object_ids: ['d00'] });
        }
        const names = Array.from({ length: start + 1 }, (_, i) => `new-${i}`);
        expect(users).toEqual(all.map(() => ['ann', ...names]));
      }
    } finally {
      for (const one of others) await one.stop();
    }
    expect(others.flatMap((one) => one.failures)).toEqual([]);
  }, 180_000);
});

describe('protocols', () => {
  const headers = { authorization: `Bearer ${instance.token}` };
  test.each([
    ['Connect JSON', false, createConnectTransport, '1.1'],
    ['Connect binary', true, createConnectTransport, '2'],
    ['gRPC-Web binary', true, createGrpcWebTransport, '1.1'],
    ['gRPC binary', true, createGrpcTransport, '2'],
  ] as const)('%s', async (_name, useBinaryFormat, createTransport, httpVersion) => {
    const { baseUrl } = instance;
    const transport = createTransport({
      baseUrl,
      httpVersion: httpVersion as '2',
      useBinaryFormat,
    });
    const client = createClient(QueryService, transport);
    const subject = { kind: { case: 'userId' as const, value: 'eve' } };
    const of = { namespace: 'doc', relation: 'viewer' };
    const whole = await client.listSubjects({ ...of, objectId: 'plan' }, { headers });
    expect(whole.userIds).toEqual(['ann', 'bob', 'eve']);
    const relations = { namespace: 'doc', objectId: 'plan', subject };
    const held = await client.listRelations(relations, { headers });
    expect(held.relations).toEqual(['editor', 'viewer']);
    const objectIds = ['plan', 'none', 'open'];
    const kept = await client.filterObjects({ ...of, subject, objectIds }, { headers });
    expect(kept.objectIds).toEqual(['plan', 'open']);
    const page = await client.listObjects({ ...of, subject, pageSize: 2 }, { headers });
    expect([page.objectIds, page.nextPageToken !== '']).toEqual([['open', 'other'], true]);
    const parts: string[][] = [];
    for await (const part of client.streamObjects({ ...of, subject }, { headers })) {
      expect(part.consistencyToken).toBe(page.consistencyToken);
      parts.push(part.objectIds);
    }
    expect(parts).toEqual([['open', 'other', 'plan']]);
    const nothing: string[][] = [];
    const nobody = { kind: { case: 'userId' as const, value: 'nobody' } };
    const empty = { ...of, relation: 'editor', subject: nobody };
    for await (const part of client.streamObjects(empty, { headers })) {
      nothing.push(part.objectIds);
      expect(part.consistencyToken).not.toBe('');
    }
    expect(nothing).toEqual([[]]);
    const bad = client.streamObjects({ ...of, subject, relation: 'B' }, { headers });
    const failing = async (): Promise<void> => {
      for await (const part of bad) throw new Error(`a part of nothing: ${part.objectIds.join()}`);
    };
    await expect(failing()).rejects.toThrow('[invalid_argument] relation:');
  });
});
