import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  declare,
  INT_MAX,
  isDecided,
  PARAMETERS,
  why,
} from '../../../test/support/failing-conditions.ts';
import { isProblem } from '../cel/cel-program.ts';
import { compileCondition } from './declared-condition.ts';

describe('each kind of failure is named with its part, its place, its cause and what decides it', () => {
  test.each([
    // Keys and places.
    [
      's == "fin" && x.region == "eu"',
      { s: 'fin', x: {} },
      'x.region at 1:16 failed: no such key: region; the input x decides it',
    ],
    [
      'x.a.b == 1',
      { x: { a: 'text' } },
      'x.a.b at 1:4 failed: a string has no key b; the input x decides it',
    ],
    ['has(x.a)', { x: [1] }, 'has(x.a) at 1:1 failed: a list has no key a; the input x decides it'],
    ['m["k"] == 1', { m: {} }, 'm["k"] at 1:2 failed: no such key: k; the input m decides it'],
    [
      'm[s] == 1',
      { m: {}, s: 'secret' },
      'm[s] at 1:2 failed: no such key: the value of s; the inputs m and s decide it',
    ],
    ['x[5] == 1', { x: {} }, 'x[5] at 1:2 failed: no such key: 5; the input x decides it'],
    [
      'n[a] > 0',
      { n: [1, 2], a: 5 },
      'n[a] at 1:2 failed: index 5 is out of range of a list of 2; the inputs a and n decide it',
    ],
    [
      'n[0 - 1] > 0',
      { n: [1, 2] },
      'n[0 - 1] at 1:2 failed: index -1 is out of range of a list of 2; the input n decides it',
    ],
    [
      'x[y] == 1',
      { x: [1], y: 'one' },
      'x[y] at 1:2 failed: a place of a list must be a whole number, not a string; the inputs x and y decide it',
    ],
    [
      'x[y] == 1',
      { x: 1, y: 0 },
      'x[y] at 1:2 failed: a double is neither a list nor a map; the inputs x and y decide it',
    ],
    [
      'x[y] == 1',
      { x: {}, y: [] },
      'x[y] at 1:2 failed: a list is no key of a map; the inputs x and y decide it',
    ],
    [
      'y in x',
      { x: 1, y: 0 },
      'y in x at 1:3 failed: a double is neither a list nor a map; the inputs x and y decide it',
    ],
    [
      'y in x',
      { x: {}, y: [] },
      'y in x at 1:3 failed: a list is no key of a map; the inputs x and y decide it',
    ],
    // Arithmetic.
    ['a / b > 1', { a: 4, b: 0 }, 'a / b at 1:3 failed: division by zero; the input b decides it'],
    ['a % b > 1', { a: 4, b: 0 }, 'a % b at 1:3 failed: division by zero; the input b decides it'],
    [
      'a ==\n b + 1',
      { a: 4, b: INT_MAX },
      'b + 1 at 2:4 failed: integer overflow; the input b decides it',
    ],
    [
      'a * b > 1',
      { a: 4, b: INT_MAX },
      'a * b at 1:3 failed: integer overflow; the inputs a and b decide it',
    ],
    [
      '-a > 1',
      { a: '-9223372036854775808' },
      '-a at 1:1 failed: integer overflow; the input a decides it',
    ],
    [
      't + d > t',
      { t: '9999-12-31T23:59:59Z', d: '1s' },
      't + d at 1:3 failed: the result is beyond the range of timestamps and durations; the inputs d and t decide it',
    ],
    [
      'd + d > d',
      { d: '2000000h' },
      'd + d at 1:3 failed: the result is beyond the range of timestamps and durations; the input d decides it',
    ],
    // Conversions.
    [
      'timestamp(s) > t',
      { s: 'soon', t: '2026-01-01T00:00:00Z' },
      'timestamp(s) at 1:1 failed: s is not a timestamp like 2026-01-31T00:00:00Z; the input s decides it',
    ],
    [
      'timestamp(a) > t',
      { a: INT_MAX, t: '2026-01-01T00:00:00Z' },
      'timestamp(a) at 1:1 failed: a is beyond the range of a timestamp; the input a decides it',
    ],
    [
      'duration(s) > d',
      { s: 'long', d: '1s' },
      'duration(s) at 1:1 failed: s is not a duration like 1h30m; the input s decides it',
    ],
    [
      'int(s) > 1',
      { s: 'one' },
      'int(s) at 1:1 failed: s is not a whole number of 64 bits; the input s decides it',
    ],
    [
      'int(f) > 1',
      { f: 1e30 },
      'int(f) at 1:1 failed: f is beyond the range of an int; the input f decides it',
    ],
    [
      'uint(a) > 1u',
      { a: -1 },
      'uint(a) at 1:1 failed: a is beyond the range of a uint; the input a decides it',
    ],
    [
      'uint(s) > 1u',
      { s: '-1' },
      'uint(s) at 1:1 failed: s is not a whole number of 64 bits from 0; the input s decides it',
    ],
    [
      'double(s) > 1.0',
      { s: 'one' },
      'double(s) at 1:1 failed: s is not a number; the input s decides it',
    ],
    [
      'bool(s)',
      { s: 'perhaps' },
      'bool(s) at 1:1 failed: s is not true or false; the input s decides it',
    ],
    [
      'ipaddress(s) == ip',
      { s: 'here', ip: '10.0.0.1' },
      'ipaddress(s) at 1:1 failed: s is not an address; the input s decides it',
    ],
    [
      'string(b"\\xff") == s',
      { s: '' },
      'string(b"\\377") at 1:1 failed: b"\\377" is not UTF-8; it reads no input, so no request decides it',
    ],
    // Addresses, patterns, time zones.
    [
      'ip.in_cidr(s)',
      { ip: '10.0.0.1', s: '10.0.0' },
      'ip.in_cidr(s) at 1:3 failed: s is no network like 10.0.0.0/8; the input s decides it',
    ],
    [
      'x.in_cidr("10.0.0.0/8")',
      { x: 'here' },
      'x.in_cidr("10.0.0.0/8") at 1:2 failed: x is no address; the input x decides it',
    ],
    [
      's.matches(l[0])',
      { s: 'a', l: ['secret('] },
      's.matches(l[0]) at 1:2 failed: l[0] is no valid pattern: missing closing ); the input l decides it',
    ],
    [
      's.matches(l[0])',
      { s: 'a', l: ['((a{9}){9}){9}'] },
      's.matches(l[0]) at 1:2 failed: l[0] is no valid pattern: a pattern repeats too much of itself; the input l decides it',
    ],
    [
      't.getHours(s) == 1',
      { t: '2026-01-01T00:00:00Z', s: 'Europe/Paris' },
      't.getHours(s) at 1:2 failed: a time zone is UTC or an offset like +02:00; the input s decides it',
    ],
    // Types that only the evaluation knows.
    [
      'x > 1',
      { x: '2' },
      'x > 1 at 1:3 failed: a string cannot be compared with an int; the input x decides it',
    ],
    [
      'x + 1 == 2',
      { x: 1 },
      'x + 1 at 1:3 failed: there is no + for a double and an int; the input x decides it',
    ],
    ['!x', { x: 'true' }, '!x at 1:1 failed: there is no ! for a string; the input x decides it'],
    [
      'x.startsWith("a")',
      { x: 1 },
      'x.startsWith("a") at 1:2 failed: there is no startsWith of a double for a string; the input x decides it',
    ],
    [
      'size(x) > 1',
      { x: null },
      'size(x) at 1:1 failed: there is no size for null; the input x decides it',
    ],
    ['x', { x: 'true' }, 'x at 1:1 failed: it is a string, not a bool; the input x decides it'],
    [
      'ok && x',
      { ok: true, x: 1 },
      'x at 1:7 failed: it is a double, not a bool; the input x decides it',
    ],
    [
      'x ? ok : !ok',
      { ok: true, x: 1 },
      'x at 1:1 failed: it is a double, not a bool; the input x decides it',
    ],
    [
      'x.all(i, i > 1)',
      { x: 'text' },
      'x at 1:1 failed: it is a string, not a list or a map; the input x decides it',
    ],
    [
      'x.exists(i, i)',
      { x: [1] },
      'i at 1:13 failed: it is a double, not a bool; the input x decides it',
    ],
    [
      'x == {y: 1, "a": 2}',
      { x: 1, y: 'a' },
      '{y: 1, "a": 2} at 1:6 failed: a key is there twice; the input y decides it',
    ],
    [
      'x == {y: 1}',
      { x: 1, y: [] },
      '{y: 1} at 1:6 failed: a key of a map must be a string, a whole number or a bool; the input y decides it',
    ],
    // Within macros: the variable is of the list.
    [
      'l.all(i, i.startsWith("k") || int(i) > 0)',
      { l: ['k1', '7', 'secret'] },
      'int(i) at 1:31 failed: i is not a whole number of 64 bits; the input l decides it',
    ],
    [
      'l.map(i, int(i)).exists(j, j == a)',
      { l: ['1', 'x'], a: 1 },
      'int(i) at 1:10 failed: i is not a whole number of 64 bits; the input l decides it',
    ],
    [
      'l.filter(i, m[i] > 1).size() > 0',
      { l: ['p', 'q'], m: { p: 2 } },
      'm[i] at 1:14 failed: no such key: the value of i; the inputs l and m decide it',
    ],
    [
      'l.exists_one(i, m[i] > 1)',
      { l: ['q'], m: {} },
      'm[i] at 1:18 failed: no such key: the value of i; the inputs l and m decide it',
    ],
    // The bound of an evaluation.
    [
      'l.all(i, l.all(j, l.all(k, true)))',
      { l: Array.from({ length: 100 }, () => 'x') },
      'l.all(i, l.all(j, l.all(k, true))) at 1:2 failed: it costs more than the 20000 units of one evaluation; the input l decides it',
    ],
    [
      'x.size() > 0',
      { x: Array.from({ length: 30_000 }, () => 1) },
      'the input x is larger than one evaluation may read',
    ],
  ])('%s with %j', (expression, context, reason) => {
    expect(isProblem(compileCondition(declare(expression).get('own') as never))).toBe(false);
    expect(isDecided(expression, {}, context)).toBe(false);
    expect(why(expression, {}, context)).toMatchObject({ reason, missingInputs: [] });
  });
});

