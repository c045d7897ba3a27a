import { expect, test } from 'vitest';
import { baseEnvironment, isBlockedName, isSuspiciousName } from './step-environment.ts';

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
    npm_config_registry: 'no',
    UNSET: undefined,
  };
  expect(baseEnvironment(env)).toEqual({
    PATH: '/bin',
    HOME: '/srv/me',
    LC_ALL: 'C',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
    TERM: 'dumb',
    CI: 'true',
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
