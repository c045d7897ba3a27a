import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExpressionScope, StatusView } from '../model/execution.ts';
import type { Condition, Template } from '../model/workflow.ts';
import {
  evaluateBoolean,
  evaluateCondition,
  evaluateNumber,
  evaluateTemplate,
  evaluateText,
  evaluateTexts,
} from './evaluate.ts';

const at = { line: 3, column: 7 };
const expression = (source: string): Template => ({ kind: 'expression', source, at });
const literal = (value: string | number | boolean | null): Template => ({
  kind: 'literal',
  value,
  at,
});
const scopeOf = (contexts: ExpressionScope['contexts'], status?: StatusView): ExpressionScope => ({
  contexts,
  status,
});
const none = scopeOf({});

describe('values', () => {
  const github = { actor: 'mona', labels: [{ name: 'a' }, { name: 'b' }], constructor: 1, n: null };

  test.each([
    ['github.ACTOR', 'mona'],
    ["'it''s ''all'' quoted'", "it's 'all' quoted"],
    ['GitHub.actor', 'mona'],
    ['github.labels.*.name', ['a', 'b']],
    ['github.labels[1].name', 'b'],
    ['github.labels[7].name', null],
    ['github.constructor', 1],
    ['github.toString', null],
    ['fromJSON(\'{"constructor": {"a": 2}}\').constructor.a', 2],
    ['github.missing.deeper', null],
    ['github.n', null],
    ['matrix', null],
    ['github == github', true],
    ['github.labels == github.labels', true],
    ['github.labels == fromJSON(toJSON(github.labels))', false],
    ["github.actor && 'yes' || 'no'", 'yes'],
    ["case(github.actor == 'mona', 1, 2)", 1],
    ["CASE(true, 'one', fromJSON('x'), 'two', fromJSON(''))", 'one'],
    ["case(false, fromJSON(''), true, 'two', fromJSON(''))", 'two'],
    ["case(false, fromJSON(''), false, fromJSON(''), 'else')", 'else'],
    ["case(github.missing != null, fromJSON(github.missing), fromJSON('[1]'))", [1]],
    ["case(true, case(false, fromJSON(''), github.missing || 'in'), fromJSON(''))", 'in'],
  ])('%s', async (source, wanted) => {
    expect(await evaluateTemplate(expression(source), scopeOf({ github }))).toEqual(wanted);
  });

  test('keys that differ by case', async () => {
    const scope = scopeOf({ env: { a: 'first', A: 'second' } });
    expect(await evaluateText(expression('env.A'), scope)).toBe('second');
    expect(await evaluateText(expression('env.a'), scope)).toBe('first');
  });

  test('the items of an expression that is a sequence take its place in a sequence', async () => {
    const items = [literal('a'), expression("fromJSON('[1, [2]]')"), expression("fromJSON('{}')")];
    const value = await evaluateTemplate({ kind: 'sequence', items, at }, none);
    expect(value).toEqual(['a', 1, [2], {}]);
  });

  test('a template of mappings and sequences, with inserted entries', async () => {
    const template: Template = {
      kind: 'mapping',
      at,
      entries: [
        { key: literal('a'), value: { kind: 'sequence', items: [expression('1 == 1')], at } },
        { key: expression('insert'), value: expression('github') },
        { key: expression("format('k{0}', 1)"), value: literal(2) },
      ],
    };
    expect(await evaluateTemplate(template, scopeOf({ github: { b: 'x' } }))).toEqual({
      a: [true],
      b: 'x',
      k1: 2,
    });
  });

  test('__proto__ is a key like others', async () => {
    const scope = scopeOf({ github: JSON.parse('{"__proto__": {"x": 1}}') });
    expect(await evaluateTemplate(expression('github.__proto__.x'), scope)).toBe(1);
    const copy = await evaluateTemplate(expression('fromJSON(\'{"__proto__": 5}\')'), none);
    expect(JSON.stringify(copy)).toBe('{"__proto__":5}');
  });
});

describe('texts', () => {
  test.each([
    [null, ''],
    [true, 'true'],
    [0.1, '0.1'],
    [-0, '0'],
    [1e3, '1000'],
    ['x', 'x'],
  ])('%s', async (value, wanted) => {
    expect(await evaluateText(literal(value), none)).toBe(wanted);
  });

  test('objects and arrays are refused, but are named within a text', async () => {
    const scope = scopeOf({ github: { a: [1] } });
    await expect(evaluateText(expression('github'), scope)).rejects.toMatchObject({
      reason: 'INVALID_WORKFLOW',
      message: 'Line 3, column 7: A mapping was not expected',
      metadata: { line: '3', column: '7' },
    });
    await expect(evaluateText(expression('github.a'), scope)).rejects.toThrow(
      'A sequence was not expected',
    );
    expect(await evaluateText(expression("format('{0} {1}', github, github.a)"), scope)).toBe(
      'Object Array',
    );
  });

  test('mappings of texts', async () => {
    const env: Template = {
      kind: 'mapping',
      at,
      entries: [
        { key: literal('A'), value: expression('1.50') },
        { key: literal('B'), value: literal(null) },
      ],
    };
    expect(await evaluateTexts(env, none)).toEqual({ A: '1.5', B: '' });
    expect(await evaluateTexts(undefined, none)).toEqual({});
    await expect(evaluateTexts(literal(5), none)).rejects.toThrow("Unexpected value '5'");
  });
});

