import fc from 'fast-check';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';

/* Conditions that a model declares, from the upload to every method that decides. */
const { instance } = await instanceForFile();
const PROJECT = 'conditions';

const conditions = {
  office: {
    parameters: { networks: 'list<string>', ip: 'ipaddress', now: 'timestamp', until: 'timestamp' },
    expression: 'networks.exists(one, ip.in_cidr(one)) && now < until',
  },
  region: {
    parameters: { allowed: 'list<string>', region: 'string' },
    expression: 'region in allowed',
  },
  always: { expression: 'true' },
  dear: {
    parameters: { l: 'list<string>' },
    expression: 'l.all(i, l.all(j, l.all(k, k != "")))',
  },
  loose: { parameters: { x: 'any' }, expression: 'x.level == "full" && size(x.tags) > 0' },
};
const modelOf = (own: object): string =>
  JSON.stringify({
    conditions: own,
    namespaces: {
      doc: {
        relations: {
          banned: {},
          reader: {},
          viewer: {
            exclusion: { include: { computed: 'reader' }, exclude: { computed: 'banned' } },
          },
        },
      },
    },
  });

type Fields = { readonly [field: string]: unknown };

const tuple = (object_id: string, relation: string, user_id: string, rest: Fields = {}) => ({
  op: 'OP_INSERT',
  tuple: { namespace: 'doc', object_id, relation, subject: { user_id }, ...rest },
});
const write = (updates: readonly object[], project_id = PROJECT) =>
  call(instance, 'AuthzService/WriteRelationTuples', { project_id, updates });

/** By both paths, which must not differ. */
async function isAllowed(
  object_id: string,
  subject_user_id: string,
  context?: Fields,
  relation = 'reader',
): Promise<unknown> {
  const question = { project_id: PROJECT, namespace: 'doc', object_id, relation, subject_user_id };
  const body = context === undefined ? question : { ...question, context };
  const answers = [instance.baseUrl, instance.generalUrl].map((baseUrl) =>
    call({ ...instance, baseUrl }, 'AuthzService/Check', body),
  );
  const [hot, general] = await Promise.all(answers);
  expect([hot?.status, hot?.body]).toEqual([general?.status, general?.body]);
  return hot?.status === 200 ? hot.body['allowed'] : hot?.body['code'];
}

const inOffice = {
  condition_name: 'office',
  condition_params: { networks: ['10.0.0.0/8', '2001:db8::/32'], until: '2030-01-01T00:00:00Z' },
};

beforeAll(async () => {
  const project = { id: PROJECT, name: 'p', model_json: modelOf(conditions) };
  expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
  const written = await write([
    tuple('d', 'reader', 'ann', inOffice),
    tuple('d', 'reader', 'bob', {
      condition_name: 'region',
      condition_params: { allowed: ['eu', 'us'] },
    }),
    tuple('d', 'reader', 'cat', { condition_name: 'always' }),
    tuple('d', 'reader', 'dan', {
      condition_name: 'dear',
      condition_params: { l: Array.from({ length: 60 }, (_, i) => `t${i}`) },
    }),
    tuple('d', 'reader', 'eve', {
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    }),
    tuple('d', 'reader', 'fay'),
    tuple('d', 'banned', 'fay', {
      condition_name: 'region',
      condition_params: { allowed: ['xx'] },
    }),
    tuple('d', 'reader', 'gus', { condition_name: 'loose' }),
  ]);
  expect(written.status, JSON.stringify(written.body)).toBe(200);
});

describe('what a model may declare', () => {
  test.each([
    [{ c: { expression: 'now <' } }, '$.conditions.c.expression', 'syntax error'],
    [{ c: { expression: 'nov' } }, '$.conditions.c.expression', '1:1: "nov" is not a declared'],
    [{ c: { expression: '1 + 1' } }, '$.conditions.c.expression', 'is a int, not a bool'],
    [{ c: { expression: 'true', extra: 1 } }, '$.conditions.c.extra', 'is not a known member'],
    [{ c: {} }, '$.conditions.c.expression', 'is required'],
    [{ c: { expression: 5 } }, '$.conditions.c.expression', 'must be a string'],
    [{ c: { expression: 'x'.repeat(2_049) } }, '$.conditions.c.expression', 'at most 2048'],
    [{ C: { expression: 'true' } }, '$.conditions.C', 'must match'],
    [{ not_after: { expression: 'true' } }, '$.conditions.not_after', 'built-in condition'],
    [
      { c: { parameters: { a: 'strng' }, expression: 'true' } },
      '$.conditions.c.parameters.a',
      'did you mean "string"?',
    ],
    [{ c: { parameters: { a: 1 }, expression: 'true' } }, '$.conditions.c.parameters.a', 'a type'],
    [
      { c: { parameters: { in: 'int' }, expression: 'true' } },
      '$.conditions.c.parameters.in',
      'CEL',
    ],
    [
      { c: { parameters: { __proto: 'int' }, expression: 'true' } },
      '$.conditions.c.parameters.__proto',
      'must match',
    ],
    [[], '$.conditions', 'must be an object'],
  ])('%j is refused at %s', async (own, path, message) => {
    const project = { id: 'refused', name: 'p', model_json: modelOf(own) };
    const answer = await call(instance, 'AdminService/CreateProject', project);
    expect([answer.status, answer.body['code']]).toEqual([400, 'invalid_argument']);
    expect(String(answer.body['message'])).toContain(`${path}: `);
    expect(String(answer.body['message'])).toContain(message);
  });
});

