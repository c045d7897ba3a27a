import { describe, expect, test } from 'vitest';
import { baseEnvironment, isBlockedName, isSuspiciousName } from './step-environment.ts';

/** The variables alone. */
const seen = (
  ...parameters: Parameters<typeof baseEnvironment>
): Readonly<Record<string, string>> => baseEnvironment(...parameters).variables;

test('a step sees the allowed names only', () => {
  const env = {
    PATH: '/bin',
    HOME: '/srv/me',
    LC_ALL: 'C',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
    TERM: 'xterm',
    RUNNER_API_TOKEN: 'no',
    RUNNER_WEBHOOK_SECRET: 'no',
    RUNNER_SECRETS_KEY: 'no',
    AWS_SECRET_ACCESS_KEY: 'no',
    GITHUB_TOKEN: 'no',
    NODE_OPTIONS: '--require=/evil.js',
    LD_PRELOAD: '/evil.so',
    npm_config__authToken: 'no',
    CARGO_REGISTRY_TOKEN: 'no',
    UV_PUBLISH_TOKEN: 'no',
    UV_INDEX_PRIVATE_PASSWORD: 'no',
    PIP_PASSWORD: 'no',
    GOAUTH: 'no',
    UNSET: undefined,
  };
  expect(seen(env)).toEqual({
    PATH: '/bin',
    HOME: '/srv/me',
    LC_ALL: 'C',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
    TERM: 'dumb',
    CI: 'true',
  });
});

test('what leads to the network is passed, in both cases', () => {
  const env = {
    HTTP_PROXY: 'http://proxy:3128',
    https_proxy: 'http://proxy:3128',
    ALL_PROXY: 'socks5://proxy',
    no_proxy: 'localhost,.corp',
    NODE_EXTRA_CA_CERTS: '/etc/corp.pem',
    npm_config_cafile: '/etc/corp.pem',
    npm_config_registry: 'https://npm.corp/',
    SSL_CERT_FILE: '/etc/corp.pem',
    REQUESTS_CA_BUNDLE: '/etc/corp.pem',
    PIP_INDEX_URL: 'https://pypi.corp/simple',
    UV_DEFAULT_INDEX: 'https://pypi.corp/simple',
    CARGO_HTTP_CAINFO: '/etc/corp.pem',
    GOPROXY: 'https://go.corp,direct',
    GIT_SSL_CAINFO: '/etc/corp.pem',
  };
  const base = baseEnvironment(env);
  expect(base.variables).toEqual({ ...env, TERM: 'dumb', CI: 'true' });
  expect(base.harmless).toEqual(base.variables);
  expect(base.secrets).toEqual([]);
});

test('who is named in an address is a secret, and not for jobs of forks', () => {
  const { variables, harmless, secrets } = baseEnvironment({
    HTTP_PROXY: 'http://me:s3c%2Fret@proxy:3128',
    https_proxy: 'me:bare-pass@proxy:3128',
    PIP_INDEX_URL: 'https://token-alone@pypi.corp/simple',
    GOPROXY: 'https://go.corp,https://u:go-pass@go2.corp,direct',
    NO_PROXY: 'a@b',
    NODE_EXTRA_CA_CERTS: '/home/me@corp/ca.pem',
  });
  expect(Object.keys(variables)).toContain('HTTP_PROXY');
  expect(harmless).toEqual({
    NO_PROXY: 'a@b',
    NODE_EXTRA_CA_CERTS: '/home/me@corp/ca.pem',
    TERM: 'dumb',
    CI: 'true',
  });
  const hidden = ['s3c%2Fret', 's3c/ret', 'bare-pass', 'token-alone', 'go-pass'];
  expect(secrets).toEqual(expect.arrayContaining(hidden));
  expect(secrets).not.toContain('me');
});

test('more is passed by name, and not to jobs of forks', () => {
  const env = { PATH: '/bin', NPM_TOKEN: 'x', OTHER: 'y' };
  const base = baseEnvironment(env, { passed: ['NPM_TOKEN', 'NOT_THERE'] });
  expect(base.variables).toMatchObject({ NPM_TOKEN: 'x' });
  expect(base.variables).not.toHaveProperty('OTHER');
  expect(base.harmless).not.toHaveProperty('NPM_TOKEN');
});

describe('PATH', () => {
  const gyp = '/usr/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/node-gyp-bin';
  const bins = ['/srv/p/node_modules/.bin', '/srv/node_modules/.bin', '/node_modules/.bin'];
  const own = ['/home/me/node_modules/.bin', '/usr/local/bin', '/usr/bin'];

  test.each([
    ['by npm', [...bins, gyp, ...own]],
    ['by npx', ['/home/me/.npm/_npx/1/node_modules/.bin', ...bins, gyp, ...own]],
    ['by npm in npm', [...bins, gyp, '/x/node_modules/.bin', gyp, ...own]],
    ['by npm at the root', ['/node_modules/.bin', gyp, ...own]],
  ])('what was put in front is taken away: %s', (_, folders) => {
    expect(seen({ PATH: folders.join(':') })['PATH']).toBe(own.join(':'));
  });

  test.each([
    ['a plain one', ['/usr/local/bin', '/usr/bin']],
    ['one that begins with a folder of packages of its own', own],
    ['one with such folders further back', ['/usr/bin', ...bins, gyp]],
    ['one with such folders behind another', ['/opt/bin', '/node_modules/.bin', gyp, '/bin']],
  ])('nothing else is: %s', (_, folders) => {
    expect(seen({ PATH: folders.join(':') })['PATH']).toBe(folders.join(':'));
  });

  test('a given one counts instead', () => {
    expect(seen({ PATH: '/bin' }, { path: '/opt/bin:/bin' })['PATH']).toBe('/opt/bin:/bin');
    expect(baseEnvironment({}, { path: '/opt' }).harmless['PATH']).toBe('/opt');
    expect(seen({})).not.toHaveProperty('PATH');
  });
});

test.each([
  ['NODE_OPTIONS', true, false],
  ['node_options', true, false],
  ['LD_PRELOAD', false, true],
  ['DYLD_INSERT_LIBRARIES', false, true],
  ['PATH', false, false],
  ['MY_NODE_OPTIONS', false, false],
])('%s: blocked %s, suspicious %s', (name, isBlocked, isSuspicious) => {
  expect(isBlockedName(name)).toBe(isBlocked);
  expect(isSuspiciousName(name)).toBe(isSuspicious);
});
