import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import { byLength } from '../../../test/support/test-length.ts';
import { CostMeter, EVALUATION_COST_MAX } from '../cel/cel-meter.ts';
import { isProblem } from '../cel/cel-program.ts';
import {
  CONDITION_FALSE as NO,
  CONDITION_TRUE as YES,
  CONDITION_UNDECIDED as OPEN,
  parseContext,
} from './conditions.ts';
import { compileCondition, prepareDeclaredCondition } from './declared-condition.ts';
import { type ConditionDeclaration, parseConditions } from './model-conditions.ts';

const PARAMETERS = {
  a: 'int',
  b: 'int',
  f: 'double',
  s: 'string',
  ok: 'bool',
  t: 'timestamp',
  now: 'timestamp',
  d: 'duration',
  ip: 'ipaddress',
  l: 'list<string>',
  n: 'list<list<int>>',
  m: 'map<int>',
  x: 'any',
};

function declare(expression: string): ConditionDeclaration {
  const conditions = parseConditions({ own: { parameters: PARAMETERS, expression } }, '$');
  return conditions.get('own') as ConditionDeclaration;
}

function decide(expression: string, params: object, context: object, meter?: CostMeter): number {
  const parsed = parseContext(JSON.stringify(context)) ?? {};
  return prepareDeclaredCondition(declare(expression), JSON.stringify(params))(parsed, meter);
}

