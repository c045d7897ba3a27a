/** Texts of values in conditions: what is read as a duration, a number, a bool, and how cel-go writes what CEL's suite writes otherwise. */
import { describe, expect, test } from 'vitest';
import {
  CONDITION_FALSE as NO,
  CONDITION_TRUE as YES,
  CONDITION_UNDECIDED as OPEN,
} from '../../src/model/conditions/conditions.ts';
import { prepareCondition } from '../../src/model/conditions/conditions.ts';
import {
  compileCondition,
  parametersFault,
  prepareDeclaredCondition,
} from '../../src/model/conditions/declared-condition.ts';
import {
  type ConditionDeclaration,
  parseConditions,
} from '../../src/model/conditions/model-conditions.ts';

const PARAMETERS = { s: 'string', f: 'double', t: 'timestamp', d: 'duration', x: 'any' };

function declare(expression: string): ConditionDeclaration {
  const declared = parseConditions({ own: { parameters: PARAMETERS, expression } }, '$').get('own');
  if (declared === undefined) throw new Error('it is not declared');
  return declared;
}

function decide(expression: string, context: { readonly [name: string]: unknown }): number {
  return prepareDeclaredCondition(declare(expression), '')(context);
}

describe('texts that are read', () => {
  test.each([
    ['1.5s', '1s + 500ms'],
    ['1h30m', '90m'],
    ['-1.5h', '-90m'],
    ['+1m', '60s'],
    ['.5s', '500ms'],
    ['1.s', '1s'],
    ['1\u03bcs', '1000ns'],
    ['1\u00b5s', '1us'],
    ['0', '0s'],
    ['-0', '0s'],
    ['0.3333333333h', '1199999999880ns'],
    ['1.9999999999ns', '1ns'],
    ['2562047h47m16.854775807s', '9223372036854775807ns'],
  ])('the duration %s is %s', (text, equal) => {
    const sum = equal.split(' + ').map((one) => `duration("${one}")`);
    const same = sum.length === 2 ? `${sum[0]} + ${sum[1]}` : sum[0];
    expect(decide(`d == ${same}`, { d: text })).toBe(YES);
    expect(decide(`duration(s) == ${same}`, { s: text })).toBe(YES);
  });

  test.each([
    '',
    '+',
    '-',
    's',
    '.s',
    '1',
    '1x',
    '1 s',
    '1s ',
    '1S',
    '--1s',
    '2562047h48m',
    '1e3s',
  ])('there is no duration "%s"', (text) => {
    expect(decide('d == d', { d: text })).toBe(OPEN);
    expect(decide('duration(s) == duration(s)', { s: text })).toBe(OPEN);
    expect(compileCondition(declare(`d == duration("${text}")`))).toMatchObject({
      message: 'is no duration',
    });
  });

  test.each([
    ['bool(s)', 'T', YES],
    ['bool(s)', 'F', NO],
    ['bool(s)', 'tRUE', OPEN],
    ['double(s) != double(s)', 'nan', YES],
    ['double(s) != double(s)', 'NAN', YES],
    ['double(s) > 0.0', '1e400', OPEN],
    ['uint(s) == 1u', '1', YES],
    ['uint(s) == 1u', '+1', OPEN],
    ['t.getHours(s) == 0', '+24:00', OPEN],
    ['matches(s, "^a")', 'abc', YES],
    ['matches(s, "^b")', 'abc', NO],
    ['matches("a", s)', '(', OPEN],
    ['s == "x" // the end', 'x', YES],
    ['// first\ns == "x" //', 'x', YES],
    ['string(b"\\xef\\xbb\\xbfa") == s', '\ufeffa', YES],
  ])('%s of %s', (expression, s, outcome) => {
    expect(decide(expression, { s, t: '2026-01-01T00:00:00Z' })).toBe(outcome);
  });

  test('a pattern is looked at in both forms of matches, and paid for', () => {
    for (const expression of ['matches(s, "(")', 's.matches("(")']) {
      expect(compileCondition(declare(expression))).toMatchObject({
        message: expect.stringContaining('missing closing )') as string,
      });
    }
    expect(decide('matches(s, "(a{9}){9}$")', { s: 'a'.repeat(20_000) })).toBe(OPEN);
  });

  test('the built-in conditions take no number in a text', () => {
    const aged = prepareCondition('age_at_least', '{"min_age":18}');
    expect(aged({ age: 18 })).toBe(YES);
    for (const age of ['18', '1.8e1', '18.0']) expect(aged({ age })).toBe(OPEN);
    expect(prepareCondition('age_at_least', '{"min_age":"18"}')({ age: 18 })).toBe(OPEN);
  });

  test('a tuple may hold a number in a text', () => {
    const declaration = declare('f > 1.0');
    expect(parametersFault(declaration, { f: '1.5' })).toBeUndefined();
    expect(parametersFault(declaration, { f: '0x1' })).toStrictEqual({
      parameter: 'f',
      problem: 'must be a double',
    });
  });
});