describe('what an undecided evaluation lacks', () => {
  const missing = (expression: string, params: object, context: object): readonly string[] =>
    why(expression, params, context)?.missingInputs ?? [];

  test.each([
    ['a == b', { a: 1 }, {}, ['b']],
    ['a == b', {}, {}, ['a']],
    ['a == b', { a: 1 }, { b: 'x' }, ['b']],
    ['a == b || ok', {}, { a: 1 }, ['b', 'ok']],
    ['ok && a == b', {}, { ok: false }, []],
    ['a / b == 1', { a: 1, b: 0 }, {}, []],
    ['l.exists(i, i == s)', { l: ['a'] }, {}, ['s']],
    ['l.exists(i, i == s)', { l: [] }, {}, []],
    ['has(x.y)', {}, {}, ['x']],
    ['true', { a: 'x' }, {}, []],
  ])('%s with %j and %j', (expression, params, context, wanted) => {
    expect(missing(expression, params, context)).toEqual(wanted);
  });
});

test('a reason has a bound, shows no value of an input, and is well-formed text', () => {
  const long = `int(${Array.from({ length: 90 }, () => 's').join(' + ')}) == 1 && m.${'k'.repeat(300)} == 1`;
  const found = why(long, {}, { s: 'hunter2', m: {} });
  expect(found?.reason.length).toBeLessThanOrEqual(500);
  expect(found?.reason).toMatch(
    /^int\(s \+ s.*… at 1:1 failed: .* is not a whole number of 64 bits \(and 1 more\); the input s/,
  );
  expect(found?.reason).not.toContain('hunter2');
  const key = why(`m.${'k'.repeat(300)} == 1`, {}, { m: {} });
  expect(key?.reason).toContain(`no such key: ${'k'.repeat(63)}…; the input m decides it`);
  const astral = why(
    `s == "${'\u{1f600}'.repeat(200)}" && m["${'\u{1f600}'.repeat(70)}"] == 1`,
    {},
    { m: {} },
  );
  expect(astral?.reason.isWellFormed()).toBe(true);
});

test('lists gone through one after another cost no more than their length', () => {
  const expression = `l${'.map(i, i)'.repeat(60)}.exists(i, int(i) > 0)`;
  const found = why(expression, {}, { l: ['x'] });
  expect(found?.reason).toMatch(/^int\(i\) at 1:\d+ failed: .*; the input l decides it$/);
});

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

test(`a reason is found exactly where the evaluation decides nothing (SEED=${seed})`, () => {
  const leaf = fc.constantFrom(
    'a',
    'b',
    's',
    'x',
    'y',
    'ok',
    'l',
    'm',
    'n',
    '1',
    '0',
    '"a"',
    'true',
    '[]',
    '{}',
    'int',
    'f',
  );
  const { part } = fc.letrec<{ part: string }>((tie) => {
    const one = tie('part');
    const two = fc.tuple(one, one);
    return {
      part: fc.oneof(
        { depthSize: 'small', maxDepth: 5 },
        leaf,
        fc
          .tuple(one, fc.constantFrom('==', '<', '+', '*', '/', '&&', '||', 'in'), one)
          .map(([p, o, q]) => `(${p} ${o} ${q})`),
        two.map(([p, q]) => `(x ? ${p} : ${q})`),
        two.map(([p, q]) => `${p}[${q}]`),
        one.map((p) => `dyn(${p})`),
        one.map((p) => `int(${p})`),
        one.map((p) => `type(${p})`),
        one.map((p) => `dyn(${p}).k`),
        one.map((p) => `has(dyn(${p}).k)`),
        two.map(([p, q]) => `[${p}, ${q}]`),
        two.map(([p, q]) => `{${p}: ${q}}`),
        fc
          .tuple(
            fc.constantFrom('x', 'l', 'n', 'm'),
            fc.constantFrom('all', 'exists', 'exists_one', 'filter', 'map'),
            one,
          )
          .map(([p, macro, q]) => `${p}.${macro}(a, ${q})`),
      ),
    };
  });
  const values = fc.oneof(
    fc.constantFrom(0, 1, 'a', true, null, {}, [], { k: 1 }, ['a', '1'], [0, 1], [true]),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const inputs = fc.dictionary(fc.constantFrom(...Object.keys(PARAMETERS)), values);
  let undecided = 0;
  fc.assert(
    fc.property(part, inputs, (one, context) => {
      const expression = `dyn(${one}) == true || dyn(${one})`;
      if (expression.length > 2_000) return;
      if (isProblem(compileCondition(declare(expression).get('own') as never))) return;
      const found = why(expression, {}, context);
      expect(found === undefined).toBe(isDecided(expression, {}, context));
      if (found === undefined) return;
      undecided++;
      expect(found.reason).not.toContain('it has no value');
      expect(found.reason).not.toContain('@');
    }),
    { seed, numRuns: 3_000 },
  );
  expect(undecided).toBeGreaterThan(100);
});
