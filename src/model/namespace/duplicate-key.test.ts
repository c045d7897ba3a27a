import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findDuplicateKey } from './duplicate-key.ts';

test.each([
  ['{}', undefined],
  ['[{"a":1},{"a":1}]', undefined],
  ['{"a":{"a":"a"},"b":["a","a"]}', undefined],
  ['{"a":"\\"a\\":","b":"{\\"b\\":1}"}', undefined],
  ['{"a":1,"a":1}', { path: '$', key: 'a' }],
  ['{"a" \n:1,\t"\\u0061"\r: 2}', { path: '$', key: 'a' }],
  ['{"__proto__":1,"__proto__":1}', { path: '$', key: '__proto__' }],
  ['{"x":[0,[{}, {"b":1,"b":1}]]}', { path: '$.x[1][1]', key: 'b' }],
])('%s', (json, found) => {
  expect(findDuplicateKey(json, 10)).toEqual(found);
});

test('the outermost one is told, and what is too deep is not looked at', () => {
  const json = '{"a":{"b":{"c":1,"c":1},"b":0},"a":{}}';
  expect(findDuplicateKey(json, 10)).toEqual({ path: '$', key: 'a' });
  expect(findDuplicateKey('{"a":{"b":1,"b":1}}', 2)).toEqual({ path: '$.a', key: 'b' });
  expect(findDuplicateKey('{"a":{"b":1,"b":1}}', 1)).toBeUndefined();
});

test('a document of a million levels is no trouble', () => {
  const levels = 1_000_000;
  const json = `${'{"a":'.repeat(levels)}1${',"a":1}'.repeat(levels)}`;
  expect(findDuplicateKey(json, 68)).toEqual({ path: '$', key: 'a' });
});

type Value =
  | string
  | readonly Value[]
  | { readonly members: readonly (readonly [string, Value])[] };

const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('', 'a', '"', '\\', '{"a":1,"a":1}', '😀'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.record({
      members: fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', '"', '\\', 'é'), tie('value')), {
        maxLength: 3,
      }),
    }),
  ),
}));

function textOf(node: Value, space: string): string {
  if (typeof node === 'string') return JSON.stringify(node);
  if ('members' in node) {
    const members = node.members.map(
      ([key, inner]) => `${space}${JSON.stringify(key)}${space}:${textOf(inner, space)}`,
    );
    return `{${members.join(`${space},`)}${space}}`;
  }
  return `[${node.map((inner) => textOf(inner, space)).join(`,${space}`)}]`;
}

function hasDuplicate(node: Value): boolean {
  if (typeof node === 'string') return false;
  if (!('members' in node)) return node.some(hasDuplicate);
  const keys = node.members.map(([key]) => key);
  return new Set(keys).size < keys.length || node.members.some(([, inner]) => hasDuplicate(inner));
}

test('finds one exactly when there is one, in generated documents', () => {
  fc.assert(
    fc.property(value, fc.constantFrom('', ' ', '\n\t'), (node, space) => {
      const json = textOf(node, space);
      JSON.parse(json);
      expect(findDuplicateKey(json, 100) !== undefined).toBe(hasDuplicate(node));
    }),
    { numRuns: 2_000 },
  );
});