describe('what a condition comes to', () => {
  test.each([
    ['a == b', { a: 1 }, { b: 1 }, YES],
    ['a == b', { a: 1 }, { b: 2 }, NO],
    // The tuple's parameters win over the request's.
    ['a == b', { a: 1 }, { a: 2, b: 1 }, YES],
    ['a == b', { a: 1, b: 1 }, {}, YES],
    // What is missing or ill-typed decides nothing, unless the rest does.
    ['a == b', { a: 1 }, {}, OPEN],
    ['a == b', { a: 1 }, { b: '1' }, YES],
    // Texts of numbers as both peers take them.
    ['a == b', { a: 1 }, { b: '01' }, YES],
    ['a == b', { a: 1000 }, { b: '1e3' }, YES],
    ['a == b', { a: '1000.0' }, { b: '+1000' }, YES],
    ['a == b', { a: 1 }, { b: '1.5' }, OPEN],
    ['a == b', { a: 16 }, { b: '0x10' }, OPEN],
    ['a == b', { a: 1 }, { b: '' }, OPEN],
    ['f == 1.5', {}, { f: '1.5' }, YES],
    ['f == 1.5', { f: '15e-1' }, {}, YES],
    ['f == 16.0', {}, { f: '0x10' }, OPEN],
    ['f > 1.0', {}, { f: '1e400' }, OPEN],
    ['a == b', { a: 1 }, { b: 1.5 }, OPEN],
    ['a == b', { a: 1 }, { b: null }, OPEN],
    ['a == b', { a: '9223372036854775807' }, { b: '9223372036854775807' }, YES],
    ['a == b', { a: '9223372036854775808' }, { b: 1 }, OPEN],
    ['a == b || ok', { a: 1 }, { ok: true }, YES],
    ['ok || a == b', { a: 1 }, { ok: true }, YES],
    ['a == b && ok', { a: 1 }, { ok: false }, NO],
    ['a == b && ok', { a: 1 }, { ok: true }, OPEN],
    ['!ok', {}, {}, OPEN],
    ['ok ? a == 1 : true', { a: 2 }, { ok: true }, NO],
    // A parameter that is not declared, or ill-typed, leaves the tuple undecided whatever is asked.
    ['true', { unknown: 1 }, {}, OPEN],
    ['true', { a: 'x' }, {}, OPEN],
    ['true', {}, { unknown: 1 }, YES],
    // A missing input is not one that is not set.
    ['!has(x.banned)', {}, {}, OPEN],
    ['!has(x.banned)', {}, { x: 'text' }, OPEN],
    ['!has(x.banned)', {}, { x: { banned: null } }, NO],
    ['!has(x.banned)', {}, { x: {} }, YES],
    ['!("banned" in x)', {}, { x: { banned: null } }, NO],
    ['has(m.k) && m["k"] == 1', {}, { m: { k: 1 } }, YES],
    ['m["z"] == 1', {}, { m: { k: 1 } }, OPEN],
    ['m.k == 1', {}, { m: { k: 'one' } }, OPEN],
    ['"__proto__" in m', {}, JSON.parse('{"m":{"__proto__":1}}'), YES],
    ['"constructor" in m', {}, { m: {} }, NO],
    ['s in l', { l: ['a', 'b'] }, { s: 'b' }, YES],
    ['s in l', { l: ['a', 1] }, { s: 'b' }, OPEN],
    ['l[0] == "a"', { l: [] }, {}, OPEN],
    ['l.exists(i, i == s)', { l: ['a'] }, { s: 'a' }, YES],
    ['l.all(i, i.startsWith(s))', { l: ['ab', 'ac'] }, { s: 'a' }, YES],
    ['l.exists_one(i, i == s)', { l: ['a', 'a'] }, { s: 'a' }, NO],
    ['l.map(i, i + "x").filter(i, i != "bx") == ["ax"]', { l: ['a', 'b'] }, {}, YES],
    ['n.map(i, i.map(j, j * 2)) == [[2, 4], [6]]', { n: [[1, 2], [3]] }, {}, YES],
    ['l.map(i, l.map(j, i + j)) == [["aa", "ab"], ["ba", "bb"]]', { l: ['a', 'b'] }, {}, YES],
    ['m.exists(k, m[k] > a)', { m: { p: 1, q: 5 } }, { a: 4 }, YES],
    [
      'now < t + d',
      { t: '2026-01-01T00:00:00Z', d: '1h30m' },
      { now: '2026-01-01T01:29:59.999Z' },
      YES,
    ],
    ['now < t + d', { t: '2026-01-01T00:00:00Z', d: '1h30m' }, { now: '2026-01-01T01:30:00Z' }, NO],
    ['now < t', { t: '2026-01-01T00:00:00Z' }, { now: '2026-01-01' }, OPEN],
    ['now < t', { t: '2026-02-30T00:00:00Z' }, { now: '2026-01-01T00:00:00Z' }, OPEN],
    [
      'now - t > duration("10s")',
      { t: '2026-01-01T00:00:00Z' },
      { now: '2026-01-01T00:00:11Z' },
      YES,
    ],
    ['timestamp(a) == t', { a: 1_767_225_600 }, { t: '2026-01-01T00:00:00Z' }, YES],
    ['timestamp(s) == t', { s: '2026-03-01t01:00:00+01:00' }, { t: '2026-03-01T00:00:00Z' }, YES],
    ['timestamp(s) == t', { s: '2026-02-29T00:00:00Z' }, { t: '2026-03-01T00:00:00Z' }, OPEN],
    ['timestamp(s) == t', { s: '2026-02-28T24:00:00Z' }, { t: '2026-03-01T00:00:00Z' }, OPEN],
    ['t.getHours() == 23 && t.getHours("+02:00") == 1', {}, { t: '2026-01-01T23:30:00Z' }, YES],
    ['t.getHours(s) == 1', { s: 'Europe/Paris' }, { t: '2026-01-01T23:30:00Z' }, OPEN],
    ['t.getDayOfWeek() == 4 && t.getMonth() == 0', {}, { t: '2026-01-01T00:00:00Z' }, YES],
    ['ip.in_cidr("10.0.0.0/8")', {}, { ip: '10.1.2.3' }, YES],
    ['ip.in_cidr("10.0.0.0/8")', {}, { ip: '::ffff:10.1.2.3' }, YES],
    ['ip.in_cidr("10.0.0.0/8")', {}, { ip: '11.1.2.3' }, NO],
    ['ip.in_cidr("10.0.0.0/8")', {}, { ip: '2001:db8::1' }, NO],
    ['ip.in_cidr("10.0.0.0/8")', {}, { ip: '10.1.2' }, OPEN],
    ['l.exists(c, ip.in_cidr(c))', { l: ['10.0.0.0/8', 'fe80::/10'] }, { ip: 'fe80::1' }, YES],
    ['ip == ipaddress("2001:DB8:0::1")', {}, { ip: '2001:db8::0:1' }, YES],
    ['s.matches("^[a-z]+$")', {}, { s: 'abc' }, YES],
    ['s.matches("^[a-z]+$")', {}, { s: 'aBc' }, NO],
    ['s.matches(l[0])', { l: ['('] }, { s: 'abc' }, OPEN],
    ['s.matches(l[0])', { l: ['((a{9}){9}){9}'] }, { s: 'abc' }, OPEN],
    ['int(s) == 5', {}, { s: '5' }, YES],
    ['int(s) == 5', {}, { s: ' 5' }, OPEN],
    ['int(s) == 5', {}, { s: '0x5' }, OPEN],
    ['double(s) == 0.0', {}, { s: '' }, OPEN],
    ['a / b == 1', { a: 1 }, { b: 0 }, OPEN],
    ['a / b == 1 || ok', { a: 1 }, { b: 0, ok: true }, YES],
    ['a + b > 0', { a: '9223372036854775807' }, { b: 1 }, OPEN],
    ['x > 1', {}, { x: 2 }, YES],
    ['x > 1', {}, { x: '2' }, OPEN],
    ['x.a[1].b == "c"', {}, { x: { a: [0, { b: 'c' }] } }, YES],
    ['x', {}, { x: true }, YES],
    ['x', {}, { x: 'true' }, OPEN],
    ['x == null', {}, { x: null }, YES],
    ['f > 0.5 && f < 1', {}, { f: 0.75 }, YES],
    ['"\\ue000" < s', {}, { s: '\u{1f600}' }, YES],
    ['s.size() == 1', {}, { s: '\u{1f600}' }, YES],
  ])('%s with %j and %j', (expression, params, context, outcome) => {
    const compiled = compileCondition(declare(expression));
    expect(isProblem(compiled) ? compiled : undefined).toBeUndefined();
    expect(decide(expression, params, context)).toBe(outcome);
  });

  test('does not depend on the time zone of the machine', () => {
    const before = process.env['TZ'];
    // Where clocks are set forward at 02:00, so that 02:30 local time is not there.
    process.env['TZ'] = 'America/New_York';
    try {
      const context = { t: '2026-03-08T02:30:00Z' };
      expect(decide('t.getHours() == 2 && t.getDayOfYear() == 66', {}, context)).toBe(YES);
    } finally {
      if (before === undefined) delete process.env['TZ'];
      else process.env['TZ'] = before;
    }
  });
});