describe('what may be written where a model declares conditions', () => {
  test.each([
    [{ condition_name: 'ofice' }, 'condition_name', 'did you mean "office"?'],
    [
      { condition_name: 'office', condition_params: { network: [] } },
      'condition_params',
      'did you mean "networks"?',
    ],
    [
      { condition_name: 'office', condition_params: { networks: '10.0.0.0/8' } },
      'condition_params',
      '"networks" of office must be a list<string>',
    ],
    [
      { condition_name: 'office', condition_params: { until: '2030' } },
      'condition_params',
      'must be a timestamp',
    ],
    [
      { condition_name: 'age_at_least' },
      'condition_params',
      '"min_age" of age_at_least is required',
    ],
    [
      { condition_name: 'age_at_least', condition_params: { min_age: 'x' } },
      'condition_params',
      '"min_age" of age_at_least must be a number',
    ],
  ])('%j is refused', async (payload, field, message) => {
    const answer = await write([tuple('n', 'reader', 'ann'), tuple('n', 'reader', 'x', payload)]);
    expect([answer.status, answer.body['code']]).toEqual([400, 'invalid_argument']);
    expect(String(answer.body['message'])).toContain(`updates[1].tuple.${field}: `);
    expect(String(answer.body['message'])).toContain(message);
    expect(await isAllowed('n', 'ann', {})).toBe(false);
  });

  test('elsewhere it is stored, denies and is counted', async () => {
    const project = { id: 'plain', name: 'p' };
    expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
    const unknown = tuple('d', 'reader', 'ann', { condition_name: 'ofice' });
    const lacking = tuple('d', 'reader', 'bob', { condition_name: 'age_at_least' });
    const right = tuple('d', 'reader', 'cat', {
      condition_name: 'age_at_least',
      condition_params: { min_age: 1 },
    });
    expect((await write([unknown, lacking, right], 'plain')).status).toBe(200);
    const series = (field: string): string =>
      `gatehouse_undecidable_tuples_total{field="${field}"} 1`;
    await vi.waitFor(
      async () => {
        const text = await instance.renderMetrics();
        for (const field of ['condition_name', 'condition_params']) {
          expect(text).toContain(series(field));
        }
      },
      { timeout: 20_000 },
    );
    const question = { project_id: 'plain', namespace: 'doc', object_id: 'd', relation: 'reader' };
    const ask = (subject_user_id: string) =>
      call(instance, 'AuthzService/Check', { ...question, subject_user_id, context: { age: 9 } });
    expect((await ask('ann')).body).toEqual({ allowed: false });
    expect((await ask('bob')).body).toEqual({ allowed: false });
    expect((await ask('cat')).body).toEqual({ allowed: true });
  });
});

