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

  test('trusts everybody while no token is configured', () => {
    const open = createAuthenticator([]);
    expect(open.enabled).toBe(false);
    expect(open.accepts('')).toBe(true);
  });
});
