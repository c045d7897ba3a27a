import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call, TEST_ADMIN_SECRET } from '../support/service.ts';

/* Lists over `but not` and `and` with all defaults, and what they say of objects that could not be decided. */
const { instance } = await instanceForFile();

const GATE = `condition adult(age: int) { age >= 18 }
namespace team {
  relation member: [user]
}
namespace folder {
  relation parent: [folder]
  relation revoked: [user] or revoked from parent
  relation viewer: [user, team#member] or viewer from parent
}
namespace doc {
  relation parent: [folder]
  relation revoked: [user, user with adult] or revoked from parent
  relation approved: [team#member]
  relation viewer: [user, user with adult] or viewer from parent
  relation can_view: viewer but not revoked
  relation can_sign: viewer and approved
}
`;
const COUNT = 10_000;
const PER_FOLDER = 25;
const maria = { user_id: 'maria' };
const folderOf = (doc: number): string => `f${Math.floor(doc / PER_FOLDER)}`;
const idOf = (doc: number): string => `d${String(doc).padStart(5, '0')}`;
const docs = Array.from({ length: COUNT }, (_, doc) => doc);
/** What f17 is revoked from reaches what lies in it: f37, f57 and so on. */
const isRevoked = (doc: number): boolean =>
  doc % 40 === 3 || Math.floor(doc / PER_FOLDER) % 20 === 17;
const viewable = docs.filter((doc) => !isRevoked(doc)).map(idOf);
const signable = docs.filter((doc) => doc % 3 === 0).map(idOf);

function tuple(place: string, subject: object, more: object = {}): object {
  const [namespace, object_id, relation] = place.split(/[:#]/);
  return { namespace, object_id, relation, subject, ...more };
}
const set = (namespace: string, object_id: string, relation = '') => ({
  set: { namespace, object_id, relation },
});

async function ok(method: string, body: object): Promise<Record<string, unknown>> {
  const answer = await query(instance, method, body);
  expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).toBe(200);
  return answer.body;
}

async function importAll(tenant_id: string, tuples: readonly object[]): Promise<void> {
  const answer = await fetch(`${instance.baseUrl}/v1/tuples:import?tenant_id=${tenant_id}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${instance.token}`, 'content-type': 'application/x-ndjson' },
    body: tuples.map((one) => `${JSON.stringify(one)}\n`).join(''),
  });
  expect(answer.status, await answer.text()).toBe(200);
}

beforeAll(async () => {
  const headers = { authorization: `Bearer ${instance.token}` };
  const models = await fetch(`${instance.baseUrl}/gatehouse.v1.ModelService/WriteModel`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      'x-admin-secret': TEST_ADMIN_SECRET,
    },
    body: JSON.stringify({ model: { gate: GATE } }),
  });
  expect(models.status, await models.text()).toBe(200);
  const folders = Array.from({ length: COUNT / PER_FOLDER }, (_, folder) =>
    tuple(`folder:f${folder}#parent`, set('folder', folder < 20 ? 'top' : `f${folder % 20}`)),
  );
  await importAll('library', [
    tuple('team:all#member', maria),
    tuple('folder:top#viewer', set('team', 'all', 'member')),
    tuple('folder:f17#revoked', maria),
    ...folders,
    ...docs.map((doc) => tuple(`doc:${idOf(doc)}#parent`, set('folder', folderOf(doc)))),
    ...docs.filter((doc) => doc % 40 === 3).map((doc) => tuple(`doc:${idOf(doc)}#revoked`, maria)),
    ...docs
      .filter((doc) => doc % 3 === 0)
      .map((doc) => tuple(`doc:${idOf(doc)}#approved`, set('team', 'all', 'member'))),
  ]);
  const adult = { condition_name: 'adult', condition_params: {} };
  await importAll('conditions', [
    tuple('doc:a#viewer', maria),
    tuple('doc:b#viewer', maria),
    tuple('doc:b#revoked', maria, adult),
    tuple('doc:c#viewer', maria),
    tuple('doc:d#viewer', maria, adult),
    tuple('doc:e#viewer', maria),
    tuple('doc:e#revoked', maria),
  ]);
}, 120_000);

