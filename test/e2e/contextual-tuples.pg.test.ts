import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  CheckRequestSchema,
  CheckResponseSchema,
  QueryService,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Check and BatchCheck of QueryService: questions with tuples that hold for one request. */
const { instance } = await instanceForFile({ GATEWAY_MAX_BATCH_ITEMS: '20' });

type Tuple = Readonly<Record<string, unknown>>;
const MODEL = {
  namespaces: {
    doc: {
      relations: {
        parent: {},
        banned: {},
        viewer: {
          exclusion: {
            include: {
              union: [{}, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }],
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
function tuple(namespace: string, object_id: string, relation: string, subject: unknown): Tuple {
  return { namespace, object_id, relation, subject };
}
const question = (object_id: string, subject: unknown, relation = 'viewer') => ({
  namespace: 'doc',
  object_id,
  relation,
  subject,
});
const write = (op: string, one: Tuple) =>
  call(instance, 'AuthzService/WriteRelationTuples', { updates: [{ op, tuple: one }] });
async function check(asked: unknown, contextual: readonly Tuple[] = [], scope: object = {}) {
  const body = { scope: { contextual_tuples: contextual, ...scope }, question: asked };
  const answer = await query(instance, 'Check', body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  const { allowed, undecided } = answer.body;
  return allowed === true ? 'allowed' : undecided === true ? 'undecided' : 'denied';
}

beforeAll(async () => {
  const model_json = JSON.stringify(MODEL);
  const updated = await call(instance, 'AdminService/UpdateProject', { id: 'default', model_json });
  expect(updated.status).toBe(200);
  await write('OP_INSERT', tuple('doc', 'plan', 'viewer', user('ann')));
  await write('OP_INSERT', tuple('doc', 'plan', 'parent', set('folder', 'f')));
});

describe('Check', () => {
  test('holds a tuple of the request for this request only', async () => {
    const granted = tuple('doc', 'plan', 'viewer', user('bob'));
    expect(await check(question('plan', user('bob')), [granted])).toBe('allowed');
    expect(await check(question('plan', user('bob')))).toBe('denied');
    const body = { ...question('plan', ''), subject_user_id: 'bob', subject: undefined };
    expect((await call(instance, 'AuthzService/Check', body)).body).toEqual({ allowed: false });
    const stored = await call(instance, 'AuthzService/ReadRelationTuples', { namespace: 'doc' });
    expect(stored.body['tuples']).toHaveLength(2);
  });

  test.each([
    ['through a stored tupleset', [tuple('folder', 'f', 'viewer', user('bob'))], 'allowed'],
    [
      'through names, objects and users that nothing stored mentions',
      [
        tuple('doc', 'plan', 'viewer', set('crew', 'new', 'aboard')),
        tuple('crew', 'new', 'aboard', user('bob')),
      ],
      'allowed',
    ],
    ['by the wildcard', [tuple('folder', 'f', 'viewer', { wildcard: true })], 'allowed'],
    [
      'of an object itself, which holds nobody',
      [tuple('doc', 'plan', 'viewer', set('x', 'y'))],
      'denied',
    ],
    [
      'with a ban beside the grant',
      [tuple('doc', 'plan', 'viewer', user('bob')), tuple('doc', 'plan', 'banned', user('bob'))],
      'denied',
    ],
    [
      'that has expired',
      [{ ...tuple('doc', 'plan', 'viewer', user('bob')), expires_at: '2001-01-01T00:00:00Z' }],
      'denied',
    ],
    [
      'that expires later',
      [{ ...tuple('doc', 'plan', 'viewer', user('bob')), expires_at: '2999-01-01T00:00:00Z' }],
      'allowed',
    ],
  ])('a grant %s', async (_name, contextual: readonly Tuple[], wanted) => {
    expect(await check(question('plan', user('bob')), contextual)).toBe(wanted);
    expect(await check(question('plan', user('bob')))).toBe('denied');
  });

  test('a tuple that is stored, too, counts as the request has it', async () => {
    const expired = '2001-01-01T00:00:00Z';
    const again = { ...tuple('doc', 'plan', 'viewer', user('ann')), expires_at: expired };
    expect(await check(question('plan', user('ann')), [again])).toBe('denied');
    expect(await check(question('plan', user('ann')))).toBe('allowed');
  });

  test('conditions of the request see its context; what they lack leaves a deny undecided', async () => {
    const granted = {
      ...tuple('doc', 'plan', 'viewer', user('bob')),
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    };
    const asked = question('plan', user('bob'));
    expect(await check(asked, [granted], { context: { age: 20 } })).toBe('allowed');
    expect(await check(asked, [granted], { context: { age: 17 } })).toBe('denied');
    expect(await check(asked, [granted])).toBe('undecided');
    const unknown = { ...granted, condition_name: 'unheard_of' };
    expect(await check(asked, [unknown], { context: { age: 20 } })).toBe('undecided');
    // A ban that cannot be decided keeps the deny undecided; the grant beside it does not help.
    const ban = { ...granted, relation: 'banned' };
    const plain = tuple('doc', 'plan', 'viewer', user('bob'));
    expect(await check(asked, [plain, ban])).toBe('undecided');
    expect(await check(asked, [plain, ban], { context: { age: 17 } })).toBe('allowed');
  });

  test('of a userset: structurally, by its members, and undecided', async () => {
    const crew = set('crew', 'c', 'aboard');
    const aboard = tuple('crew', 'c', 'aboard', user('ann'));
    expect(await check(question('plan', crew))).toBe('denied');
    expect(await check(question('plan', crew), [aboard])).toBe('allowed');
    expect(await check(question('plan', crew), [tuple('doc', 'plan', 'viewer', crew)])).toBe(
      'allowed',
    );
    const unsure = { ...aboard, condition_name: 'age_at_least', condition_params: { min_age: 18 } };
    expect(await check(question('plan', crew), [unsure])).toBe('undecided');
    expect(await check(question('plan', crew), [unsure], { context: { age: 3 } })).toBe('denied');
    expect(await check(question('plan', crew), [unsure], { context: { age: 30 } })).toBe('allowed');
  });

  test('names the revision of its answer, and answers after a write that a token names', async () => {
    const granted = tuple('doc', 'later', 'viewer', user('eve'));
    const written = await write('OP_INSERT', granted);
    const token = String(written.body['consistency_token']);
    const body = {
      scope: { at_least_consistency_token: token },
      question: question('later', user('eve')),
    };
    const answer = await query(instance, 'Check', body);
    expect(answer.body).toMatchObject({ allowed: true, undecided: false });
    // The only writer here: nothing came after.
    expect(answer.body['consistency_token']).toBe(token);
    const plain = {
      namespace: 'doc',
      object_id: 'later',
      relation: 'viewer',
      subject_user_id: 'eve',
      at_least_consistency_token: String(answer.body['consistency_token']),
    };
    expect((await call(instance, 'AuthzService/Check', plain)).body).toEqual({ allowed: true });
    const other = { ...body, scope: { tenant_id: 'other', at_least_consistency_token: token } };
    expect((await query(instance, 'Check', other)).status).toBe(400);
  });

  test('projects and tenants are apart, and tuples of another one are refused', async () => {
    const granted = tuple('doc', 'plan', 'viewer', user('bob'));
    const asked = question('plan', user('ann'));
    expect(await check(asked, [granted], { tenant_id: 'other' })).toBe('denied');
    for (const wrong of [{ tenant_id: 'other' }, { project_id: 'other' }]) {
      const scope = { contextual_tuples: [{ ...granted, ...wrong }] };
      const answer = await query(instance, 'Check', { scope, question: asked });
      expect(answer.status).toBe(400);
      const name = Object.keys(wrong)[0] ?? '';
      expect(answer.body['message']).toContain(`scope.contextual_tuples[0].${name}`);
    }
    const named = { ...granted, project_id: 'default', tenant_id: 'other' };
    expect(await check(question('plan', user('bob')), [named], { tenant_id: 'other' })).toBe(
      'allowed',
    );
  });
});

describe('BatchCheck', () => {
  test('one request, contexts of their own, and errors that stay with their items', async () => {
    const granted = {
      ...tuple('doc', 'plan', 'viewer', user('bob')),
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    };
    const asked = question('plan', user('bob'));
    const answer = await query(instance, 'BatchCheck', {
      scope: { contextual_tuples: [granted], context: { age: 20 } },
      items: [
        { question: asked },
        { question: asked, context: { age: 3 } },
        { question: asked, context: {} },
        {},
        { question: { ...asked, object_id: '#' } },
        { question: { ...asked, subject: { wildcard: true } } },
        { question: question('plan', user('ann')) },
        { question: question('plan', set('doc', 'plan', 'viewer')) },
      ],
    });
    expect(answer.status).toBe(200);
    const results = answer.body['results'] as {
      allowed: boolean;
      undecided: boolean;
      error: string;
    }[];
    expect(results.map((one) => [one.allowed, one.undecided])).toEqual([
      [true, false],
      [false, false],
      [false, true],
      [false, false],
      [false, false],
      [false, false],
      [true, false],
      [true, false],
    ]);
    expect(results.map((one) => one.error)).toEqual([
      '',
      '',
      '',
      'items[3].question: is required',
      expect.stringContaining('items[4].question.object_id: '),
      'items[5].question.subject: must be a user or a set',
      '',
      '',
    ]);
    expect(answer.body['consistency_token']).not.toBe('');
  });

  test('nothing asked, nothing answered; too much is refused', async () => {
    const none = await query(instance, 'BatchCheck', {});
    expect(none).toMatchObject({ status: 200, body: { results: [] } });
    const items = Array.from({ length: 21 }, () => ({ question: question('plan', user('ann')) }));
    const many = await query(instance, 'BatchCheck', { items });
    expect(many).toMatchObject({ status: 429, body: { code: 'resource_exhausted' } });
  });

  test('an item that exhausts its budget fails alone', async () => {
    // A tenant whose folder hangs below 300 others.
    const links = Array.from({ length: 300 }, (_, i) =>
      tuple('doc', 'wide', 'parent', set('folder', `w${i}`)),
    );
    const updates = links.map((one) => ({ op: 'OP_INSERT', tuple: one }));
    const id = 'poor';
    const model_json = JSON.stringify(MODEL);
    const settings = { id, name: id, model_json, max_check_reads: 100 };
    expect((await call(instance, 'AdminService/CreateProject', settings)).status).toBe(200);
    const wrote = { project_id: id, updates };
    expect((await call(instance, 'AuthzService/WriteRelationTuples', wrote)).status).toBe(200);
    const scope = {
      project_id: id,
      contextual_tuples: [tuple('doc', 'plan', 'viewer', user('bob'))],
    };
    const items = [
      { question: question('wide', user('bob')) },
      { question: question('plan', user('bob')) },
    ];
    const answer = await query(instance, 'BatchCheck', { scope, items });
    const results = answer.body['results'] as { error: string; error_reason: string }[];
    expect(results[0]).toMatchObject({ allowed: false });
    expect(results[0]?.error).toContain('exceeded the read budget of 100');
    expect(results[0]?.error_reason).toBe('BUDGET_EXHAUSTED');
    expect(results[1]).toEqual({
      error_reason: '',
      allowed: true,
      undecided: false,
      error: '',
      unknown_relation: false,
    });
    const single = await query(instance, 'Check', { scope, question: items[0]?.question });
    expect(single).toMatchObject({ status: 429, body: { code: 'resource_exhausted' } });
  });
});

describe('what a request may not hold', () => {
  const granted = tuple('doc', 'plan', 'viewer', user('bob'));
  const asked = question('plan', user('bob'));
  const refused = async (scope: unknown, message: string, status = 400): Promise<void> => {
    for (const [method, body] of [
      ['Check', { question: asked }],
      ['BatchCheck', { items: [{ question: asked }] }],
      ['WhatIf', { questions: [asked], updates: [{ op: 'OP_INSERT', tuple: granted }] }],
    ] as const) {
      const answer = await query(instance, method, { ...body, scope });
      expect(answer.status, method).toBe(status);
      expect(String(answer.body['message']), method).toContain(message);
    }
  };

  test.each([
    ['namespace', { ...granted, namespace: 'Upper' }],
    ['namespace', { ...granted, namespace: 'seat' }],
    ['object_id', { ...granted, object_id: '#' }],
    ['relation', { ...granted, relation: '' }],
    ['subject', { ...granted, subject: undefined }],
    ['subject.user_id', { ...granted, subject: user('a\u0000') }],
    ['subject.set.object_id', { ...granted, subject: set('x', '') }],
    ['subject.wildcard', { ...granted, subject: { wildcard: false } }],
    ['condition_name', { ...granted, condition_name: 'x'.repeat(257) }],
    ['condition_params', { ...granted, condition_params: { a: 1 } }],
  ])('a tuple with a bad %s, as a write', async (field, bad) => {
    await refused({ contextual_tuples: [granted, bad] }, `scope.contextual_tuples[1].${field}`);
    const wrong = { updates: [{ op: 'OP_INSERT', tuple: bad }] };
    expect((await call(instance, 'AuthzService/WriteRelationTuples', wrong)).status).toBe(400);
  });

  test('the same tuple twice, more than a hundred, bad scopes', async () => {
    const again = { ...granted, expires_at: '2999-01-01T00:00:00Z' };
    await refused(
      { contextual_tuples: [granted, again] },
      'scope.contextual_tuples[1]: is the same tuple as scope.contextual_tuples[0]',
    );
    const many = Array.from({ length: 101 }, (_, i) =>
      tuple('doc', `d${i}`, 'viewer', user('bob')),
    );
    await refused({ contextual_tuples: many }, 'scope.contextual_tuples: at most 100', 429);
    await refused({ tenant_id: 'a b' }, 'scope.tenant_id');
    await refused({ project_id: 'Upper' }, 'project_id');
    await refused({ context: { a: 'x\u0000' } }, 'scope.context');
    await refused({ at_least_consistency_token: 'x' }, 'token');
    const hundred = many.slice(1);
    expect(await check(question('d100', user('bob')), hundred)).toBe('allowed');
  });
});

describe('protocols', () => {
  const request = {
    scope: {
      contextualTuples: [
        {
          namespace: 'doc',
          objectId: 'plan',
          relation: 'viewer',
          subject: { kind: { case: 'userId' as const, value: 'bob' } },
          conditionName: 'age_at_least',
          conditionParams: { min_age: 18 },
        },
      ],
      context: { age: 20 },
    },
    question: {
      namespace: 'doc',
      objectId: 'plan',
      relation: 'viewer',
      subject: { kind: { case: 'userId' as const, value: 'bob' } },
    },
  };
  const headers = { authorization: `Bearer ${instance.token}` };

  test.each([
    ['Connect JSON', false, createConnectTransport, '1.1'],
    ['Connect binary', true, createConnectTransport, '1.1'],
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
    const { allowed, undecided, consistencyToken } = await client.check(request, { headers });
    expect([allowed, undecided, consistencyToken !== '']).toEqual([true, false, true]);
    const scope = { ...request.scope, context: undefined };
    const batch = await client.batchCheck(
      {
        scope: { contextualTuples: scope.contextualTuples },
        items: [
          { question: request.question },
          { question: request.question, context: { age: 30 } },
        ],
      },
      { headers },
    );
    expect(batch.results.map((one) => [one.allowed, one.undecided])).toEqual([
      [false, true],
      [true, false],
    ]);
    const update = { op: TupleUpdate_Op.INSERT, tuple: request.scope.contextualTuples[0] };
    const changed = await client.whatIf(
      {
        scope: { context: { age: 20 } },
        updates: [update],
        questions: [request.question],
      },
      { headers },
    );
    expect(changed.changedCount).toBe(1);
    expect(changed.results[0]).toMatchObject({ allowedBefore: false, allowedAfter: true });
  });

  test('@grpc/grpc-js', async () => {
    const address = instance.baseUrl.replace('http://', '');
    const client = new grpc.Client(address, grpc.credentials.createInsecure());
    const metadata = new grpc.Metadata();
    metadata.set('authorization', headers.authorization);
    const response = await new Promise<boolean>((resolve, reject) => {
      client.makeUnaryRequest(
        '/gatehouse.v1.QueryService/Check',
        (value: typeof request) =>
          Buffer.from(toBinary(CheckRequestSchema, create(CheckRequestSchema, value))),
        (bytes: Buffer) => fromBinary(CheckResponseSchema, bytes),
        request,
        metadata,
        (error, answer) => (error === null ? resolve(answer?.allowed ?? false) : reject(error)),
      );
    });
    client.close();
    expect(response).toBe(true);
  });
});
