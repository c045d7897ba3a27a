import { beforeAll, describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { door, key, MODEL } from './support.ts';

/* OpenFGA's HTTP API over a whole instance. */
const everything = { projects: '*', tenants: '*', services: '*' };
const { instance } = await instanceForFile({
  GATEWAY_OPENFGA_API: 'true',
  GATEWAY_CALLERS: JSON.stringify({
    callers: [
      {
        name: 'maker',
        tokens: ['maker-token-0123456789'],
        scopes: [{ ...everything, methods: ['read', 'write', 'manage', 'stores'] }],
      },
      {
        name: 'stranger',
        tokens: ['stranger-token-0123456789'],
        scopes: [
          { ...everything, projects: ['none-of-them'], methods: ['read', 'write', 'manage'] },
          { ...everything, methods: ['stores'] },
        ],
      },
      {
        name: 'reader',
        tokens: ['reader-token-0123456789'],
        scopes: [{ ...everything, methods: ['read'] }],
      },
    ],
  }),
});
const as = (name: string) => ({ baseUrl: instance.baseUrl, token: `${name}-token-0123456789` });
const maker = as('maker');
let store = '';
let model = '';

async function newStore(): Promise<string> {
  const made = await door(maker, 'POST', '/stores', { name: 'a store' });
  expect(made.status).toBe(201);
  return made.body.id;
}

async function ask(body: object, of = store): Promise<unknown> {
  const answer = await door(maker, 'POST', `/stores/${of}/check`, body);
  return answer.status === 200 ? answer.body.allowed : answer.body.code;
}

async function write(body: object): Promise<readonly [number, unknown]> {
  const { status, body: answer } = await door(maker, 'POST', `/stores/${store}/write`, body);
  return [status, answer.code];
}

beforeAll(async () => {
  store = await newStore();
  const written = await door(maker, 'POST', `/stores/${store}/authorization-models`, MODEL);
  expect(written, JSON.stringify(written.body)).toMatchObject({ status: 201 });
  model = written.body.authorization_model_id;
  const conditioned = {
    ...key('user:late', 'viewer', 'Doc/v2:1'),
    condition: { name: 'On_Time', context: { limit: 12 } },
  };
  const tuple_keys = [
    key('user:anne', 'Owner', 'Doc/v2:1'),
    key('user:anne', 'blocked', 'Doc/v2:2'),
    key('user:*', 'viewer', 'Doc/v2:2'),
    key('group:eng#member', 'viewer', 'Doc/v2:3'),
    key('user:bob', 'member', 'group:eng'),
    conditioned,
  ];
  expect(await write({ writes: { tuple_keys } })).toEqual([200, undefined]);
});

describe('stores', () => {
  test('are made, found, listed and deleted by who made them (O2)', async () => {
    const id = await newStore();
    expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    const path = `/stores/${id}`;
    expect(await door(maker, 'GET', path.toLowerCase())).toMatchObject({
      status: 200,
      body: { id },
    });
    expect(await door(maker, 'GET', '//stores//' + id)).toMatchObject({ status: 200 });
    const listed = await door(maker, 'GET', '/stores?page_size=100');
    expect(listed.body.stores.map((one) => one.id)).toContain(id);
    expect(await door(maker, 'DELETE', path)).toMatchObject({ status: 204 });
    expect(await door(maker, 'DELETE', path)).toMatchObject({ status: 204 });
    expect(await door(maker, 'GET', path)).toMatchObject({
      status: 404,
      body: { code: 'store_id_not_found' },
    });
    expect(await ask({ tuple_key: key('user:anne', 'viewer', 'Doc/v2:1') }, id)).toBe(
      'store_id_not_found',
    );
  });

  test('come in pages, whose tokens are of one list', async () => {
    await newStore();
    await newStore();
    const first = await door(maker, 'GET', '/stores?page_size=1');
    expect(first.body.stores).toHaveLength(1);
    const token = encodeURIComponent(first.body.continuation_token);
    const second = await door(maker, 'GET', `/stores?page_size=1&continuation_token=${token}`);
    expect(second.body.stores[0]).not.toEqual(first.body.stores[0]);
    const foreign = `/stores/${store}/authorization-models?continuation_token=${token}`;
    expect(await door(maker, 'GET', foreign)).toMatchObject({
      status: 400,
      body: { code: 'invalid_continuation_token' },
    });
  });

  test('of another caller are not found, whatever is asked of them', async () => {
    const other = as('stranger');
    const asked = key('user:anne', 'Owner', 'Doc/v2:1');
    const calls = [
      ['GET', ''],
      ['POST', '/check', { tuple_key: asked }],
      ['POST', '/batch-check', { checks: [{ tuple_key: asked, correlation_id: '1' }] }],
      ['POST', '/list-objects', { type: 'Doc/v2', relation: 'Owner', user: 'user:anne' }],
      ['POST', '/write', { writes: { tuple_keys: [asked] } }],
      ['POST', '/read', {}],
      ['GET', '/authorization-models'],
      ['GET', `/authorization-models/${model}`],
      ['POST', '/authorization-models', MODEL],
    ] as const;
    for (const [method, path, body] of calls) {
      const answer = await door(other, method, `/stores/${store}${path}`, body);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'store_id_not_found']);
    }
    expect((await door(other, 'GET', '/stores')).body.stores).toEqual([]);
  });

  test('ask for the class of methods, and for its name to be deleted', async () => {
    expect(await door(as('reader'), 'POST', '/stores', { name: 'a store' })).toMatchObject({
      status: 403,
    });
    expect(await door(instance, 'POST', '/stores', { name: 'a store' })).toMatchObject({
      status: 201,
    });
    expect(await door(instance, 'DELETE', `/stores/${store}`)).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    });
    expect(
      await door(as('reader'), 'POST', `/stores/${store}/write`, {
        writes: { tuple_keys: [key('user:x', 'Owner', 'Doc/v2:1')] },
      }),
    ).toMatchObject({ status: 403 });
  });

  test('ask for a credential', async () => {
    const nobody = { baseUrl: instance.baseUrl, token: 'none' };
    expect(await door(nobody, 'GET', '/stores')).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    });
  });
});

