import { describe, expect, test } from 'vitest';
import { createAuthenticator } from './service-tokens.ts';

describe('createAuthenticator', () => {
  const authenticator = createAuthenticator(['first-token', 'second']);

  test.each(['Bearer first-token', 'bearer second', 'BEARER second', 'Bearer   second'])(
    'accepts %s',
    (header) => {
      expect(authenticator.accepts(header)).toBe(true);
    },
  );

  test.each([
    '',
    'Bearer',
    'Bearer ',
    'second',
    'Basic second',
    'Bearer secon',
    'Bearer second ',
    'Bearer secondx',
    'Bearersecond',
    'Bearer first-token,second',
    'Bearer second second',
  ])('refuses "%s"', (header) => {
    expect(authenticator.accepts(header)).toBe(false);
  });

  test('takes other tokens from the next call on, and none in place of some', () => {
    const replaced = createAuthenticator(['old']);
    replaced.replace(['old', 'new']);
    expect([replaced.accepts('Bearer old'), replaced.accepts('Bearer new')]).toEqual([true, true]);
    replaced.replace(['new']);
    expect([replaced.accepts('Bearer old'), replaced.accepts('Bearer new')]).toEqual([false, true]);
    expect(() => replaced.replace([])).toThrow('at start alone');
    expect(replaced.accepts('')).toBe(false);
    expect(() => createAuthenticator([]).replace(['new'])).toThrow('at start alone');
  });

  test('trusts everybody while no token is configured', () => {
    const open = createAuthenticator([]);
    expect(open.enabled).toBe(false);
    expect(open.accepts('')).toBe(true);
  });
});
