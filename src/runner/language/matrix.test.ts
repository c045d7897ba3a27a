import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../shared/json.ts';
import { expandMatrix, matrixJobName } from './matrix.ts';
import { objectEntries, objectFrom, objectKeys } from './ordered-object.ts';

describe('legs', () => {
  test('the last vector varies fastest', () => {
    expect(expandMatrix({ os: ['a', 'b'], v: [1, 2] })).toEqual([
      { os: 'a', v: 1 },
      { os: 'a', v: 2 },
      { os: 'b', v: 1 },
      { os: 'b', v: 2 },
    ]);
  });

  test("include, by the example of GitHub's documentation", () => {
    expect(
      expandMatrix({
        fruit: ['apple', 'pear'],
        animal: ['cat', 'dog'],
        include: [
          { color: 'green' },
          { color: 'pink', animal: 'cat' },
          { fruit: 'apple', shape: 'circle' },
          { fruit: 'banana' },
          { fruit: 'banana', animal: 'cat' },
        ],
      }),
    ).toEqual([
      { fruit: 'apple', animal: 'cat', color: 'pink', shape: 'circle' },
      { fruit: 'apple', animal: 'dog', color: 'green', shape: 'circle' },
      { fruit: 'pear', animal: 'cat', color: 'pink' },
      { fruit: 'pear', animal: 'dog', color: 'green' },
      { fruit: 'banana' },
      { fruit: 'banana', animal: 'cat' },
    ]);
  });

  test('include alone', () => {
    expect(expandMatrix({ include: [{ a: 1 }, { a: 2, b: 3 }] })).toEqual([
      { a: 1 },
      { a: 2, b: 3 },
    ]);
  });

  test('exclude goes before include and needs only some of the keys', () => {
    expect(
      expandMatrix({
        os: ['a', 'b'],
        v: [1, 2],
        exclude: [{ os: 'a', v: 1 }, { os: 'b' }],
        include: [{ os: 'b', v: 9 }],
      }),
    ).toEqual([
      { os: 'a', v: 2 },
      { os: 'b', v: 9 },
    ]);
  });

  test('filters look into objects', () => {
    const one = { name: 'x', tags: ['t'] };
    expect(
      expandMatrix({
        node: [one, { name: 'y' }],
        exclude: [{ node: { name: 'y' } }],
        include: [{ node: one, extra: true }],
      }),
    ).toEqual([{ node: one, extra: true }]);
  });

  test('keys are compared without regard to case, and stay as the vectors write them', () => {
    expect(
      expandMatrix({
        OS: ['a', 'b'],
        Node: [{ Name: 'x' }, { Name: 'y' }],
        EXCLUDE: [{ os: 'a', node: { name: 'y' } }],
        Include: [
          { os: 'b', extra: 1 },
          { Os: 'b', EXTRA: 2 },
          { os: 'c', node: 'z' },
        ],
      }),
    ).toEqual([
      { OS: 'a', Node: { Name: 'x' } },
      { OS: 'b', Node: { Name: 'x' }, extra: 2 },
      { OS: 'b', Node: { Name: 'y' }, extra: 2 },
      { os: 'c', node: 'z' },
    ]);
  });

  test('keys that look like whole numbers keep their order, and keys that differ by case are one', () => {
    const matrix = objectFrom([
      ['9', ['a', 'b']],
      ['8', ['c']],
      ['Os', ['gone']],
      ['OS', ['d', 'e']],
      ['include', [objectFrom([['10', 'f']])]],
    ]);
    const matrixJobs = expandMatrix(matrix);
    expect(matrixJobs.map((matrixJob) => matrixJobName('x', matrixJob))).toEqual([
      'x (a, c, d, f)',
      'x (a, c, e, f)',
      'x (b, c, d, f)',
      'x (b, c, e, f)',
    ]);
    for (const matrixJob of matrixJobs) {
      expect(objectKeys(matrixJob)).toEqual(['9', '8', 'Os', '10']);
    }
  });

  test('__proto__ is a key like others', () => {
    const matrix = objectFrom([['__proto__', ['a', 'b']]]);
    expect(expandMatrix(matrix).map(objectEntries)).toEqual([
      [['__proto__', 'a']],
      [['__proto__', 'b']],
    ]);
  });

  test.each<[string, JsonValue, string]>([
    ['text', 'x', 'must be a mapping'],
    [
      'an exclude of nothing',
      { os: ['a'], exclude: [{ so: 'a' }] },
      "names 'so', which is no vector",
    ],
    [
      'an exclude beside include alone',
      { include: [{ a: 1 }], exclude: [{ a: 1 }] },
      'it has none',
    ],
    ['scalar vector', { a: 1 }, "vector 'a' must be a sequence"],
    ['empty vector', { a: [] }, "vector 'a' does not contain any values"],
    ['bad include', { include: [1] }, "'include' of the matrix"],
    ['all excluded', { a: [1], exclude: [{ a: 1 }] }, 'no combination'],
    ['nothing', {}, 'no combination'],
    ['too many', { a: Array.from({ length: 257 }, (_, n) => n) }, 'more than 256'],
    ['product', { a: Array(1_000).fill(1), b: Array(1_000).fill(1) }, 'more than 256'],
  ])('%s is refused', (_name, matrix, message) => {
    expect(() => expandMatrix(matrix)).toThrow(message);
  });

  test('256 legs are allowed', () => {
    const vector = Array.from({ length: 16 }, (_, n) => n);
    expect(expandMatrix({ a: vector, b: vector })).toHaveLength(256);
  });
});

test('names', () => {
  expect(matrixJobName('build', { os: 'linux', v: 18, x: true })).toBe('build (linux, 18, true)');
  expect(matrixJobName('build', { os: { name: 'x', n: [1, 2] }, e: '' })).toBe('build (x, 1, 2)');
  expect(matrixJobName('build', {})).toBe('build');
});