describe('models', () => {
  test('are kept as they came, and listed newest first', async () => {
    const found = await door(maker, 'GET', `/stores/${store}/authorization-models/${model}`);
    expect(found.body.authorization_model).toEqual({ id: model, ...MODEL });
    const listed = await door(maker, 'GET', `/stores/${store}/authorization-models`);
    expect(listed.body.authorization_models[0]?.id).toBe(model);
  });

  test('that are none are refused, and one passes over stored tuples that do not fit (O1)', async () => {
    const of = await newStore();
    const path = `/stores/${of}/authorization-models`;
    const bad = {
      schema_version: '1.1',
      type_definitions: [{ type: 'doc', relations: { a: { this: {} } } }],
    };
    expect(await door(maker, 'POST', path, bad)).toMatchObject({
      status: 400,
      body: { code: 'invalid_authorization_model' },
    });
    expect(await door(maker, 'POST', path, {})).toMatchObject({
      status: 400,
      body: { code: 'type_definitions_too_few_items' },
    });
    const text = JSON.stringify(MODEL);
    const owned = '"Owner":{"directly_related_user_types":[{"type":"user"}]}';
    const others = text.replace(owned, owned.replace('user"}', 'group"}'));
    expect(others).not.toBe(text);
    const fit = (await door(maker, 'POST', path, MODEL)).body.authorization_model_id;
    const tuple_key = key('user:anne', 'Owner', 'Doc/v2:1');
    await door(maker, 'POST', `/stores/${of}/write`, { writes: { tuple_keys: [tuple_key] } });
    expect(await ask({ tuple_key }, of)).toBe(true);
    expect((await door(maker, 'POST', path, others)).status).toBe(201);
    expect(await ask({ tuple_key }, of)).toBe(false);
    expect(await ask({ tuple_key, authorization_model_id: fit }, of)).toBe(true);
  });

  test('that are pinned answer and admit writes, whatever is the latest', async () => {
    const of = await newStore();
    const path = `/stores/${of}/authorization-models`;
    const asked = { tuple_key: key('user:anne', 'Owner', 'Doc/v2:1') };
    expect(await ask(asked, of)).toBe('latest_authorization_model_not_found');
    const first = (await door(maker, 'POST', path, MODEL)).body.authorization_model_id;
    expect(await ask({ ...asked, authorization_model_id: first }, of)).toBe(false);
    const second = (await door(maker, 'POST', path, MODEL)).body.authorization_model_id;
    expect(await ask({ ...asked, authorization_model_id: second }, of)).toBe(false);
    const grant = { writes: { tuple_keys: [asked.tuple_key] } };
    const writes = `/stores/${of}/write`;
    expect(await door(maker, 'POST', writes, grant)).toMatchObject({ status: 200 });
    // The third knows no owners at all.
    const none = JSON.stringify(MODEL).replaceAll('"Owner"', '"Holder"');
    const third = (await door(maker, 'POST', path, none)).body.authorization_model_id;
    expect(await ask({ ...asked, authorization_model_id: third }, of)).toBe('validation_error');
    for (const pin of [first, second, first]) {
      expect(await ask({ ...asked, authorization_model_id: pin }, of)).toBe(true);
      const listed = await door(maker, 'POST', `/stores/${of}/list-objects`, {
        type: 'Doc/v2',
        relation: 'Owner',
        user: 'user:anne',
        authorization_model_id: pin,
      });
      expect(listed.body).toEqual({ objects: ['Doc/v2:1'] });
    }
    // Each writes what it admits, and the latest ignores what is not its own.
    const later = { tuple_key: key('user:ben', 'Owner', 'Doc/v2:1') };
    const laterGrant = { writes: { tuple_keys: [later.tuple_key] } };
    for (const [pin, status] of [
      [third, 400],
      ['', 400],
      [first, 200],
    ] as const) {
      const pinned = { ...laterGrant, authorization_model_id: pin };
      expect((await door(maker, 'POST', writes, pinned)).status, pin).toBe(status);
    }
    expect(await ask({ ...later, authorization_model_id: second }, of)).toBe(true);
    const holder = { tuple_key: key('user:ben', 'Holder', 'Doc/v2:1') };
    expect(await ask(holder, of)).toBe(false);
    expect(await ask({ ...asked, authorization_model_id: '0'.repeat(26) }, of)).toBe(
      'authorization_model_not_found',
    );
    const foreign = { ...asked, authorization_model_id: model };
    expect(await ask(foreign, of)).toBe('authorization_model_not_found');
  });
});