test('booleans and numbers are not made of texts', async () => {
  expect(await evaluateBoolean(expression('1 == 1'), none)).toBe(true);
  expect(await evaluateNumber(literal(5), none)).toBe(5);
  await expect(evaluateBoolean(literal('true'), none)).rejects.toThrow("Unexpected value 'true'");
  await expect(evaluateNumber(literal('5'), none)).rejects.toThrow("Unexpected value '5'");
  await expect(evaluateNumber(expression("fromJSON('1e999')"), none)).rejects.toThrow(
    "Unexpected value 'Infinity'",
  );
});

describe('errors carry the position and no value', () => {
  test.each([
    ["fromJSON('{not json}')", 'Error parsing JSON when evaluating fromJson'],
    ["fromJSON('')", 'empty input'],
    ["case(true, fromJSON(''), 1)", 'empty input'],
    ['case(github.x, 1, true, 2, 3)', 'case predicate must evaluate to a boolean value'],
    ["format('{0} {1}', 1)", 'references more arguments'],
    ['1 +', "Unexpected symbol: '+'"],
    ['unknown.x', "Unrecognized named-value: 'unknown'"],
    ['unknown(1)', "Unrecognized function: 'unknown'"],
    ["hashFiles('x')", 'The function hashFiles is not available here'],
    ['success()', 'The function success is not available here'],
    ["github[fromJSON('x')]", 'Error parsing JSON when evaluating fromJson'],
  ])('%s', async (source, message) => {
    await expect(evaluateText(expression(source), none)).rejects.toMatchObject({
      reason: 'INVALID_WORKFLOW',
      message: expect.stringContaining(message) as unknown,
      metadata: { line: '3', column: '7' },
    });
  });
});

describe('status functions', () => {
  const fine: StatusView = { isCancelled: false, hasFailure: false };
  const failed: StatusView = { isCancelled: false, hasFailure: true };
  const cancelled: StatusView = { isCancelled: true, hasFailure: false };
  const skippedNeed: StatusView = { ...fine, hasSucceeded: false };
  const condition = (source: string): Condition => ({ source, at });

  test.each([
    [undefined, [true, false, false, false]],
    ['true', [true, false, false, false]],
    ["''", [false, false, false, false]],
    ['0', [false, false, false, false]],
    ['github', [true, false, false, false]],
    ['always()', [true, true, true, true]],
    ['failure()', [false, true, false, false]],
    ['cancelled()', [false, false, true, false]],
    ['success()', [true, false, false, false]],
    ['!cancelled()', [true, true, false, true]],
    ['failure() || cancelled()', [false, true, true, false]],
    ["contains('success()', 'x') || true", [true, false, false, false]],
    ["fromJSON(format('{0}', ALWAYS()))", [true, true, true, true]],
  ])('%s', async (source, wanted) => {
    const views = [fine, failed, cancelled, skippedNeed];
    const results = views.map(
      async (status) =>
        await evaluateCondition(
          source === undefined ? undefined : condition(source),
          scopeOf({ github: {} }, status),
        ),
    );
    expect(await Promise.all(results)).toEqual(wanted);
  });

  test('with names of jobs', async () => {
    const status: StatusView = {
      ...failed,
      conclusionOf: (name) => ({ a: 'success', b: 'failure' } as const)[name],
    };
    const scope = scopeOf({}, status);
    expect(await evaluateCondition(condition("success('a')"), scope)).toBe(true);
    expect(await evaluateCondition(condition("success('a', 'b')"), scope)).toBe(false);
    expect(await evaluateCondition(condition("success('c')"), scope)).toBe(false);
    expect(await evaluateCondition(condition("failure('a', 'b')"), scope)).toBe(true);
    expect(await evaluateCondition(condition("failure('a')"), scope)).toBe(false);
  });

  test('what follows is not evaluated once success() is false', async () => {
    const broken = condition("fromJSON('x')");
    expect(await evaluateCondition(broken, scopeOf({}, failed))).toBe(false);
    await expect(evaluateCondition(broken, scopeOf({}, fine))).rejects.toThrow('fromJson');
  });
});