describe('decisions', () => {
  const now = '2026-05-04T12:00:00Z';

  test('Check evaluates what tuple and request give together', async () => {
    expect(await isAllowed('d', 'ann', { ip: '10.1.2.3', now })).toBe(true);
    expect(await isAllowed('d', 'ann', { ip: '2001:db8::9', now })).toBe(true);
    expect(await isAllowed('d', 'ann', { ip: '11.1.2.3', now })).toBe(false);
    expect(await isAllowed('d', 'ann', { ip: '10.1.2.3', now: '2031-01-01T00:00:00Z' })).toBe(
      false,
    );
    expect(await isAllowed('d', 'ann', { ip: '10.1.2.3' })).toBe(false);
    expect(await isAllowed('d', 'ann', { ip: 10, now })).toBe(false);
    expect(await isAllowed('d', 'bob', { region: 'us' })).toBe(true);
    expect(await isAllowed('d', 'bob', { region: 'xx' })).toBe(false);
    // The tuple's parameters win.
    expect(await isAllowed('d', 'bob', { region: 'xx', allowed: ['xx'] })).toBe(false);
    expect(await isAllowed('d', 'eve', { age: 18 })).toBe(true);
  });

  test('without a context no condition holds, with an empty one those that need no input', async () => {
    expect(await isAllowed('d', 'cat')).toBe(false);
    expect(await isAllowed('d', 'cat', {})).toBe(true);
  });

  test('on the exclude side, what is undecided denies', async () => {
    expect(await isAllowed('d', 'fay', { region: 'eu' }, 'viewer')).toBe(true);
    expect(await isAllowed('d', 'fay', { region: 'xx' }, 'viewer')).toBe(false);
    expect(await isAllowed('d', 'fay', {}, 'viewer')).toBe(false);
    expect(await isAllowed('d', 'fay', { region: 1 }, 'viewer')).toBe(false);
  });

  test('BatchCheck, ListObjects and Expand have no context', async () => {
    const item = { namespace: 'doc', object_id: 'd', relation: 'reader' };
    const items = ['ann', 'cat', 'fay'].map((subject_user_id) => ({ ...item, subject_user_id }));
    const batch = await call(instance, 'AuthzService/BatchCheck', { project_id: PROJECT, items });
    expect(batch.body['results']).toEqual([
      { allowed: false, error: '' },
      { allowed: false, error: '' },
      { allowed: true, error: '' },
    ]);
    for (const [subject_user_id, object_ids] of [
      ['cat', []],
      ['fay', ['d']],
    ] as const) {
      const query = { project_id: PROJECT, namespace: 'doc', relation: 'reader', subject_user_id };
      const listed = await call(instance, 'AuthzService/ListObjects', query);
      expect(listed.body).toEqual({ object_ids });
    }
    const tree = await call(instance, 'AuthzService/Expand', { project_id: PROJECT, ...item });
    expect(JSON.stringify(tree.body)).toContain('"fay"');
    for (const user of ['ann', 'bob', 'cat', 'eve']) {
      expect(JSON.stringify(tree.body)).not.toContain(`"${user}"`);
    }
  });

  test('what an evaluation costs is counted in the read budget', async () => {
    expect(await isAllowed('d', 'dan', {})).toBe(false);
    const small = { id: PROJECT, max_check_reads: 100 };
    expect((await call(instance, 'AdminService/UpdateProject', small)).status).toBe(200);
    expect(await isAllowed('d', 'dan', {})).toBe('resource_exhausted');
    expect(await isAllowed('d', 'bob', { region: 'us' })).toBe(true);
    const cleared = { id: PROJECT, clear_max_check_reads: true };
    expect((await call(instance, 'AdminService/UpdateProject', cleared)).status).toBe(200);
  });

  test('another expression decides from its update on, over the tuples that are there', async () => {
    const parameters = conditions.region.parameters;
    const changed = { ...conditions, region: { parameters, expression: '!(region in allowed)' } };
    const update = (own: object) =>
      call(instance, 'AdminService/UpdateProject', { id: PROJECT, model_json: modelOf(own) });
    expect((await update(changed)).status).toBe(200);
    expect(await isAllowed('d', 'bob', { region: 'us' })).toBe(false);
    expect(await isAllowed('d', 'bob', { region: 'xx' })).toBe(true);
    // Its tuples stay, and decide nothing any more.
    const { region: _, ...without } = conditions;
    expect((await update(without)).status).toBe(200);
    expect(await isAllowed('d', 'bob', { region: 'us' })).toBe(false);
    expect((await update(conditions)).status).toBe(200);
    expect(await isAllowed('d', 'bob', { region: 'us' })).toBe(true);
  });

  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

  test(`no context fails a check, or grants what it should not (SEED=${seed})`, async () => {
    const contexts = fc.oneof(
      fc.dictionary(
        fc.constantFrom('x', 'ip', 'now', 'region', 'networks', 'l'),
        fc.jsonValue({ maxDepth: 6 }),
      ),
      fc.record({
        x: fc.record(
          { level: fc.constantFrom('full', 1, null), tags: fc.jsonValue({ maxDepth: 2 }) },
          { requiredKeys: [] },
        ),
      }),
    ) as fc.Arbitrary<{ readonly [key: string]: unknown }>;
    await fc.assert(
      fc.asyncProperty(contexts, async (context) => {
        const x = context['x'] as { level?: unknown; tags?: unknown } | null | undefined;
        const size =
          typeof x === 'object' && x !== null && typeof x.tags === 'object' && x.tags !== null
            ? Object.keys(x.tags).length
            : typeof x?.tags === 'string'
              ? x.tags.length
              : 0;
        const wanted = x?.level === 'full' && size > 0;
        expect(await isAllowed('d', 'gus', context), JSON.stringify(context)).toBe(wanted);
        expect(await isAllowed('d', 'ann', context)).toBe(false);
      }),
      { seed, numRuns: 150 },
    );
  });

  test('contexts of hostile sizes are answered', async () => {
    const longest = Array.from({ length: 8_000 }, (_, i) => i);
    const tooLong = Array.from({ length: 100_000 }, (_, i) => i);
    const full = (tags: unknown): Fields => ({ x: { level: 'full', tags } });
    expect(await isAllowed('d', 'gus', full(longest))).toBe(true);
    // Beyond what an expression may look at nothing is decided, which denies.
    expect(await isAllowed('d', 'gus', full('x'.repeat(100_000)))).toBe(false);
    expect(await isAllowed('d', 'gus', { ...full([1]), y: longest })).toBe(true);
    // More than a context may hold is no answer.
    expect(await isAllowed('d', 'gus', full(tooLong))).toBe('resource_exhausted');
    expect(await isAllowed('d', 'gus', full('x'.repeat(500_000)))).toBe('resource_exhausted');
  });
});