describe('checks', () => {
  test.each([
    ['user:anne', 'Owner', '1', true],
    ['user:anne', 'viewer', '1', true],
    ['user:anne', 'viewer', '2', false],
    ['user:carl', 'viewer', '2', true],
    ['user:bob', 'viewer', '3', true],
    ['user:carl', 'viewer', '3', false],
    ['group:eng#member', 'viewer', '3', true],
    // A userset matches no wildcard, and is not asked about by its members.
    ['group:eng#member', 'viewer', '2', false],
    ['group:other#member', 'viewer', '3', false],
  ])('%s %s %s is %s', async (user, relation, id, allowed) => {
    expect(await ask({ tuple_key: key(user, relation, `Doc/v2:${id}`) })).toBe(allowed);
  });

  test('read conditions with the context of the request', async () => {
    const tuple_key = key('user:late', 'viewer', 'Doc/v2:1');
    expect(await ask({ tuple_key, context: { hour: 3 } })).toBe(true);
    expect(await ask({ tuple_key, context: { hour: 13 } })).toBe(false);
    expect(await ask({ tuple_key })).toBe('validation_error');
  });

  test('take contextual tuples that the model admits', async () => {
    const tuple_key = key('user:dora', 'Owner', 'Doc/v2:9');
    expect(await ask({ tuple_key })).toBe(false);
    const given = (one: object): object => ({
      tuple_key,
      contextual_tuples: { tuple_keys: [one] },
    });
    expect(await ask(given(tuple_key))).toBe(true);
    expect(await ask(given(key('group:eng', 'Owner', 'Doc/v2:9')))).toBe('validation_error');
    expect(await ask(given(key('user:dora', 'nope', 'Doc/v2:9')))).toBe('validation_error');
  });

  test('are answered by correlation id, errors each by itself', async () => {
    const item = (id: string, one: object, more: object = {}): object => ({
      correlation_id: id,
      tuple_key: one,
      ...more,
    });
    const dora = key('user:dora', 'Owner', 'Doc/v2:9');
    const answer = await door(maker, 'POST', `/stores/${store}/batch-check`, {
      checks: [
        item('a', key('user:anne', 'Owner', 'Doc/v2:1')),
        item('b', dora),
        item('c', dora, { contextual_tuples: { tuple_keys: [dora] } }),
        item('d', key('user:anne', 'nope', 'Doc/v2:1')),
        item('e', key('user:late', 'viewer', 'Doc/v2:1')),
        item('f', key('user:late', 'viewer', 'Doc/v2:1'), { context: { hour: 1 } }),
        item('__proto__', key('user:anne', 'Owner', 'Doc/v2:1')),
      ],
    });
    const error = { error: { input_error: 'validation_error', message: expect.any(String) } };
    const result = answer.body.result;
    expect(new Map(Object.entries(result))).toEqual(
      new Map<string, unknown>([
        ['a', { allowed: true }],
        ['b', { allowed: false }],
        ['c', { allowed: true }],
        ['d', error],
        ['e', error],
        ['f', { allowed: true }],
        ['__proto__', { allowed: true }],
      ]),
    );
  });

  test('list all objects', async () => {
    const list = async (user: string): Promise<unknown> => {
      const body = { type: 'Doc/v2', relation: 'viewer', user };
      return (await door(maker, 'POST', `/stores/${store}/list-objects`, body)).body.objects;
    };
    expect(await list('user:anne')).toEqual(['Doc/v2:1']);
    expect(await list('user:bob')).toEqual(['Doc/v2:2', 'Doc/v2:3']);
    expect(await list('group:eng#member')).toEqual(['Doc/v2:3']);
  });
});

