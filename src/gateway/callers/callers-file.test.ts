import { describe, expect, test } from 'vitest';
import { parseCallersFile } from './callers-file.ts';

const scope = { projects: ['atlas'], tenants: '*', services: ['*'], methods: ['read', 'write'] };
const caller = { name: 'billing', tokens: ['a:b', 'secret-2'], scopes: [scope] };
const issuer = {
  issuer: 'https://issuer.example',
  audience: 'gatehouse',
  algorithms: ['ES256'],
  jwks_url: 'https://issuer.example/keys',
};
const digest = 'a'.repeat(64);

const parse = (...callers: unknown[]): unknown =>
  parseCallersFile(JSON.stringify({ callers, jwt_issuers: [issuer] }));

describe('parseCallersFile', () => {
  test('reads names, tokens, digests, subjects, scopes and rates', () => {
    const jwt = [{ issuer: issuer.issuer, subject: 'svc' }];
    const second = {
      name: 'b',
      token_sha256: [digest],
      jwt,
      scopes: [],
      rate_limit: { per_second: 1.5 },
    };
    expect(parse(caller, second)).toEqual({
      callers: [
        {
          name: 'billing',
          tokens: ['a:b', 'secret-2'],
          tokenDigests: [],
          jwts: [],
          scopes: [
            { projects: ['atlas'], tenants: '*', services: '*', methods: ['read', 'write'] },
          ],
          rateLimit: undefined,
        },
        {
          name: 'b',
          tokens: [],
          tokenDigests: [digest],
          jwts: jwt,
          scopes: [],
          rateLimit: { perSecond: 1.5, burst: 2 },
        },
      ],
      issuers: [
        {
          issuer: issuer.issuer,
          audience: 'gatehouse',
          algorithms: ['ES256'],
          jwksUrl: issuer.jwks_url,
          clockToleranceSeconds: 0,
        },
      ],
    });
  });

  const wrong: readonly (readonly [string, unknown])[] = [
    ['callers is empty', { callers: [] }],
    ['lacks callers', {}],
    ['callers must be a list', { callers: {} }],
    ['must be an object', []],
    ['may have only callers, jwt_issuers', { callers: [caller], 'secret-2': 1 }],
    ['callers[0].name must be', { callers: [{ ...caller, name: 'a b' }] }],
    ['must not be other', { callers: [{ ...caller, name: 'other' }] }],
    ['callers[0].tokens[0] must be', { callers: [{ ...caller, tokens: ['secret-2 '] }] }],
    ['callers[0].token_sha256[0] must be', { callers: [{ ...caller, token_sha256: ['A'] }] }],
    ['has none of tokens', { callers: [{ name: 'a', scopes: [] }] }],
    ['callers[0] lacks scopes', { callers: [{ name: 'a', tokens: ['x'] }] }],
    ['callers[1] has a name that callers[0]', { callers: [caller, { ...caller, tokens: ['z'] }] }],
    ['callers[1] has a token that callers[0]', { callers: [caller, { ...caller, name: 'c' }] }],
    ['callers[0].scopes[0] lacks tenants', scopeWith({ tenants: undefined })],
    ['callers[0].scopes[0].tenants has "*" beside', scopeWith({ tenants: ['a', '*'] })],
    ['callers[0].scopes[0].projects[0] must be', scopeWith({ projects: ['Atlas'] })],
    ['callers[0].scopes[0].services[0] must be one of', scopeWith({ services: ['AuthzService'] })],
    ['callers[0].scopes[0].methods[0] must be one of', scopeWith({ methods: ['admin'] })],
    ['per_second must be above 0', { callers: [{ ...caller, rate_limit: { per_second: 0 } }] }],
    ['must be an https:// URL', issuerWith({ jwks_url: 'http://issuer.example/keys' })],
    ['must be an https:// URL', issuerWith({ jwks_url: 'https://u:p@issuer.example/' })],
    ['algorithms[0] must be one of', issuerWith({ algorithms: ['HS256'] })],
    ['algorithms[0] must be one of', issuerWith({ algorithms: ['none'] })],
    ['algorithms is empty', issuerWith({ algorithms: [] })],
    ['names an issuer', { callers: [{ ...caller, jwt: [{ issuer: 'x', subject: 'y' }] }] }],
  ];

  test.each(wrong)('refuses what %s, and shows no token', (text, document) => {
    const read = (): unknown => parseCallersFile(JSON.stringify(document));
    expect(read).toThrow(text);
    expect(read).not.toThrow('secret-2');
  });

  test('shows nothing of what is no JSON', () => {
    expect(() => parseCallersFile('{"callers":[{"tokens":["secret-2')).toThrow(
      /^is not valid JSON$/,
    );
  });
});

function scopeWith(change: object): unknown {
  return { callers: [{ ...caller, scopes: [{ ...scope, ...change }] }] };
}

function issuerWith(change: object): unknown {
  return { callers: [caller], jwt_issuers: [{ ...issuer, ...change }] };
}
