import { describe, expect, test } from 'vitest';
import { declare, INT_MAX, isDecided, why } from '../../../test/support/failing-conditions.ts';
import { whyUndecided } from './undecided-condition.ts';

describe('which input decides it', () => {
  test.each([
    // What the tuple gives is named, too.
    ['a + b == 1', { a: INT_MAX }, { b: 1 }, 'the input b decides it, the tuple gives a'],
    ['a + b == 1', { a: INT_MAX, b: 1 }, {}, 'the tuple gives a and b, so no request decides it'],
    // What is to blame alone decides it alone.
    ['a / b == 1', { b: 0 }, { a: 1 }, 'the tuple gives b, so no request decides it'],
    ['s.matches(l[0])', { l: ['('] }, { s: '' }, 'the tuple gives l, so no request decides it'],
    ['ip.in_cidr(s)', { s: '' }, { ip: '::1' }, 'the tuple gives s, so no request decides it'],
    ['ip.in_cidr(s)', {}, { ip: '::1', s: '' }, 'the input s decides it'],
    [
      't.getHours(s) > 1',
      { s: 'x' },
      { t: '2026-01-01T00:00:00Z' },
      'the tuple gives s, so no request decides it',
    ],
    ['1 / 0 == 1', {}, {}, 'it reads no input, so no request decides it'],
    // What another operand makes up for is decided by that one.
    [
      'ok || a / b == 1',
      { a: 1, b: 0 },
      { ok: false },
      'the tuple gives b, so only ok of the request can decide without it',
    ],
    [
      '(ok ? a / b : a) == 1',
      { a: 1, b: 0 },
      { ok: true },
      'the tuple gives b, so only ok of the request can decide without it',
    ],
    [
      '(a / b == 1 ? ok : ok) && s == ""',
      { a: 1, b: 0, s: '' },
      { ok: true },
      'the tuple gives b, so no request decides it',
    ],
    [
      'l.all(i, m.k == 1)',
      { m: {} },
      { l: ['x'] },
      'the tuple gives m, so only l of the request can decide without it',
    ],
    ['l.all(i, m[i] == 1)', { l: ['x'] }, { m: {} }, 'the input m decides it, the tuple gives l'],
    [
      'l.map(i, 1 / 0).size() > 0',
      {},
      { l: ['x'] },
      'it reads no input, so only l of the request can decide without it',
    ],
  ])('%s with %j and %j', (expression, params, context, ending) => {
    expect(isDecided(expression, params, context)).toBe(false);
    expect(why(expression, params, context)?.reason.replace(/^.*?; /, '')).toBe(ending);
  });
});

describe('of several failures', () => {
  test.each([
    // One side of && or || makes up for the other.
    ['(x.p == 1 || true) && y.q == 1', { x: {}, y: {} }, ['y.q at 1:24 failed: no such key: q']],
    ['(x.p == 1 && false) || y.q == 1', { x: {}, y: {} }, ['y.q at 1:25 failed: no such key: q']],
    ['l.exists(i, m[i] == 1) || x.p == 1', { l: ['a', 'b'], m: { b: 1 }, x: {} }, undefined],
    [
      'l.exists(i, m[i] == 1) || x.p == 1',
      { l: ['a', 'b'], m: { b: 2 }, x: {} },
      ['m[i] at 1:14 failed: no such key: the value of i (and 1 more)'],
    ],
    ['x.p == 1 && y.q == 1', { x: {}, y: {} }, ['x.p at 1:2 failed: no such key: p (and 1 more)']],
    // Of a part that fails of several items only the first is told.
    [
      'l.all(i, int(i) > 0)',
      { l: ['p', 'q'] },
      ['int(i) at 1:10 failed: i is not a whole number of 64 bits'],
    ],
    // Inputs that lack come first; one that is made up for is not asked for.
    [
      'a == 1 || x.p == 1',
      { x: {} },
      ['the context lacks a', 'x.p at 1:12 failed: no such key: p'],
      ['a'],
    ],
    ['(a == 1 || true) && x.p == 1', { x: {} }, ['x.p at 1:22 failed: no such key: p']],
    ['a == 1 || b == 2 || ok', {}, ['the context lacks a, b and ok'], ['a', 'b', 'ok']],
    [
      'a == 1 || ok || x.p',
      { a: 'one', ok: 1, x: {} },
      [
        'a in the context must be an int',
        'ok in the context must be a bool',
        'x.p at 1:18 failed: no such key: p',
      ],
      ['a', 'ok'],
    ],
  ])('%s with %j', (expression, context, reasons, missing = []) => {
    expect(isDecided(expression, {}, context)).toBe(reasons === undefined);
    const found = why(expression, {}, context);
    const parts = found?.reason.split('; ').filter((part) => !part.endsWith('it'));
    expect([parts, found?.missingInputs]).toEqual(
      reasons === undefined ? [undefined, undefined] : [reasons, missing],
    );
  });
});