describe(`${COUNT} documents under bans, with the default budget`, () => {
  const wanted = { can_view: viewable, can_sign: signable };

  test.each(['can_view', 'can_sign'] as const)('are all in one answer: %s', async (relation) => {
    const { status, body } = await call(instance, 'AuthzService/ListObjects', {
      tenant_id: 'library',
      namespace: 'doc',
      relation,
      subject_user_id: 'maria',
    });
    expect([status, body['message']]).toEqual([200, undefined]);
    expect(body['object_ids']).toEqual(wanted[relation]);
  });

  /** Ids of all pages of the size by default, and how many each has. */
  async function pagesOf(relation: string): Promise<{ ids: unknown[]; sizes: number[] }> {
    const ids: unknown[] = [];
    const sizes: number[] = [];
    let page_token: unknown = '';
    do {
      const of = { namespace: 'doc', relation, subject: maria, scope: { tenant_id: 'library' } };
      const page = await ok('ListObjects', { ...of, page_token });
      const some = page['object_ids'] as unknown[];
      expect([some.length > 0, page['undecided']]).toEqual([true, false]);
      ids.push(...some);
      sizes.push(some.length);
      page_token = page['next_page_token'];
    } while (page_token !== '');
    return { ids, sizes };
  }

  test.each(['can_view', 'can_sign'] as const)('come in pages: %s', async (relation) => {
    const { ids, sizes } = await pagesOf(relation);
    expect(ids).toEqual(wanted[relation]);
    expect(sizes.slice(0, -1).every((size) => size === 1_000)).toBe(true);
  });

  test('come in shorter pages where the budget ends, and the error of a whole list says so', async () => {
    const of = { tenant_id: 'library', namespace: 'doc', relation: 'can_view' };
    const whole = { ...of, subject_user_id: 'maria' };
    const raise = async (budget: object): Promise<void> => {
      const settings = { id: 'default', ...budget };
      expect((await call(instance, 'AdminService/UpdateProject', settings)).status).toBe(200);
    };
    await raise({ max_check_reads: 500 });
    try {
      const { status, body } = await call(instance, 'AuthzService/ListObjects', whole);
      expect([status, body['code']]).toEqual([429, 'resource_exhausted']);
      expect(body['message']).toBe(
        "evaluation of doc#can_view exceeded the read budget of 500: raise the project's max_check_reads, or take pages: gatehouse.v1.QueryService/ListObjects with a smaller page_size",
      );
      const { ids, sizes } = await pagesOf('can_view');
      expect(ids).toEqual(viewable);
      expect(Math.max(...sizes)).toBeLessThan(1_000);
    } finally {
      await raise({ clear_max_check_reads: true });
    }
  });
});

describe('what could not be decided', () => {
  const of = { namespace: 'doc', relation: 'can_view', subject: maria };
  const withoutAge = { tenant_id: 'conditions' };
  const ofAge = (age: number) => ({ ...withoutAge, context: { age } });

  test('is said by pages, each of its own part of the list', async () => {
    const first = await ok('ListObjects', { ...of, scope: withoutAge, page_size: 1 });
    expect([first['object_ids'], first['undecided']]).toEqual([['a'], false]);
    const page_token = first['next_page_token'];
    const second = await ok('ListObjects', { ...of, scope: withoutAge, page_size: 1, page_token });
    expect([second['object_ids'], second['undecided']]).toEqual([['c'], true]);
    expect(second['next_page_token']).toBe('');
    const all = await ok('ListObjects', { ...of, scope: withoutAge });
    expect([all['object_ids'], all['undecided']]).toEqual([['a', 'c'], true]);
  });

  test.each([
    [17, ['a', 'b', 'c']],
    [18, ['a', 'c', 'd']],
  ])('is decided with an age of %i', async (age, wanted) => {
    const all = await ok('ListObjects', { ...of, scope: ofAge(age) });
    expect([all['object_ids'], all['undecided']]).toEqual([wanted, false]);
  });

  test('is named by FilterObjects, in the order of the request', async () => {
    const object_ids = ['e', 'd', 'c', 'b', 'a', 'none'];
    const kept = await ok('FilterObjects', { ...of, object_ids, scope: withoutAge });
    expect(kept).toMatchObject({ object_ids: ['c', 'a'], undecided_object_ids: ['d', 'b'] });
    const known = await ok('FilterObjects', { ...of, object_ids, scope: ofAge(20) });
    expect(known).toMatchObject({ object_ids: ['d', 'c', 'a'], undecided_object_ids: [] });
  });

  test('is said by every part of a stream', async () => {
    const transport = createConnectTransport({ baseUrl: instance.baseUrl, httpVersion: '1.1' });
    const client = createClient(QueryService, transport);
    const headers = { authorization: `Bearer ${instance.token}` };
    const subject = { kind: { case: 'userId' as const, value: 'maria' } };
    for (const [tenantId, relation, undecided, parts] of [
      ['conditions', 'can_view', true, 1],
      ['conditions', 'can_sign', false, 1],
      ['library', 'can_view', false, Math.ceil(viewable.length / 1_000)],
    ] as const) {
      const request = { namespace: 'doc', relation, subject, scope: { tenantId } };
      const found: boolean[] = [];
      for await (const part of client.streamObjects(request, { headers })) {
        found.push(part.undecided);
      }
      expect([tenantId, relation, ...found]).toEqual([
        tenantId,
        relation,
        ...Array.from({ length: parts }, () => undecided),
      ]);
    }
  });
});
