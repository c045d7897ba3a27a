import { create, toBinary } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  CheckRequestSchema,
  type UsersetMode,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Usersets as subjects of every method of QueryService, with what their members hold and exactly. */
const { instance } = await instanceForFile();
const EXACT = { userset_mode: 'USERSET_MODE_EXACT' };
const set = (namespace: string, object_id: string, relation = '') => ({
  set: { namespace, object_id, relation },
});
const ENG = set('group', 'eng', 'member');
const tuple = (text: string, subject: unknown) => {
  const [namespace, object_id, relation] = text.split(/[:#]/);
  return { namespace, object_id, relation, subject };
};
const viewer = (object_id: string, subject: unknown = ENG) =>
  tuple(`doc:${object_id}#viewer`, subject);
const objects = { namespace: 'doc', relation: 'viewer', subject: ENG };

beforeAll(async () => {
  const updates = [
    viewer('named'),
    viewer('above', set('group', 'all', 'member')),
    tuple('group:all#member', ENG),
    tuple('group:eng#member', { user_id: 'ann' }),
    viewer('of-ann', { user_id: 'ann' }),
    viewer('public', { wildcard: true }),
    viewer('of-object', set('group', 'eng')),
  ].map((one) => ({ op: 'OP_INSERT', tuple: one }));
  const { status } = await call(instance, 'AuthzService/WriteRelationTuples', { updates });
  expect(status).toBe(200);
});

async function ok(method: string, body: object) {
  const answer = await query(instance, method, body);
  expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).toBe(200);
  return answer.body;
}
const ALL = ['above', 'named', 'of-ann', 'of-object', 'public'];
const EXACTLY = ['above', 'named'];
const MEMBERS_TOO = ['above', 'named', 'of-ann', 'public'];

describe.each([
  ['exactly', EXACT, EXACTLY],
  ['members too', { userset_mode: 'USERSET_MODE_MEMBERS_TOO' }, MEMBERS_TOO],
  ['as a number', { userset_mode: 2 }, EXACTLY],
  ['without a mode', {}, MEMBERS_TOO],
] as const)('a set asked about %s', (_, scope, held) => {
  test('by Check, Explain, BatchCheck and FilterObjects', async () => {
    for (const object of ALL) {
      const asked = { scope, question: viewer(object) };
      const allowed = (held as readonly string[]).includes(object);
      expect([object, (await ok('Check', asked))['allowed']]).toEqual([object, allowed]);
      const explanation = await ok('Explain', asked);
      expect([object, explanation['allowed']]).toEqual([object, allowed]);
      if (allowed) expect(explanation['derivation']).toBeDefined();
    }
    const items = ALL.map((object) => ({ question: viewer(object) }));
    const { results } = (await ok('BatchCheck', { scope, items })) as {
      results: readonly { allowed: boolean }[];
    };
    expect(ALL.filter((__, at) => results[at]?.allowed === true)).toEqual(held);
    expect(
      (await ok('FilterObjects', { scope, ...objects, object_ids: ALL }))['object_ids'],
    ).toEqual(held);
  });

  test('by lists of objects, whole, in pages and as a stream of relations', async () => {
    expect((await ok('ListObjects', { scope, ...objects }))['object_ids']).toEqual(held);
    const pages: unknown[] = [];
    let page_token = '';
    do {
      const page = await ok('ListObjects', { scope, ...objects, page_size: 1, page_token });
      pages.push(...(page['object_ids'] as string[]));
      page_token = String(page['next_page_token']);
    } while (page_token !== '');
    expect(pages).toEqual(held);
    for (const object_id of ALL) {
      const relations = await ok('ListRelations', {
        scope,
        namespace: 'doc',
        object_id,
        subject: ENG,
      });
      const wanted = (held as readonly string[]).includes(object_id) ? ['viewer'] : [];
      expect([object_id, relations['relations']]).toEqual([object_id, wanted]);
    }
  });

  test('by WhatIf, and with tuples of the request', async () => {
    const updates = [{ op: 'OP_INSERT', tuple: tuple('group:new#member', ENG) }];
    const contextual_tuples = [viewer('new', set('group', 'new', 'member')), viewer('own')];
    const asked = { scope: { ...scope, contextual_tuples }, updates };
    const questions = [viewer('new'), viewer('own'), viewer('of-ann')];
    const { results } = await ok('WhatIf', { ...asked, questions });
    const ofAnn = (held as readonly string[]).includes('of-ann');
    expect(results).toMatchObject([
      { allowed_before: false, allowed_after: true },
      { allowed_before: true, allowed_after: true },
      { allowed_before: ofAnn, allowed_after: ofAnn },
    ]);
  });
});

test('a page token goes on with its own mode alone', async () => {
  const asked = { ...objects, page_size: 1 };
  const first = await ok('ListObjects', { ...asked, scope: EXACT });
  const page_token = first['next_page_token'];
  expect(page_token).not.toBe('');
  const other = await query(instance, 'ListObjects', { ...asked, page_token });
  expect([other.status, String(other.body['message'])]).toEqual([
    400,
    expect.stringContaining('page_token'),
  ]);
  const next = await ok('ListObjects', { ...asked, scope: EXACT, page_token });
  expect(next['object_ids']).toEqual(['named']);
});

test('an explanation of an exact deny names neither a member nor a wildcard', async () => {
  const denied = await ok('Explain', { scope: EXACT, question: viewer('of-ann') });
  expect(denied).toMatchObject({ allowed: false, undecided: false, member_user_id: '' });
  expect(denied['obstacles']).toMatchObject([{ kind: 'OBSTACLE_KIND_NO_GRANT' }]);
  expect(denied['remedies']).toEqual(
    expect.arrayContaining([expect.objectContaining({ object_id: 'of-ann', subject: ENG })]),
  );
  const allowed = await ok('Explain', { scope: EXACT, question: viewer('above') });
  expect(allowed['derivation']).toMatchObject({ nodes: [{ step: 'DERIVATION_STEP_USERSET' }, {}] });
});

test('an object itself, and a set on itself', async () => {
  const check = async (question: object) =>
    (await ok('Check', { scope: EXACT, question }))['allowed'];
  expect(await check(viewer('of-object', set('group', 'eng')))).toBe(true);
  expect(await check(viewer('named', set('group', 'eng')))).toBe(false);
  expect(await check(viewer('public', set('group', 'eng')))).toBe(false);
  expect(await check(tuple('group:eng#member', ENG))).toBe(true);
  expect(await check(tuple('group:never#member', set('group', 'never', 'member')))).toBe(true);
});

describe('a mode that is none', () => {
  test.each([
    ['another name', { userset_mode: 'USERSET_MODE_EXACTLY' }],
    ['another number', { userset_mode: 3 }],
    ['a number below', { userset_mode: -1 }],
    ['a fraction', { userset_mode: 1.5 }],
    ['an object', { userset_mode: {} }],
    ['a truth', { userset_mode: true }],
  ])('%s is refused by its name, whatever asks', async (_, scope) => {
    const asked: readonly [string, object][] = [
      ['Check', { scope, question: viewer('named') }],
      ['Explain', { scope, question: viewer('named') }],
      ['BatchCheck', { scope, items: [{ question: viewer('named') }] }],
      ['WhatIf', { scope, updates: [], questions: [viewer('named')] }],
      ['FilterObjects', { scope, ...objects, object_ids: ['named'] }],
      ['ListObjects', { scope, ...objects }],
      ['ListRelations', { scope, namespace: 'doc', object_id: 'named', subject: ENG }],
      ['ListSubjects', { scope, namespace: 'doc', object_id: 'named', relation: 'viewer' }],
    ];
    for (const [method, body] of asked) {
      const answer = await query(instance, method, body);
      expect([method, answer.status]).toEqual([method, 400]);
      expect(answer.body['code']).toBe('invalid_argument');
      expect(String(answer.body['message'])).toContain('userset_mode');
    }
  });

  test('as a number in a binary body, too', async () => {
    const kind = { case: 'userId' as const, value: 'ann' };
    const question = {
      namespace: 'doc',
      objectId: 'of-ann',
      relation: 'viewer',
      subject: { kind },
    };
    const bodyOf = (usersetMode: UsersetMode) =>
      toBinary(
        CheckRequestSchema,
        create(CheckRequestSchema, { scope: { usersetMode }, question }),
      );
    const headers = {
      'content-type': 'application/proto',
      authorization: `Bearer ${instance.token}`,
    };
    const url = `${instance.baseUrl}/gatehouse.v1.QueryService/Check`;
    const statuses: number[] = [];
    for (const mode of [0, 1, 2, 3, 99, -1]) {
      const answer = await fetch(url, {
        method: 'POST',
        headers,
        body: bodyOf(mode as UsersetMode),
      });
      statuses.push(answer.status);
      const text = await answer.text();
      if (answer.status !== 200) expect(text).toContain('scope.userset_mode');
    }
    expect(statuses).toEqual([200, 200, 200, 400, 400, 400]);
  });
});

test('workspace.v1 asks with the members, and has no such field', async () => {
  const { set: subject_set } = ENG;
  const asked = { namespace: 'doc', object_id: 'of-ann', relation: 'viewer', subject_set };
  const answer = await call(instance, 'AuthzService/Check', asked);
  expect([answer.status, answer.body['allowed']]).toEqual([200, true]);
  const refused = await call(instance, 'AuthzService/Check', { ...asked, userset_mode: 2 });
  expect(refused.status).toBe(400);
});