describe('expressions that ask for much', () => {
  test.each([
    ['a chain', Array.from({ length: 4_000 }, () => '1').join('=='), /too deep/],
    ['deep JSON', `fromJSON('${'['.repeat(200)}${']'.repeat(200)}')`, /deeper than 100 levels/],
    ['nesting', `${'('.repeat(60)}1${')'.repeat(60)}`, /max expression depth/],
    ['length', `'${'x'.repeat(21_000)}'`, /max expression length/],
    [
      'growth',
      `format('${'{0}'.repeat(3_000)}', format('${'{0}'.repeat(3_000)}', github.a))`,
      /longer than/,
    ],
    [
      'join',
      `join(fromJSON('[${Array.from({ length: 3_000 }, () => '1').join()}]'), format('${'{0}'.repeat(1_000)}', github.a))`,
      /longer than/,
    ],
    [
      'work',
      Array.from({ length: 800 }, () => "contains(github.b, 'y')").join('||'),
      /too much work/,
    ],
  ])('%s', async (_name, source, message) => {
    const scope = scopeOf({ github: { a: 'abcdefghij', b: 'x'.repeat(1_000_000) } });
    const outcome = await evaluateTemplate(expression(source), scope).then(
      () => '',
      (error: unknown) => String(error).slice(0, 500),
    );
    expect(outcome).toMatch(message);
  });
});

test('long texts are compared and read as numbers in the time that they are long', async () => {
  const texts = {
    digits: `${'1'.repeat(1_000_000)}x`,
    blanks: `a${' '.repeat(1_000_000)}b`,
    breaks: `{${'\n'.repeat(1_000_000)}}`,
    other: `ü${'x'.repeat(1_000_000)}`,
  };
  const scope = scopeOf({ github: texts });
  const list = `fromJSON('[${Array.from({ length: 500 }, (_, n) => `"ü${n}"`).join()}]')`;
  for (const source of [
    'github.digits == 5',
    'github.blanks == 5',
    'github.breaks > 1',
    `${list}[github.digits]`,
    `contains(${list}, github.other)`,
    'github.other == github.digits',
  ]) {
    const value = await evaluateTemplate(expression(source), scope);
    expect([source, value ?? false]).toEqual([source, false]);
  }
});

describe('hashFiles', () => {
  let root: string;
  let outside: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'hash-'));
    outside = await mkdtemp(join(tmpdir(), 'hash-outside-'));
    await mkdir(join(root, 'dir', 'deep'), { recursive: true });
    await writeFile(join(root, 'a.lock'), 'Hello\n');
    await writeFile(join(root, 'dir', 'b.lock'), 'World\n');
    await writeFile(join(root, 'dir', 'deep', 'c.txt'), 'c');
    await writeFile(join(outside, 'x.lock'), 'secret');
    await symlink(outside, join(root, 'link'));
  });
  afterAll(async () => {
    await rm(root, { recursive: true });
    await rm(outside, { recursive: true });
  });

  /** SHA-256 over the SHA-256 of each file, as GitHub documents it. */
  const hashOf = (...contents: readonly string[]): string => {
    const all = createHash('sha256');
    for (const content of contents) {
      all.update(createHash('sha256').update(content).digest());
    }
    return all.digest('hex');
  };
  const hash = async (source: string): Promise<string> =>
    await evaluateText(expression(source), { contexts: {}, hashRoot: root });

  test('of one file, many, none', async () => {
    expect(await hash("hashFiles('a.lock')")).toBe(hashOf('Hello\n'));
    expect(await hash("hashFiles('**/*.lock')")).toBe(hashOf('Hello\n', 'World\n'));
    expect(await hash("hashFiles('*.lock', 'dir/**')")).toBe(hashOf('Hello\n', 'World\n', 'c'));
    expect(await hash("hashFiles('**/*.lock', '!dir/**')")).toBe(hashOf('Hello\n'));
    expect(await hash("hashFiles('nothing')")).toBe('');
  });

  test('follows links only when asked, and never hashes what lies outside', async () => {
    expect(await hash("hashFiles('link/**')")).toBe('');
    expect(await hash(`hashFiles('${outside}/**')`)).toBe('');
    await expect(hash("hashFiles('--other', 'x')")).rejects.toThrow('Invalid glob option --other');
  });

  test('several in one text, within functions, and only those that are reached', async () => {
    expect(await hash("format('{0}-{1}-{0}', hashFiles('a.lock'), hashFiles('dir/b.lock'))")).toBe(
      `${hashOf('Hello\n')}-${hashOf('World\n')}-${hashOf('Hello\n')}`,
    );
    expect(await hash("hashFiles('a.lock') == '' && hashFiles('--never') || 'x'")).toBe('x');
    expect(await hash("fromJSON('{\"x\": 1}')[hashFiles('a.lock')] || 'none'")).toBe('none');
  });

  test('ends when it is told to', async () => {
    const abort = new AbortController();
    const scope = { contexts: {}, hashRoot: root, signal: abort.signal };
    const hashing = evaluateText(expression("hashFiles('**')"), scope);
    abort.abort();
    await expect(hashing).rejects.toThrow('hashFiles was cancelled');
  });

  test('a workspace that is gone', async () => {
    await expect(
      evaluateText(expression("hashFiles('x')"), { contexts: {}, hashRoot: '/nowhere/at/all' }),
    ).rejects.toMatchObject({ reason: 'INVALID_WORKFLOW' });
  });
});