describe('what cel-go 0.31 writes and counts', () => {
  // Recorded from it by `string()`, `int()` and `getMilliseconds()`.
  test.each([
    [1e6, '1e+06'],
    [100_000, '100000'],
    [123_456_789, '1.23456789e+08'],
    [1e21, '1e+21'],
    [1.5e-4, '0.00015'],
    [1.5e-5, '1.5e-05'],
    [1e-7, '1e-07'],
    [1e100, '1e+100'],
    [-0, '-0'],
    [0, '0'],
    [0.1, '0.1'],
    [-12_345.678, '-12345.678'],
    [5e-324, '5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
  ])('the double %s as %s', (f, text) => {
    expect(decide(`goString(f) == "${text}"`, { f })).toBe(YES);
    expect(decide(`goString(x) == "${text}"`, { x: f })).toBe(YES);
  });

  test.each([
    ['1.0 / 0.0', '+Inf'],
    ['-1.0 / 0.0', '-Inf'],
    ['0.0 / 0.0', 'NaN'],
    ['-1', '-1'],
    ['1u', '1'],
    ['true', 'true'],
    ['"a"', 'a'],
    ['b"a"', 'a'],
  ])('%s as %s', (value, text) => {
    expect(decide(`goString(${value}) == "${text}"`, {})).toBe(YES);
  });

  test.each([
    ['2026-01-01T00:00:00.100Z', '2026-01-01T00:00:00.1Z'],
    ['2026-01-01T00:00:00.000+00:00', '2026-01-01T00:00:00Z'],
    ['2026-01-01T01:30:00.123456789+05:30', '2026-01-01T01:30:00.123456789+05:30'],
    ['2025-12-31T23:00:00-09:30', '2025-12-31T23:00:00-09:30'],
    ['0001-01-01T00:00:00-00:01', '0001-01-01T00:00:00-00:01'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ])('the timestamp %s as %s', (t, text) => {
    expect(decide(`goString(t) == "${text}"`, { t })).toBe(YES);
    expect(decide(`goString(timestamp(s)) == "${text}"`, { s: t })).toBe(YES);
    expect(decide(`goString(t + duration("0s")) == "${text}"`, { t })).toBe(YES);
    expect(decide(`goString(duration("0s") + t) == "${text}"`, { t })).toBe(YES);
    expect(decide(`goString(t - duration("0s")) == "${text}"`, { t })).toBe(YES);
    expect(decide(`[t].all(one, goString(one) == "${text}")`, { t })).toBe(YES);
  });

  test.each([
    ['1.5s', '1.5s', 1_500_000_000n, 1500],
    ['1m30.5s', '90.5s', 90_500_000_000n, 90_500],
    ['-1m30.5s', '-90.5s', -90_500_000_000n, -90_500],
    ['1ns', '0.000000001s', 1n, 0],
    ['0', '0s', 0n, 0],
    ['1h', '3600s', 3_600_000_000_000n, 3_600_000],
    ['9223372036854775807ns', '9223372036.854776s', 9_223_372_036_854_775_807n, 9_223_372_036_854],
  ])('the duration %s as %s, %s ns, %s ms', (d, text, nanos, ms) => {
    expect(decide(`goString(d) == "${text}"`, { d })).toBe(YES);
    expect(decide(`goInt(d) == ${nanos}`, { d })).toBe(YES);
    expect(decide(`d.goMilliseconds() == ${ms}`, { d })).toBe(YES);
  });

  test('sums of times keep within the years 1 to 9999', () => {
    const t = '9999-12-31T23:59:59.999999999Z';
    expect(decide('t + duration("1ns") > t', { t })).toBe(OPEN);
    expect(decide('t - duration("-1ns") > t', { t })).toBe(OPEN);
    const first = { t: '0001-01-01T00:00:00Z' };
    expect(decide('t - duration("1ns") < t', first)).toBe(OPEN);
    expect(decide('t + duration("-1.5s") + duration("1.5s") == t', first)).toBe(OPEN);
    expect(decide('t + duration("1.5s") - duration("1.5s") == t', first)).toBe(YES);
  });
});