describe('of what no request decides', () => {
  test.each([
    ['true', { a: 'x' }, '"a" of own must be a int; no request decides it'],
    [
      'true',
      { aa: 1 },
      '"aa" of own is not a parameter of the condition; did you mean "a"?; no request decides it',
    ],
    [
      'q == 1',
      {},
      'its expression is not valid, 1:1: "q" is not a declared parameter; did you mean "a"?; no request decides it',
    ],
  ])('%s with %j', (expression, params, reason) => {
    expect(why(expression, params, {})).toMatchObject({ reason, missingInputs: [] });
  });

  test('a request without context needs one', () => {
    const tuple = { conditionName: 'own', conditionParams: '{"a":1}' };
    expect(whyUndecided(declare('a == 1'), tuple, '')?.reason).toBe(
      'the request has no context; an empty one decides it',
    );
    expect(whyUndecided(declare('a == b'), tuple, '')?.reason).toBe('the context lacks b');
    expect(whyUndecided(declare('a == 1'), tuple, '{}')).toBeUndefined();
  });
});

describe('a built-in condition', () => {
  test.each([
    [
      'consent_granted',
      { purpose: 1 },
      {},
      '"purpose" of consent_granted must be a string; no request decides it',
      [],
    ],
    ['consent_granted', {}, {}, 'the context lacks consent', ['consent']],
    [
      'consent_granted',
      {},
      { consent: ['ads'] },
      'consent in the context must be a bool, since the tuple names no purpose to look for in a list',
      ['consent'],
    ],
    [
      'consent_granted',
      { purpose: 'ads' },
      { consent: 1 },
      'consent in the context must be a bool or a list of strings',
      ['consent'],
    ],
    [
      'age_at_least',
      {},
      {},
      '"min_age" of age_at_least is required by the condition; no request decides it',
      [],
    ],
    [
      'age_at_least',
      { min_age: '18' },
      {},
      '"min_age" of age_at_least must be a number; no request decides it',
      [],
    ],
    ['age_at_least', { min_age: 18 }, { age: 'x' }, 'age in the context must be a number', ['age']],
    [
      'ip_in_cidrs',
      { cidrs: '10.0.0.0/8' },
      {},
      '"cidrs" of ip_in_cidrs must be a list of networks like 10.0.0.0/8; no request decides it',
      [],
    ],
    [
      'ip_in_cidrs',
      { cidrs: ['10.0.0.0/8', '10.0.0'] },
      {},
      '"cidrs" of ip_in_cidrs is not a list of networks like 10.0.0.0/8: entry 1 is none; no request decides it',
      [],
    ],
    [
      'ip_in_cidrs',
      { cidrs: ['10.0.0.0/8'] },
      { ip: '10.0' },
      'ip in the context must be an address',
      ['ip'],
    ],
    [
      'not_after',
      { not_after: 'soon' },
      {},
      '"not_after" of not_after must be a timestamp like 2026-01-31T00:00:00Z; no request decides it',
      [],
    ],
    [
      'not_after',
      { not_after: '2026-01-01T00:00:00Z' },
      { now: 1 },
      'now in the context must be a timestamp like 2026-01-31T00:00:00Z',
      ['now'],
    ],
    [
      'scope_in',
      { scopes: 'a' },
      {},
      '"scopes" of scope_in must be a list of strings; no request decides it',
      [],
    ],
    ['scope_in', { scopes: ['a'] }, {}, 'the context lacks scope or scopes', ['scope', 'scopes']],
    [
      'scope_in',
      { scopes: ['a'] },
      { scopes: 'a' },
      'scope in the context must be a string, or scopes a list of strings',
      ['scope', 'scopes'],
    ],
    ['unheard_of', {}, {}, 'there is no condition "unheard_of"; no request decides it', []],
  ])('%s with %j and %j', (conditionName, params, context, reason, missingInputs) => {
    const tuple = { conditionName, conditionParams: JSON.stringify(params) };
    const found = whyUndecided(new Map(), tuple, JSON.stringify(context));
    expect(found).toMatchObject({ reason, missingInputs });
  });

  test('that is decided has no reason', () => {
    const tuple = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
    expect(whyUndecided(new Map(), tuple, '{"age":1}')).toBeUndefined();
  });
});