describe('an expression is refused', () => {
  test.each([
    ['q == 1', '1:1: "q" is not a declared parameter'],
    ['nov < t', '1:1: "nov" is not a declared parameter; did you mean "now"?'],
    ['a ==\n  q', '2:3: "q" is not a declared parameter'],
    ['a', '1:1: is a int, not a bool'],
    ['l.map(i, i)', '1:1: is a list<string>, not a bool'],
    ['a == s', 'a int never equals a string'],
    ['a in l', 'a int is never in a list<string>'],
    ['a + f > 1.0', 'int + double: there is no such form'],
    ['a && ok', 'int && bool: there is no such form'],
    ['!a', '!int: there is no such form'],
    ['s.startWith("a")', 'there is no function startWith; did you mean "startsWith"?'],
    ['size(a) == 1', 'size(int): there is no such form'],
    ['a.b == 1', 'a int has no field b'],
    ['has(a.b)', 'a int has no field b'],
    ['m[1] == 1', 'a map<int> has no place int'],
    ['a.all(i, true)', 'a int cannot be gone through'],
    ['l.all(i, i == 1)', 'a string never equals a int'],
    ['l.all(i, i)', 'bool && string: there is no such form'],
    ['a ? true : false', 'a int is no condition'],
    ['s.matches("(")', 'missing closing )'],
    ['s.matches("a{1000}")', 'repeats too much of itself'],
    ['s.matches("\\\\Qa\\\\E")', 'quotes with \\'],
    ['ip.in_cidr("10.0.0.0")', 'is no network like 10.0.0.0/8'],
    ['ip == "10.0.0.1"', 'a ipaddress never equals a string'],
    ['t.getHours("Europe/Paris") == 1', 'a time zone is UTC or an offset'],
    ['t > timestamp("yesterday")', 'is no timestamp'],
    ['t > timestamp("2026-02-30T00:00:00Z")', 'is no timestamp'],
    ['d > duration("1 hour")', 'is no duration'],
    ['Thing{a: 1} == x', 'messages cannot be made'],
    ['google.protobuf.Timestamp == x', '"google" is not a declared parameter'],
    ['a ==', 'syntax error'],
    ['', 'syntax error'],
    ['('.repeat(2_000), ''],
    ['[1].exists(i, '.repeat(60) + 'true' + ')'.repeat(60), 'is nested more than 100 deep'],
    [`a in [${'1,'.repeat(1_010)}1]`, 'has more than 1000 parts'],
  ])('%s', (expression, message) => {
    const compiled = compileCondition(declare(expression));
    expect(isProblem(compiled)).toBe(true);
    if (!isProblem(compiled)) return;
    expect(`${compiled.line}:${compiled.column}: ${compiled.message}`).toContain(message);
    // A stored one that a later release does not take decides nothing.
    expect(decide(expression, {}, {})).toBe(OPEN);
  });
});

test('a model is refused whose expressions are too many or too long in all', () => {
  const many = (count: number, expression: string): object =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, { expression }]));
  const long = `"${'x'.repeat(2_000)}" == ""`;
  expect(() => parseConditions(many(17, long), '$.conditions')).toThrow(
    'more than 32768 characters',
  );
  expect(parseConditions(many(16, long), '$.conditions').size).toBe(16);
  expect(() => parseConditions(many(257, 'true'), '$.conditions')).toThrow('more than 256');
  const parameters = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`p${i}`, 'int']));
  const document = { c: { parameters, expression: 'true' } };
  expect(() => parseConditions(document, '$.conditions')).toThrow('more than 32 parameters');
  const deep = {
    c: { parameters: { p: `${'list<'.repeat(9)}int${'>'.repeat(9)}` }, expression: 'true' },
  };
  expect(() => parseConditions(deep, '$.conditions')).toThrow('is not a type');
});

