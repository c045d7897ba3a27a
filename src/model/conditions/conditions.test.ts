import { describe, expect, test } from 'vitest';
import {
  CONDITION_FALSE as NO,
  CONDITION_TRUE as YES,
  CONDITION_UNDECIDED as OPEN,
  parseContext,
  prepareCondition,
} from './conditions.ts';

function outcome(name: string, params: unknown, context: unknown): number {
  const json = params === undefined ? '' : JSON.stringify(params);
  const parsed = parseContext(context === undefined ? '' : JSON.stringify(context));
  return parsed === undefined ? OPEN : prepareCondition(name, json)(parsed);
}

describe('conditions', () => {
  test.each([
    ['unheard_of', {}, {}, OPEN],
    ['consent_granted', undefined, { consent: true }, YES],
    ['consent_granted', undefined, { consent: false }, NO],
    ['consent_granted', undefined, {}, OPEN],
    ['consent_granted', undefined, undefined, OPEN],
    ['consent_granted', undefined, { consent: 'yes' }, OPEN],
    ['consent_granted', { purpose: 'ads' }, { consent: true }, YES],
    ['consent_granted', { purpose: 'ads' }, { consent: ['mail', 'ads'] }, YES],
    ['consent_granted', { purpose: 'ads' }, { consent: ['mail'] }, NO],
    ['consent_granted', { purpose: 'ads' }, { consent: ['ads', 1] }, OPEN],
    ['consent_granted', undefined, { consent: ['ads'] }, OPEN],
    ['consent_granted', { purpose: 1 }, { consent: true }, OPEN],
    ['age_at_least', { min_age: 18 }, { age: 18 }, YES],
    ['age_at_least', { min_age: 18 }, { age: 17.9 }, NO],
    ['age_at_least', { min_age: 18 }, { age: '18' }, OPEN],
    ['age_at_least', { min_age: '18' }, { age: 18 }, OPEN],
    ['age_at_least', {}, { age: 18 }, OPEN],
    ['age_at_least', { min_age: 18 }, {}, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8'] }, { ip: '10.1.2.3' }, YES],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8'] }, { ip: '11.1.2.3' }, NO],
    ['ip_in_cidrs', { cidrs: [] }, { ip: '11.1.2.3' }, NO],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8', 'x'] }, { ip: '10.1.2.3' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/33'] }, { ip: '10.1.2.3' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0'] }, { ip: '10.0.0.0' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/08'] }, { ip: '10.0.0.0' }, OPEN],
    ['ip_in_cidrs', { cidrs: '10.0.0.0/8' }, { ip: '10.0.0.0' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['0.0.0.0/0'] }, { ip: '10.1' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['0.0.0.0/0'] }, { ip: '010.1.1.1' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['0.0.0.0/0'] }, { ip: '::1' }, NO],
    ['ip_in_cidrs', { cidrs: ['::/0'] }, { ip: '1.2.3.4' }, NO],
    ['ip_in_cidrs', { cidrs: ['2001:db8::/32'] }, { ip: '2001:db8:1::5' }, YES],
    ['ip_in_cidrs', { cidrs: ['2001:db8::/32'] }, { ip: 'fe80::1%eth0' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8'] }, { ip: '::ffff:10.1.2.3' }, YES],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8'] }, { ip: '::ffff:a01:203' }, YES],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.0/104'] }, { ip: '10.1.2.3' }, YES],
    ['ip_in_cidrs', { cidrs: ['::ffff:0:0/96'] }, { ip: '10.1.2.3' }, YES],
    ['ip_in_cidrs', { cidrs: ['10.0.0.0/8'] }, {}, OPEN],
    ['ip_in_cidrs', {}, { ip: '10.0.0.0' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['x/8'] }, { ip: '10.0.0.0' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['0.0.0.0/0', '::/0'] }, { ip: '::ffff:010.1.1.1' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['10.0.0.1/32'] }, { ip: '10.0.0.1' }, YES],
    ['ip_in_cidrs', { cidrs: ['10.0.0.1/32'] }, { ip: '10.0.0.2' }, NO],
    ['ip_in_cidrs', { cidrs: ['2001:db8::/64'] }, { ip: '2001:db8::2' }, YES],
    ['ip_in_cidrs', { cidrs: ['2001:db8::1/128'] }, { ip: '2001:db8::1' }, YES],
    ['ip_in_cidrs', { cidrs: ['2001:db8::1/128'] }, { ip: '2001:db8::2' }, NO],
    ['ip_in_cidrs', { cidrs: ['2001:db8::1/129'] }, { ip: '2001:db8::1' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.1/128'] }, { ip: '10.0.0.1' }, YES],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.1/128'] }, { ip: '10.0.0.2' }, NO],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.1/129'] }, { ip: '10.0.0.1' }, OPEN],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.0/80'] }, { ip: '::5' }, YES],
    ['ip_in_cidrs', { cidrs: ['::ffff:10.0.0.0/80'] }, { ip: '10.0.0.0' }, NO],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2030-01-01T00:00:00.000Z' }, YES],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2030-01-01T00:00:00.0001Z' }, NO],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2030-01-01T01:00:00+01:00' }, YES],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2030-01-01T00:00:00-00:01' }, NO],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2029-02-29T00:00:00Z' }, OPEN],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2029-02-28 00:00:00Z' }, OPEN],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: '2029-02-28T00:00:00' }, OPEN],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: 1 }, OPEN],
    ['not_after', { not_after: '2030-01-01T00:00:00Z' }, { now: ['2029-02-28T00:00:00Z'] }, OPEN],
    ['not_after', { not_after: ['2030-01-01T00:00:00Z'] }, { now: '2029-02-28T00:00:00Z' }, OPEN],
    ['not_after', { not_after: '2030' }, { now: '2029-02-28T00:00:00Z' }, OPEN],
    ['scope_in', { scopes: ['a', 'b'] }, { scope: 'x b' }, YES],
    ['scope_in', { scopes: ['a', 'b'] }, { scope: 'x ab' }, NO],
    ['scope_in', { scopes: ['a', 'b'] }, { scopes: ['b'] }, YES],
    ['scope_in', { scopes: ['a', 'b'] }, { scope: 'x', scopes: ['b'] }, YES],
    ['scope_in', { scopes: ['a', 'b'] }, { scope: 'a', scopes: [1] }, OPEN],
    ['scope_in', { scopes: ['a', 'b'] }, { scope: 1 }, OPEN],
    ['scope_in', { scopes: ['a', 'b'] }, {}, OPEN],
    ['scope_in', { scopes: 'a' }, { scope: 'a' }, OPEN],
    ['scope_in', { scopes: [] }, { scope: 'a' }, NO],
    ['scope_in', { scopes: ['', 'a'] }, { scope: 'b  c' }, NO],
    ['scope_in', { scopes: ['', 'a'] }, { scope: '' }, NO],
    ['scope_in', { scopes: ['', 'a'] }, { scopes: [''] }, NO],
  ])('%s %j %j: %i', (name, params, context, wanted) => {
    expect(outcome(name, params, context)).toBe(wanted);
  });

  test('inherited properties are no input', () => {
    expect(parseContext('[]')).toBeUndefined();
    expect(prepareCondition('consent_granted', '')(Object.create({ consent: true }))).toBe(OPEN);
  });

  test.each(['null', '1', '"a"', '[]', '[{}]', '{', 'x'])('%s is no context', (json) => {
    expect(parseContext(json)).toBeUndefined();
    expect(prepareCondition('age_at_least', json)({ age: 30 })).toBe(OPEN);
    expect(prepareCondition('consent_granted', json)({ consent: true })).toBe(OPEN);
  });

  test('no text is a context without members', () => {
    expect(Object.keys(parseContext('') ?? { none: 1 })).toEqual([]);
  });

  test('a number beyond all bounds decides nothing', () => {
    const context = parseContext('{"age":1e999}');
    expect(context?.['age']).toBe(Infinity);
    expect(prepareCondition('age_at_least', '{"min_age":18}')(context ?? {})).toBe(OPEN);
    expect(prepareCondition('age_at_least', '{"min_age":-1e999}')({ age: 18 })).toBe(OPEN);
  });
});
