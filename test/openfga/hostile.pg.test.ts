import { beforeAll, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { byLength } from '../support/test-length.ts';
import { door, key, MODEL } from './support.ts';

/* Bodies that no client sends: each is refused as the request's own fault, and none is an allow. */
const { instance } = await instanceForFile({ GATEWAY_OPENFGA_API: 'true' });
let path = '';

const NASTY: readonly unknown[] = [
  undefined,
  null,
  '',
  0,
  -1,
  1e308,
  true,
  [],
  {},
  [[]],
  'user:a\u0000b',
  '\ud800',
  'user:\udfff',
  'x'.repeat(600),
  `user:${'x'.repeat(100_000)}`,
  'user:a#b#c',
  'user:*#member',
  '::',
  '#',
  'user:\u202e\u2028',
  '__proto__',
  'constructor:toString',
  { __proto__: null, toString: 1 },
  '../../stores',
  '01ARZ3NDEKTSV4RRFFQ69G5FAV',
];

/** Each body with one of its values, at any depth, in the place of which stands something nasty; in short one of five. */
function* spoiled(body: unknown): Generator {
  let count = 0;
  for (const one of allSpoiled(body)) if (count++ % byLength(5, 1) === 0) yield one;
}

function* allSpoiled(value: unknown): Generator {
  for (const nasty of NASTY) yield nasty;
  if (Array.isArray(value)) {
    for (const [at, one] of value.entries()) {
      for (const inner of allSpoiled(one)) yield value.with(at, inner);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, one] of Object.entries(value)) {
      for (const inner of allSpoiled(one)) yield { ...value, [name]: inner };
    }
  }
}

beforeAll(async () => {
  const made = await door(instance, 'POST', '/stores', { name: 'a store' });
  path = `/stores/${made.body.id}`;
  expect(await door(instance, 'POST', `${path}/authorization-models`, MODEL)).toMatchObject({
    status: 201,
  });
});

const asked = key('user:nobody', 'viewer', 'Doc/v2:1');
const more = {
  context: { hour: 1 },
  contextual_tuples: { tuple_keys: [key('user:else', 'Owner', 'Doc/v2:1')] },
  authorization_model_id: '',
};
const BODIES: readonly (readonly [string, object])[] = [
  ['/check', { tuple_key: asked, ...more }],
  ['/batch-check', { checks: [{ tuple_key: asked, correlation_id: 'a', ...more }] }],
  ['/list-objects', { type: 'Doc/v2', relation: 'viewer', user: 'user:nobody', ...more }],
  [
    '/write',
    {
      deletes: { tuple_keys: [asked], on_missing: 'ignore' },
      writes: {
        tuple_keys: [
          {
            ...key('user:a', 'viewer', 'Doc/v2:5'),
            condition: { name: 'On_Time', context: { limit: 3 } },
          },
        ],
        on_duplicate: 'ignore',
      },
    },
  ],
  [
    '/read',
    {
      tuple_key: { user: 'user:a', relation: 'viewer', object: 'Doc/v2:5' },
      page_size: 2,
      continuation_token: '',
    },
  ],
];

test.each(BODIES)('%s refuses what it cannot read, and allows nobody', async (route, body) => {
  let refused = 0;
  for (const one of spoiled(body)) {
    const answer = await door(instance, 'POST', path + route, one);
    const shown = `${JSON.stringify(one)?.slice(0, 300)}: ${JSON.stringify(answer)}`;
    expect([200, 400, 409, 501], shown).toContain(answer.status);
    if (answer.status === 200) {
      expect(JSON.stringify(answer.body), shown).not.toContain('"allowed":true');
    } else {
      refused++;
      expect(answer.body, shown).toEqual({
        code: expect.any(String) as string,
        message: expect.any(String) as string,
      });
    }
  }
  expect(refused).toBeGreaterThan(NASTY.length);
});

test('a model of anything is refused, or taken as it is', async () => {
  const made = await door(instance, 'POST', '/stores', { name: 'another store' });
  const models = `/stores/${made.body.id}/authorization-models`;
  const small = { ...MODEL, type_definitions: [MODEL.type_definitions[1]] };
  for (const one of spoiled(small)) {
    const answer = await door(instance, 'POST', models, one);
    const shown = `${JSON.stringify(one)?.slice(0, 300)}: ${JSON.stringify(answer)}`;
    expect([201, 400], shown).toContain(answer.status);
  }
}, 60_000);

test.each([
  'null',
  '[',
  '{"tuple_key":',
  '"text"',
  '[1]',
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
  `{"context":${'['.repeat(200)}${']'.repeat(200)},"tuple_key":${JSON.stringify(asked)}}`,
])('%# what is no object is refused', async (text) => {
  expect((await door(instance, 'POST', `${path}/check`, text)).status).toBe(400);
});

test.each(['/stores/x', '/stores/%00', `/stores/${'A'.repeat(27)}`, '/stores/../x', '/stores/ö'])(
  'GET %s is refused',
  async (place) => {
    const { status } = await door(instance, 'GET', place);
    expect([400, 404]).toContain(status);
  },
);

test.each([
  [6_000, 65, 'at most 64 types of subjects'],
  [6_000, 64, 'at most 256 operands'],
])(
  'a relation of %i operands and %i types is refused before these are compared',
  async (operands, types, text) => {
    const all = <One>(count: number, one: One): readonly One[] =>
      Array.from({ length: count }, () => one);
    const wide = {
      schema_version: '1.1',
      type_definitions: [
        { type: 'user' },
        {
          type: 'doc',
          relations: { r: { union: { child: all(operands, { this: {} }) } } },
          metadata: {
            relations: { r: { directly_related_user_types: all(types, { type: 'user' }) } },
          },
        },
      ],
    };
    const answer = await door(instance, 'POST', `${path}/authorization-models`, wide);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_authorization_model' } });
    expect(answer.body.message).toContain(`type doc, relation r: ${text}`);
  },
);

test('a body of more bytes or values than one read may take is refused', async () => {
  const large = { context: { text: 'x'.repeat(1024 * 1024) }, tuple_key: asked };
  const many = { context: { list: Array.from({ length: 32_768 }, () => 1) }, tuple_key: asked };
  for (const body of [large, many]) {
    const answer = await door(instance, 'POST', `${path}/check`, body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'exceeded_entity_limit' } });
  }
});