describe('what an evaluation costs', () => {
  const texts = Array.from({ length: 1_000 }, (_, i) => `item ${i}`);
  const numbers = Array.from({ length: 1_000 }, (_, i) => i);
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);

  test.each([
    ['l.all(i, l.all(j, l.all(k, true)))', { l: texts }],
    ['l.map(i, l.map(j, l.map(k, i))).size() > 0', { l: texts }],
    ['x.all(i, x == x)', { x: numbers }],
    ['x.all(i, x in [x, x, x])', { x: numbers }],
    ['x.all(i, x + x == x || true)', { x: numbers }],
    ['l.all(i, s + s + s + s != i)', { l: texts, s: 'x'.repeat(20_000) }],
    ['l.all(i, s.contains(s + "y") || true)', { l: texts, s: 'x'.repeat(20_000) }],
    ['l.all(i, s.matches("(x+x+)+y") || true)', { l: texts, s: 'x'.repeat(2_000) }],
    ['l.all(i, s.matches("(x|y)*y(x|y){12}$") || true)', { l: texts, s: 'xxyxyy'.repeat(200) }],
    ['l.all(i, s.size() > 0)', { l: texts, s: 'x'.repeat(20_000) }],
    ['l.all(i, l.all(j, 1 / 0 == 1 || true))', { l: texts }],
    ['x.all(k, x[1] == 1 || true)', { x: Object.fromEntries(texts.map((key) => [key, 1])) }],
    ['x.all(k, 1 in x || true)', { x: Object.fromEntries(texts.map((key) => [key, 1])) }],
    ['x.size() > 0', { x: Array.from({ length: 30_000 }, () => 1) }],
    ['x == x', { x: Array.from({ length: 200 }, () => numbers) }],
  ])('%s is bounded, and what is cut short is undecided', (expression, context) => {
    const meter = new CostMeter(EVALUATION_COST_MAX);
    expect(decide(expression, {}, context, meter)).toBe(OPEN);
    expect(meter.isExhausted).toBe(true);
  });

  test('a value nested beyond the bound is none', () => {
    expect(decide('x == x', {}, { x: deep(90) })).toBe(YES);
    expect(decide('x == x', {}, { x: deep(102) })).toBe(OPEN);
  });

  test('what is short-circuited is not cut short', () => {
    const context = { l: texts, ok: true };
    expect(decide('ok || l.all(i, l.all(j, l.all(k, false)))', {}, context)).toBe(YES);
  });

  test('is the same each time', () => {
    const spent = [1, 2, 3].map(() => {
      const meter = new CostMeter(EVALUATION_COST_MAX);
      decide(
        's.matches("^i.*[0-9]$") && s in l',
        { l: texts.slice(0, 50) },
        { s: 'item 7' },
        meter,
      );
      return meter.spent;
    });
    expect(new Set(spent).size).toBe(1);
    expect(spent[0]).toBeGreaterThan(50);
  });
});

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

describe(`whatever is written (SEED=${seed})`, () => {
  const names =
    'a b s l x m t ok ip i 1 "a" 1.5 true null [] {} size matches exists all map filter has int string';
  const signs = '== < + - * / % && || ! ? : in . , ( ) [ ] { }';
  const words = fc.constantFrom(...`${names} ${signs}`.split(' '));
  const expressions = fc.oneof(
    fc.array(words, { maxLength: 24 }).map((list) => list.join(' ')),
    fc.string({ maxLength: 200, unit: anyCharacter }),
  );

  test('an expression is refused or evaluated, and never throws', () => {
    fc.assert(
      fc.property(expressions, fc.object(), fc.object(), (expression, params, context) => {
        const outcome = decide(expression, params, context);
        expect([YES, NO, OPEN]).toContain(outcome);
        if (isProblem(compileCondition(declare(expression)))) expect(outcome).toBe(OPEN);
      }),
      { seed, numRuns: byLength(200, 2_000) },
    );
  });

  test('an input of another type than declared never decides what names it', () => {
    const values = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(PARAMETERS)), values, (name, json) => {
        const outcome = decide(`type(${name}) == type(${name})`, {}, { [name]: json });
        const given = decide(`type(${name}) == type(${name})`, { [name]: json }, {});
        expect(given).toBe(outcome);
        expect([YES, OPEN]).toContain(outcome);
      }),
      { seed, numRuns: byLength(200, 2_000) },
    );
  });
});
