import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../shared/json.ts';
import * as names from './names.ts';
import { fieldError } from './reasons.ts';

type Check = (field: string, value: string) => unknown;
const cases: [string, Check, string[], string[]][] = [
  [
    'namespace',
    names.checkNamespace,
    ['a', 'a_-9', 'a'.repeat(64)],
    ['', 'A', '9', 'a b', 'a\n', 'a'.repeat(65)],
  ],
  ['relation', names.checkRelation, ['viewer'], ['', 'Viewer', 'a#b', 'é']],
  [
    'object id',
    names.checkObjectId,
    ['a', 'A:@/|b c', 'é'.repeat(128), '😀', '*'],
    ['', '#', 'a\u0000', 'a\n', '\u007f', '\u0085', '\udc00', 'é'.repeat(129), 'a'.repeat(257)],
  ],
  ['user id', names.checkUserId, ['google|1', 'a@b.c'], ['', 'a#b']],
  [
    'project id',
    names.checkProjectId,
    ['default', '9', 'a'.repeat(63)],
    ['', '-a', 'A', 'a.b', 'a'.repeat(64)],
  ],
  [
    'tenant id',
    names.checkTenantId,
    ['', 'A.b:c-_9', 'a'.repeat(128)],
    ['a b', 'é', 'a'.repeat(129), 'a\n'],
  ],
  ['region', names.checkDataRegion, ['eu-1'], ['', 'EU', 'a_b', 'a'.repeat(64)]],
  ['sku', names.checkSku, ['Pro.1'], ['', '.a', 'a b', 'a'.repeat(64)]],
  ['condition', names.checkConditionName, ['no such', 'x'], ['\u0000', '\ud800', 'a'.repeat(257)]],
];

describe.each(cases)('%s', (_, check, good, bad) => {
  test.each(good)('accepts %j', (value) => expect(() => check('f', value)).not.toThrow());
  test.each(bad)('refuses %j', (value) => {
    expect(() => check('a.f', value)).toThrow(
      expect.objectContaining({
        metadata: { field: 'a.f' },
        message: expect.stringMatching(/^a\.f: /),
      }),
    );
  });
});

test('display names are trimmed and counted in characters', () => {
  expect(names.checkDisplayName('f', ' a b ')).toBe('a b');
  expect(names.checkDisplayName('f', '😀'.repeat(200))).toHaveLength(400);
  expect(() => names.checkDisplayName('f', '😀'.repeat(201))).toThrow(/at most 200/);
  expect(() => names.checkDisplayName('f', ' ')).toThrow(/required/);
});

test('JSON is checked to its leaves, member names included', () => {
  names.checkJson('c', { a: [1, 'x', null, { b: true }] });
  expect(() => names.checkJson('c', { a: [1, { b: '\ud800' }] })).toThrow(/^c\.a\[1\]\.b: /);
  expect(() => names.checkJson('c', { 'a\u0000': 1 })).toThrow(/^c \(a member name\): /);
  expect(() => names.checkJson('c', [Infinity])).toThrow(/^c\[0\]: /);
  const deep = JSON.parse(`${'{"a":'.repeat(101)}1${'}'.repeat(101)}`) as JsonObject;
  expect(() => names.checkJson('c', deep)).toThrow(
    `c${'.a'.repeat(101)}: is nested deeper than 100`,
  );
});

test('errors of fields have no stack, which would be most of what a batch of such items costs', () => {
  const errors = [fieldError('f', 'is bad'), names.requiredError('f')];
  for (const { stack } of errors) expect(stack).not.toContain('\n');
  expect(new Error('after them').stack).toContain('names.test.ts');
});
