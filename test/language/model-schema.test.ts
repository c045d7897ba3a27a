import { globSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { printGate } from '../../src/language/gate/print-gate-tree.ts';
import { readModelDocument } from '../../src/model/namespace/model-document.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { byLength } from '../support/test-length.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const admits = new Ajv2020({ allErrors: false }).compile(
  JSON.parse(readFileSync('docs/model.schema.json', 'utf8')) as object,
);

/** Rules that no JSON Schema can say: they are about more than one place, or about what an entry means. */
const BEYOND_SCHEMA = [
  'is computed from itself',
  'is nested more than',
  'is the same as entry',
  'characters in all',
];

/** A document that has every member at least once. */
const EVERYTHING: Json = {
  $schema: './model.schema.json',
  schema_version: 1,
  conditions: {
    office: {
      parameters: { ip: 'ipaddress', networks: 'list<string>', limits: 'map<list<int>>' },
      expression: 'networks.exists(n, ip.in_cidr(n))',
    },
    always: { expression: 'true' },
  },
  namespaces: {
    old: { open: true, relations: { any: { computed: 'other' } } },
    doc: {
      open: false,
      relations: {
        parent: { subjects: ['doc'] },
        banned: { subjects: ['user', 'group#member'], this: {} },
        viewer: {
          subjects: ['user:*', { type: 'user', condition: 'office', expires: true }],
          exclusion: {
            include: {
              union: [
                {},
                { this: {} },
                { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
              ],
            },
            exclude: { intersection: [{ computed: 'banned' }] },
          },
        },
      },
    },
  },
};

/** Why the parser refuses a document; undefined where it takes it. */
function refusal(document: Json): string | undefined {
  try {
    readModelDocument(JSON.stringify(document));
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'MODEL_INVALID') throw error;
    return error.message;
  }
}

/** The document with the part that `at` picks replaced by what `change` makes of it. */
function changed(document: Json, at: number, change: (part: Json) => Json | undefined): Json {
  let left = at;
  const walk = (part: Json): Json | undefined => {
    if (left-- === 0) return change(part);
    if (Array.isArray(part)) return part.map(walk).filter((one) => one !== undefined);
    if (typeof part !== 'object' || part === null) return part;
    const entries = Object.entries(part).map(([key, value]) => [key, walk(value)] as const);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Json;
  };
  return walk(document) ?? null;
}

function isObject(part: Json): part is { readonly [key: string]: Json } {
  return typeof part === 'object' && part !== null && !Array.isArray(part);
}

function partsOf(part: Json): number {
  if (typeof part !== 'object' || part === null) return 1;
  return 1 + Object.values(part).reduce<number>((sum, one) => sum + partsOf(one), 0);
}

/** Names, subjects, types and members that belong somewhere, and some that belong nowhere. */
const WORDS = (
  'user user:* group#member group:* doc# #a Doc seat this computed union exclusion subjects open relations ' +
  'condition in has __x _x not_after int list<int> list<x> map<> uint type expires parameters expression ' +
  '$schema schema_version constructor'
)
  .split(' ')
  .concat(['', 'a b', 'a\n', 'a'.repeat(64), 'a'.repeat(65), 'x'.repeat(2_049)])
  .concat([`${'list<'.repeat(8)}int${'>'.repeat(8)}`, `${'map<'.repeat(9)}int${'>'.repeat(9)}`]);
const word = fc.constantFrom(...WORDS);
const junk: fc.Arbitrary<Json> = fc.oneof(
  word,
  fc.constantFrom<Json>(null, true, false, 0, 1, [], {}, [{}], { this: {} }, { computed: 'a' }),
  fc.constantFrom<Json>(['user', 'user'], { type: 'user' }, { include: {}, exclude: {} }),
  fc.constant<Json>(Array.from({ length: 65 }, (_, index) => `a${index}`)),
  fc.constant<Json>(
    Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`a${index}`, {}])),
  ),
);
const change: fc.Arbitrary<(part: Json) => Json | undefined> = fc.oneof(
  junk.map((value) => () => value),
  fc.constant(() => undefined),
  fc.tuple(word, junk).map(
    ([key, value]) =>
      (part: Json): Json =>
        isObject(part) ? { ...part, [key]: value } : value,
  ),
  fc.tuple(fc.nat(8), word).map(([index, key]) => (part: Json): Json => {
    if (!isObject(part)) return key;
    const entries = Object.entries(part);
    return Object.fromEntries(
      entries.map(([name, value], i) => [i === index % entries.length ? key : name, value]),
    );
  }),
);

const patterns = globSync('docs/patterns/*.gate');

test('every pattern and every JSON document of the documentation fits the schema', () => {
  expect(patterns.length).toBeGreaterThanOrEqual(12);
  for (const path of patterns) {
    const { document } = parseGate(readFileSync(path, 'utf8'));
    expect(admits(document), `${path}: ${JSON.stringify(admits.errors)}`).toBe(true);
  }
  const page = readFileSync('docs/models.md', 'utf8');
  const models = [...page.matchAll(/^```json\n(.*?)^```/gms)]
    .map(([, text = '']) => JSON.parse(text) as Json)
    .filter((document) => isObject(document) && 'namespaces' in document);
  expect(models.length).toBeGreaterThanOrEqual(5);
  for (const document of models) {
    expect(admits(document), JSON.stringify([document, admits.errors])).toBe(true);
    expect(refusal(document)).toBeUndefined();
  }
  expect(admits(EVERYTHING)).toBe(true);
  expect(refusal(EVERYTHING)).toBeUndefined();
});

test('the schema takes what the parser takes, and refuses what it refuses for its form', () => {
  let taken = 0;
  let refused = 0;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 2 }), (changes) => {
      let document: Json = EVERYTHING;
      for (const [at, make] of changes) {
        document = changed(document, at % partsOf(document), make);
      }
      const problem = refusal(document);
      if (problem === undefined) taken++;
      else refused++;
      if (problem !== undefined && BEYOND_SCHEMA.some((rule) => problem.includes(rule))) return;
      expect(admits(document), `${problem} ${JSON.stringify(admits.errors)}`).toBe(
        problem === undefined,
      );
    }),
    { numRuns: byLength(1_000, 4_000) },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(200);
});

test('the readable form leaves $schema out, and nothing else', () => {
  const { $schema, ...rest } = EVERYTHING;
  expect($schema).toBeDefined();
  expect(parseGate(printGate(EVERYTHING)).document).toEqual(rest);
  expect(() => printGate({ ...rest, $schema: 1 })).toThrow('$schema');
});