describe('tuples', () => {
  test('are written once, and deleted where they are', async () => {
    const one = key('user:zoe', 'Owner', 'Doc/v2:77');
    const failed = [400, 'write_failed_due_to_invalid_input'];
    expect(await write({ writes: { tuple_keys: [one] } })).toEqual([200, undefined]);
    expect(await write({ writes: { tuple_keys: [one] } })).toEqual(failed);
    const ignored = { tuple_keys: [one], on_duplicate: 'ignore', on_missing: 'ignore' };
    expect(await write({ writes: ignored })).toEqual([200, undefined]);
    expect(await ask({ tuple_key: one })).toBe(true);
    expect(await write({ deletes: { tuple_keys: [one] } })).toEqual([200, undefined]);
    expect(await ask({ tuple_key: one })).toBe(false);
    expect(await write({ deletes: { tuple_keys: [one] } })).toEqual(failed);
    expect(await write({ deletes: ignored })).toEqual([200, undefined]);
  });

  test('under another condition are a conflict where duplicates are ignored', async () => {
    const late = key('user:late', 'viewer', 'Doc/v2:1');
    const conflict = { tuple_keys: [late], on_duplicate: 'ignore' };
    expect(await write({ writes: conflict })).toEqual([409, 'write_failed_due_to_invalid_input']);
  });

  test.each([
    [{}, 'invalid_write_input'],
    [{ writes: { tuple_keys: [] } }, 'validation_error'],
    [{ writes: { tuple_keys: [key('group:eng', 'Owner', 'Doc/v2:1')] } }, 'validation_error'],
    [{ writes: { tuple_keys: [key('user:a', 'viewer', 'nope:1')] } }, 'validation_error'],
    [{ writes: { tuple_keys: [key('user:a', 'Owner', 'Doc/v2:*')] } }, 'validation_error'],
    [{ writes: { tuple_keys: [key('user:a', 'Owner', 'Doc/v2')] } }, 'validation_error'],
    [{ writes: { tuple_keys: [key('user:*', 'Owner', 'Doc/v2:1')] } }, 'validation_error'],
    [
      { writes: { tuple_keys: [1, 2].map(() => key('user:a', 'Owner', 'Doc/v2:1')) } },
      'cannot_allow_duplicate_tuples_in_one_request',
    ],
    [
      {
        writes: {
          tuple_keys: Array.from({ length: 101 }, (_, i) => key(`user:${i}`, 'Owner', 'Doc/v2:1')),
        },
      },
      'exceeded_entity_limit',
    ],
  ])('%# are refused as OpenFGA refuses them', async (body, code) => {
    expect(await write(body)).toEqual([400, code]);
  });

  test('are read as they came, in pages', async () => {
    const read = (body: object) => door(maker, 'POST', `/stores/${store}/read`, body);
    const keys: object[] = [];
    let continuation_token = '';
    do {
      const page = await read({ page_size: 2, continuation_token });
      expect(page.status).toBe(200);
      for (const { key: one, timestamp } of page.body.tuples) {
        expect(Date.parse(timestamp)).toBeGreaterThan(0);
        keys.push(one);
      }
      continuation_token = page.body.continuation_token;
    } while (continuation_token !== '');
    expect(keys).toHaveLength(6);
    expect(keys).toContainEqual(key('user:*', 'viewer', 'Doc/v2:2'));
    expect(keys).toContainEqual(key('group:eng#member', 'viewer', 'Doc/v2:3'));
    expect(keys).toContainEqual({
      ...key('user:late', 'viewer', 'Doc/v2:1'),
      condition: { name: 'On_Time', context: { limit: 12 } },
    });
    const ofDoc = await read({ tuple_key: { object: 'Doc/v2:1', relation: 'Owner' } });
    expect(ofDoc.body.tuples.map((one) => one.key)).toEqual([
      key('user:anne', 'Owner', 'Doc/v2:1'),
    ]);
    const ofUser = await read({ tuple_key: { object: 'Doc/v2:', user: 'user:*' } });
    expect(ofUser.body.tuples).toHaveLength(1);
    expect(await read({ tuple_key: { object: 'Doc/v2:' } })).toMatchObject({ status: 400 });
    expect(await read({ continuation_token: 'zz' })).toMatchObject({
      body: { code: 'invalid_continuation_token' },
    });
    const { continuation_token: next } = (await read({ page_size: 1 })).body;
    const other = await newStore();
    expect(
      await door(maker, 'POST', `/stores/${other}/read`, { continuation_token: next }),
    ).toMatchObject({ status: 400, body: { code: 'invalid_continuation_token' } });
  });
});

describe('what is not here', () => {
  test.each([
    ['PATCH', ''],
    ['POST', '/expand'],
    ['GET', '/changes'],
    ['POST', '/streamed-list-objects'],
    ['POST', '/list-users'],
    ['GET', '/assertions/01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    ['PUT', '/assertions/01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  ])('%s %s answers 501', async (method, path) => {
    const body = method === 'GET' ? undefined : {};
    expect(await door(maker, method, `/stores/${store}${path}`, body)).toMatchObject({
      status: 501,
      body: { code: 'unimplemented' },
    });
  });

  test('an unknown path is one of OpenFGA as well', async () => {
    expect(await door(maker, 'GET', '/nothing')).toMatchObject({
      status: 404,
      body: { code: 'undefined_endpoint' },
    });
  });
});
