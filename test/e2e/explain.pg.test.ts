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
  DerivationStep,
  ExplainRequestSchema,
  ExplainResponseSchema,
  QueryService,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile, startInstance } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Why Check answers as it does, over the wire. */
const { database, instance } = await instanceForFile();

type Json = Readonly<Record<string, unknown>>;
type Node = Json & {
  readonly step: string;
  readonly tuple?: Json;
  readonly children: number[];
};
type Tree = Json & { readonly nodes: readonly Node[] };
type Blocked = Json & {
  readonly kind: string;
  readonly message: string;
  readonly derivation?: Tree;
};
type Explained = Json & {
  readonly allowed: boolean;
  readonly undecided: boolean;
  readonly derivation?: Tree;
  readonly obstacles: Blocked[];
  readonly remedies: Json[];
  readonly truncated: boolean;
};

const MODEL = {
  namespaces: {
    doc: {
      relations: {
        parent: {},
        banned: {},
        editor: {},
        reviewer: {},
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
        publisher: { intersection: [{ computed: 'editor' }, { computed: 'reviewer' }] },
        inherited: { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
      },
    },
    folder: { relations: { viewer: {} } },
  },
};

const user = (user_id: string) => ({ user_id });
const set = (namespace: string, object_id: string, relation = '') => ({
  set: { namespace, object_id, relation },
});
function tuple(object: string, relation: string, subject: unknown): Json {
  const [namespace, object_id] = object.split(':');
  return { namespace, object_id, relation, subject };
}

async function ok<T = Json>(answer: Promise<{ status: number; body: Json }>): Promise<T> {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBe(200);
  return body as T;
}

async function write(tuples: readonly Json[], scope: Json = {}, at = instance): Promise<string> {
  const updates = tuples.map((one) => ({ op: 'OP_INSERT', tuple: one }));
  const body = { ...scope, updates };
  const written = await ok(call(at, 'AuthzService/WriteRelationTuples', body));
  return String(written['consistency_token']);
}

/** Explains, and holds the answer against Check's. */
async function explain(question: Json, scope: Json = {}, at = instance): Promise<Explained> {
  const explained = await ok<Explained>(query(at, 'Explain', { scope, question }));
  const { allowed, undecided } = await ok(query(at, 'Check', { scope, question }));
  expect([explained.allowed, explained.undecided]).toEqual([allowed, undecided]);
  return explained;
}

const shortTuple = (one: Json | undefined): string => {
  const subject = one?.['subject'] as { user_id?: string; set?: Json; wildcard?: boolean };
  const of = subject.set;
  const who =
    of === undefined
      ? `user:${subject.user_id ?? '*'}`
      : `${String(of['namespace'])}:${String(of['object_id'])}#${String(of['relation'])}`;
  const { namespace, object_id, relation } = one as Record<string, string>;
  return `${namespace}:${object_id}#${relation}@${who}`;
};
/** A tree in a line: step and tuple of each node. */
function line({ nodes }: Tree, at = 0): string {
  const { step, tuple: on, children } = nodes[at] as Node;
  const name = step.replace('DERIVATION_STEP_', '').toLowerCase();
  const own = on === undefined ? name : `${name} ${shortTuple(on)}`;
  const below = children.map((child) => line({ nodes }, child));
  return below.length === 0 ? own : `${own} (${below.join(', ')})`;
}

beforeAll(async () => {
  const model_json = JSON.stringify(MODEL);
  await ok(call(instance, 'AdminService/UpdateProject', { id: 'default', model_json }));
  await write([
    tuple('doc:plan', 'parent', set('folder', 'f')),
    tuple('folder:f', 'viewer', set('group', 'eng', 'member')),
    { ...tuple('group:eng', 'member', user('ann')), expires_at: '2999-01-01T00:00:00Z' },
    tuple('doc:plan', 'viewer', set('group', 'staff', 'member')),
    tuple('group:staff', 'member', user('mal')),
    tuple('doc:plan', 'banned', set('group', 'suspended', 'member')),
    tuple('group:suspended', 'member', user('mal')),
    { ...tuple('doc:plan', 'viewer', user('old')), expires_at: '2001-01-01T00:00:00Z' },
    {
      ...tuple('doc:plan', 'viewer', user('kid')),
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    },
    tuple('doc:plan', 'editor', user('eve')),
  ]);
});

describe('an allow', () => {
  test('is the shortest way, with its tuples, its rewrites and its end', async () => {
    const found = await explain(tuple('doc:plan', 'viewer', user('ann')));
    expect(line(found.derivation as Tree)).toBe(
      'exclusion (tuple_to_userset doc:plan#parent@folder:f# (userset folder:f#viewer@group:eng#member (direct group:eng#member@user:ann)))',
    );
    expect(found).toMatchObject({
      allowed: true,
      holds_until: '2999-01-01T00:00:00Z',
      obstacles: [],
      remedies: [],
      truncated: false,
      member_user_id: '',
    });
    expect(Number(found['reads'])).toBeGreaterThan(0);
    expect(found['consistency_token']).not.toBe('');
    expect(found.derivation?.nodes[0]).toMatchObject({
      namespace: 'doc',
      object_id: 'plan',
      relation: 'viewer',
      contextual: false,
    });
  });

  test('tells tuples of the request apart', async () => {
    const contextual_tuples = [tuple('group:eng', 'member', user('bob'))];
    const found = await explain(tuple('doc:plan', 'viewer', user('bob')), { contextual_tuples });
    const said = found.derivation?.nodes.map((node) => node['contextual']);
    expect(said).toEqual([false, false, false, true]);
    expect(found).not.toHaveProperty('holds_until');
  });

  test('of a set: what includes it, or the member through whom it holds', async () => {
    const included = await explain(tuple('doc:plan', 'viewer', set('folder', 'f', 'viewer')));
    expect(line(included.derivation as Tree)).toBe(
      'exclusion (tuple_to_userset doc:plan#parent@folder:f# (identity))',
    );
    await write([tuple('group:pair', 'member', user('eve'))]);
    const member = await explain(tuple('doc:plan', 'editor', set('group', 'pair', 'member')));
    expect(member).toMatchObject({ member_user_id: 'eve' });
    expect(line(member['membership'] as Tree)).toBe('direct group:pair#member@user:eve');
    expect(line(member.derivation as Tree)).toBe('direct doc:plan#editor@user:eve');
  });
});

describe('a deny', () => {
  test('by a ban says why the subject is in it', async () => {
    const found = await explain(tuple('doc:plan', 'viewer', user('mal')));
    expect(found.obstacles).toHaveLength(1);
    expect(found.obstacles[0]).toMatchObject({
      kind: 'OBSTACLE_KIND_EXCLUDED',
      message: 'user:mal is excluded from doc:plan#viewer',
    });
    expect(line(found.obstacles[0]?.derivation as Tree)).toBe(
      'computed (userset doc:plan#banned@group:suspended#member (direct group:suspended#member@user:mal))',
    );
    // No tuple takes a ban away.
    expect(found).toMatchObject({ remedies: [], truncated: false });
  });

  test('of nobody names what would let them in, and each of it does', async () => {
    const question = tuple('doc:plan', 'viewer', user('bob'));
    const found = await explain(question);
    expect(found.obstacles.map(({ kind }) => kind)).toEqual(['OBSTACLE_KIND_NO_GRANT']);
    expect(found.remedies.map(shortTuple).sort()).toEqual([
      'doc:plan#editor@user:bob',
      'doc:plan#viewer@user:bob',
      'folder:f#viewer@user:bob',
      'group:eng#member@user:bob',
      'group:staff#member@user:bob',
    ]);
    for (const [i, remedy] of found.remedies.entries()) {
      const tenant_id = `mend${i}`;
      const stored = await ok(call(instance, 'AuthzService/ReadRelationTuples', {}));
      const copied = (stored['tuples'] as Json[]).map((one) => ({ ...one, tenant_id }));
      await write(copied, { tenant_id });
      expect(await explain(question, { tenant_id })).toMatchObject({ allowed: false });
      await write([{ ...remedy, tenant_id }], { tenant_id });
      expect(await explain(question, { tenant_id })).toMatchObject({ allowed: true });
    }
    const one = await ok<Explained>(query(instance, 'Explain', { question, remedies_max: 1 }));
    expect(one.remedies).toHaveLength(1);
    expect(one.truncated).toBe(true);
  });

  test('by expiry and by conditions names the tuple and the input', async () => {
    const old = await explain(tuple('doc:plan', 'viewer', user('old')));
    expect(old.obstacles[0]).toMatchObject({
      kind: 'OBSTACLE_KIND_EXPIRED',
      message: 'doc:plan#viewer@user:old has expired',
      tuple: { expires_at: '2001-01-01T00:00:00Z' },
    });
    const kid = tuple('doc:plan', 'viewer', user('kid'));
    const undecided = await explain(kid);
    expect(undecided).toMatchObject({ allowed: false, undecided: true });
    expect(undecided.obstacles[0]).toMatchObject({
      kind: 'OBSTACLE_KIND_CONDITION_UNDECIDED',
      missing_inputs: ['age'],
      message:
        'the condition "age_at_least" of doc:plan#viewer@user:kid could not be decided: the context lacks age',
    });
    const young = await explain(kid, { context: { age: 12 } });
    expect(young.obstacles[0]).toMatchObject({ kind: 'OBSTACLE_KIND_CONDITION_FALSE' });
    expect(young.undecided).toBe(false);
    expect(await explain(kid, { context: { age: 20 } })).toMatchObject({ allowed: true });
  });

  test('by an intersection names the operand that is missing', async () => {
    const found = await explain(tuple('doc:plan', 'publisher', user('eve')));
    expect(found.obstacles).toHaveLength(1);
    expect(found.obstacles[0]).toMatchObject({ kind: 'OBSTACLE_KIND_INTERSECTION' });
    expect(found.obstacles[0]?.message).toContain('operand 2 of 2 (reviewer)');
    expect(found.remedies.map(shortTuple)).toEqual(['doc:plan#reviewer@user:eve']);
  });

  test('of an object that no tuple names is mended by a tuple to what the subject holds', async () => {
    const found = await explain(tuple('doc:new', 'inherited', user('ann')));
    expect(found.remedies.map(shortTuple).sort()).toEqual([
      'doc:new#parent@doc:plan#',
      'doc:new#parent@folder:f#',
    ]);
    const nobody = await explain(tuple('doc:new', 'inherited', user('nobody')));
    expect(nobody).toMatchObject({ remedies: [], truncated: false });
  });
});

test('where Check exhausts its budget, Explain fails as it does', async () => {
  const id = 'poor';
  const model_json = JSON.stringify(MODEL);
  const settings = { id, name: id, model_json, max_check_reads: 100 };
  await ok(call(instance, 'AdminService/CreateProject', settings));
  const links = Array.from({ length: 300 }, (_, i) =>
    tuple('doc:wide', 'parent', set('folder', `w${i}`)),
  );
  await write(links, { project_id: id });
  const body = { scope: { project_id: id }, question: tuple('doc:wide', 'viewer', user('bob')) };
  const explained = await query(instance, 'Explain', body);
  const checked = await query(instance, 'Check', body);
  expect(explained.status).toBe(429);
  expect(explained).toEqual(checked);
});

test('in a typed model a remedy is one that may be written', async () => {
  const id = 'typed';
  const model = {
    namespaces: {
      team: {
        relations: {
          member: { subjects: ['user'] },
          guest: { subjects: [{ type: 'user', expires: true }] },
        },
      },
      folder: { relations: { viewer: { subjects: ['team#member', 'team#guest'] } } },
      doc: {
        relations: {
          parent: { subjects: ['folder'] },
          viewer: { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
        },
      },
    },
  };
  const model_json = JSON.stringify(model);
  await ok(call(instance, 'AdminService/CreateProject', { id, name: id, model_json }));
  const scope = { project_id: id };
  await write(
    [
      tuple('folder:f', 'viewer', set('team', 'a', 'member')),
      tuple('folder:f', 'viewer', set('team', 'a', 'guest')),
      tuple('team:a', 'member', user('ann')),
      tuple('doc:d', 'parent', set('folder', 'f')),
    ],
    scope,
  );
  const bob = await explain(tuple('doc:d', 'viewer', user('bob')), scope);
  const [guest, member] = bob.remedies.toSorted((a, b) =>
    shortTuple(a).localeCompare(shortTuple(b)),
  );
  expect([guest, member].map(shortTuple)).toEqual([
    'team:a#guest@user:bob',
    'team:a#member@user:bob',
  ]);
  expect(guest).toHaveProperty('expires_at');
  expect(member).not.toHaveProperty('expires_at');
  expect(bob.remedies).toHaveLength(2);
  const ann = await explain(tuple('doc:e', 'viewer', user('ann')), scope);
  expect(ann.remedies.map(shortTuple)).toEqual(['doc:e#parent@folder:f#']);
  const all = [...bob.remedies, ...ann.remedies];
  for (const remedy of all) await write([remedy], scope);
});

test('a condition whose expression fails says of what, where, and which input decides', async () => {
  const id = 'failing';
  const conditions = {
    rule: {
      parameters: { dep: 'string', attrs: 'any' },
      expression: 'dep == "fin" &&\n  attrs.region == "eu"',
    },
    div: { parameters: { a: 'int', b: 'int' }, expression: 'a / b > 1' },
    cid: { parameters: { ip: 'ipaddress', net: 'string' }, expression: 'ip.in_cidr(net)' },
  };
  const model_json = JSON.stringify({ conditions, namespaces: { doc: { relations: { r: {} } } } });
  await ok(call(instance, 'AdminService/CreateProject', { id, name: id, model_json }));
  const scope = { project_id: id };
  const under = (userId: string, condition_name: string, condition_params: Json = {}) =>
    write([{ ...tuple('doc:1', 'r', user(userId)), condition_name, condition_params }], scope);
  await under('rule', 'rule');
  await under('div', 'div', { b: 0 });
  await under('cid', 'cid', { net: '10.0.0' });
  const messageOf = async (userId: string, context: Json): Promise<unknown> => {
    const found = await explain(tuple('doc:1', 'r', user(userId)), { ...scope, context });
    expect(found.undecided).toBe(true);
    const [{ kind, message } = { kind: '', message: '' }] = found.obstacles;
    expect(kind).toBe('OBSTACLE_KIND_CONDITION_UNDECIDED');
    return message;
  };
  const of = (name: string): string =>
    `the condition "${name}" of doc:1#r@user:${name} could not be decided`;
  expect(await messageOf('rule', { dep: 'fin', attrs: {} })).toBe(
    `${of('rule')}: attrs.region at 2:8 failed: no such key: region; the input attrs decides it`,
  );
  const asked = { ...scope, context: { dep: 'fin', attrs: { region: 'eu' } } };
  expect(await explain(tuple('doc:1', 'r', user('rule')), asked)).toMatchObject({ allowed: true });
  expect(await messageOf('rule', { attrs: {} })).toBe(
    `${of('rule')}: the context lacks dep; attrs.region at 2:8 failed: no such key: region; the input attrs decides it`,
  );
  expect(await messageOf('div', { a: 4 })).toBe(
    `${of('div')}: a / b at 1:3 failed: division by zero; the tuple gives b, so no request decides it`,
  );
  expect(await messageOf('cid', { ip: '10.0.0.1' })).toBe(
    `${of('cid')}: ip.in_cidr(net) at 1:3 failed: net is no network like 10.0.0.0/8; the tuple gives net, so no request decides it`,
  );
});

test('a condition of the model names the inputs that it asked for', async () => {
  const id = 'conditioned';
  const model = {
    conditions: {
      in_hours: { parameters: { hour: 'int', from: 'int' }, expression: 'hour >= from' },
    },
    namespaces: { doc: { relations: { viewer: {} } } },
  };
  const model_json = JSON.stringify(model);
  await ok(call(instance, 'AdminService/CreateProject', { id, name: id, model_json }));
  const scope = { project_id: id };
  const question = tuple('doc:d', 'viewer', user('ann'));
  const conditional = { ...question, condition_name: 'in_hours', condition_params: { from: 9 } };
  await write([conditional], scope);
  const found = await explain(question, scope);
  expect(found.obstacles[0]).toMatchObject({
    kind: 'OBSTACLE_KIND_CONDITION_UNDECIDED',
    missing_inputs: ['hour'],
  });
  const early = await explain(question, { ...scope, context: { hour: 8 } });
  expect(early.obstacles[0]).toMatchObject({ kind: 'OBSTACLE_KIND_CONDITION_FALSE' });
  expect(await explain(question, { ...scope, context: { hour: 10 } })).toMatchObject({
    allowed: true,
  });
});

describe('what is refused', () => {
  const question = tuple('doc:plan', 'viewer', user('ann'));
  test.each([
    ['question: is required', {}],
    ['question.namespace', { question: { ...question, namespace: 'Upper' } }],
    [
      'question.subject: must be a user or a set',
      { question: { ...question, subject: { wildcard: true } } },
    ],
    ['remedies_max: must be between 0 and 100', { question, remedies_max: -1 }],
    ['remedies_max: must be between 0 and 100', { question, remedies_max: 101 }],
    ['scope.tenant_id', { question, scope: { tenant_id: 'a b' } }],
  ])('%s', async (message, body) => {
    const answer = await query(instance, 'Explain', body);
    expect(answer.status).toBe(400);
    expect(String(answer.body['message'])).toContain(message);
  });
});

describe('protocols', () => {
  const LEVELS = 200;
  const headers = { authorization: `Bearer ${instance.token}` };
  const question = {
    namespace: 'group',
    objectId: 'n0',
    relation: 'member',
    subject: { kind: { case: 'userId' as const, value: 'deep' } },
  };
  beforeAll(async () => {
    const chain = Array.from({ length: LEVELS - 1 }, (_, i) =>
      tuple(`group:n${i}`, 'member', set('group', `n${i + 1}`, 'member')),
    );
    await write([...chain, tuple(`group:n${LEVELS - 1}`, 'member', user('deep'))]);
  });

  function levelsOf(response: ReturnType<typeof fromBinary<typeof ExplainResponseSchema>>): number {
    return response.derivation?.nodes.length ?? 0;
  }

  test.each([
    ['Connect JSON', false, createConnectTransport, '1.1'],
    ['Connect binary', true, createConnectTransport, '1.1'],
    ['gRPC-Web binary', true, createGrpcWebTransport, '1.1'],
    ['gRPC binary', true, createGrpcTransport, '2'],
  ] as const)(
    '%s, also of a deep derivation',
    async (_name, useBinaryFormat, make, httpVersion) => {
      const { baseUrl } = instance;
      const transport = make({ baseUrl, httpVersion: httpVersion as '2', useBinaryFormat });
      const client = createClient(QueryService, transport);
      const deep = await client.explain({ question }, { headers });
      expect([deep.allowed, levelsOf(deep)]).toEqual([true, LEVELS]);
      expect(deep.derivation?.nodes[0]?.step).toBe(DerivationStep.USERSET);
      const denied = await client.explain(
        { question: { ...question, relation: 'other' } },
        { headers },
      );
      expect(denied.obstacles).toHaveLength(1);
      expect(denied.remedies).toHaveLength(1);
    },
  );

  test('@grpc/grpc-js', async () => {
    const address = instance.baseUrl.replace('http://', '');
    const client = new grpc.Client(address, grpc.credentials.createInsecure());
    const metadata = new grpc.Metadata();
    metadata.set('authorization', headers.authorization);
    const response = await new Promise<number>((resolve, reject) => {
      client.makeUnaryRequest(
        '/gatehouse.v1.QueryService/Explain',
        (value: typeof question) =>
          Buffer.from(
            toBinary(ExplainRequestSchema, create(ExplainRequestSchema, { question: value })),
          ),
        (bytes: Buffer) => fromBinary(ExplainResponseSchema, bytes),
        question,
        metadata,
        (error, answer) =>
          error === null && answer !== undefined ? resolve(levelsOf(answer)) : reject(error),
      );
    });
    client.close();
    expect(response).toBe(LEVELS);
  });
});

test('hostile sizes: many sets, many folders, long ids; what is left out is said', async () => {
  const scope = { tenant_id: 'large' };
  const long = 'ü'.repeat(128);
  for (let part = 0; part < 5; part++) {
    const some = Array.from({ length: 1_000 }, (_, i) => {
      const id = `${part}-${i}-${long}`.slice(0, 128);
      return tuple('doc:big', 'parent', set('folder', id));
    });
    await write(some, scope);
  }
  const groups = Array.from({ length: 1_000 }, (_, i) =>
    tuple('doc:big', 'viewer', set('group', `g${i}`, 'member')),
  );
  await write(groups, scope);
  const question = tuple('doc:big', 'viewer', user('ann'));
  const body = { scope, question, remedies_max: 100 };
  const found = await ok<Explained>(query(instance, 'Explain', body));
  expect(found).toMatchObject({ allowed: false, truncated: true });
  expect(found.remedies).toHaveLength(100);
  // The same, one link away: everything that ann holds is a candidate for the parent.
  const held = Array.from({ length: 1_000 }, (_, i) =>
    tuple(`folder:h${i}`, 'viewer', user('ann')),
  );
  await write(held, scope);
  const linked = await ok<Explained>(
    query(instance, 'Explain', { scope, question: tuple('doc:none', 'inherited', user('ann')) }),
  );
  expect(linked.remedies).toHaveLength(10);
  expect(linked.truncated).toBe(true);
});

test('three instances explain what any of them wrote', async () => {
  const others = [await startInstance(database), await startInstance(database)];
  const all = [instance, ...others];
  try {
    const scope = { tenant_id: 'three' };
    for (let round = 0; round < 6; round++) {
      const writer = all[round % 3] ?? instance;
      const granted = tuple(`doc:d${round}`, 'viewer', user('ann'));
      const token = await write([granted], scope, writer);
      const seen = [];
      for (const reader of all) {
        const found = await explain(granted, scope, reader);
        expect(found['consistency_token']).toBe(token);
        const denied = await explain({ ...granted, subject: user('bob') }, scope, reader);
        seen.push(JSON.stringify([found, denied]));
      }
      expect(new Set(seen).size).toBe(1);
    }
  } finally {
    for (const one of others) await one.stop();
  }
  expect(others.flatMap((one) => one.failures)).toEqual([]);
}, 120_000);
