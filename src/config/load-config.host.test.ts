import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { AppError } from '../shared/app-error.ts';
import { loadConfig } from './load-config.ts';
import type { Machine } from './option.ts';
import { OPTIONS } from './options.ts';

const MACHINE: Machine = { cpuCount: 8, memoryBytes: 4 * 1024 ** 3 };

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env, MACHINE);
  } catch (error) {
    if (error instanceof AppError && error.reason === 'CONFIG_INVALID') {
      return error.message.split('\n');
    }
    throw error;
  }
  return [];
}

describe('defaults', () => {
  test('are those of the contract', () => {
    expect(loadConfig({}, MACHINE)).toMatchObject({
      connectPort: 8080,
      metricsPort: 9090,
      defaultProjectId: 'default',
      serviceAuthTokens: [],
      adminApiSecrets: [],
      auditLog: false,
      maxCheckReads: 10_000,
      maxCheckDepth: 256,
      maxBodyBytes: 8 * 1024 * 1024,
      maxWriteUpdates: 1000,
      maxBatchItems: 10_000,
      region: '',
      projectTtlSeconds: 30,
      invitationTtlHours: 168,
      dataDir: '.data',
      drainMs: 1000,
      databaseUrl: undefined,
    });
  });

  test('follow the machine', () => {
    expect(loadConfig({}, MACHINE)).toMatchObject({ workers: 7, indexBytes: 2 * 1024 ** 3 });
    expect(loadConfig({}, { cpuCount: 1, memoryBytes: 1024 })).toMatchObject({ workers: 1 });
  });

  test('pass their own bounds, in every table row', () => {
    for (const option of Object.values(OPTIONS)) {
      const value: unknown = option.fallback(MACHINE, {});
      if (typeof value !== 'number' && typeof value !== 'boolean') continue;
      expect(option.parse(String(value))).toBe(value);
    }
  });

  test('only this machine can connect until the address is set, whatever credentials there are', () => {
    expect(loadConfig({}, MACHINE).host).toBe('127.0.0.1');
    expect(loadConfig({ GATEWAY_SERVICE_AUTH_TOKENS: 'a' }, MACHINE).host).toBe('127.0.0.1');
    expect(loadConfig({ GATEWAY_HOST: '::1' }, MACHINE).host).toBe('::1');
  });
});

describe('values', () => {
  test('are read and trimmed', () => {
    const config = loadConfig(
      {
        GATEWAY_CONNECT_PORT: ' 0 ',
        GATEWAY_SERVICE_AUTH_TOKENS: ' a, ,b,',
        GATEWAY_INVITATION_TTL_HOURS: '.5',
        GATEWAY_AUDIT_LOG: 'true',
        GATEWAY_REGION: '',
        DATABASE_URL: 'postgres:///gatehouse?host=/run/pg',
      },
      MACHINE,
    );
    expect(config).toMatchObject({
      connectPort: 0,
      serviceAuthTokens: ['a', 'b'],
      invitationTtlHours: 0.5,
      auditLog: true,
      region: '',
    });
  });

  test.each([
    ['GATEWAY_CONNECT_PORT', '65536', 'must lie between 0 and 65535, not 65536'],
    ['GATEWAY_CONNECT_PORT', '1e3', 'must be a whole number'],
    ['GATEWAY_CONNECT_PORT', ' ', 'must be a whole number'],
    ['GATEWAY_MAX_CHECK_READS', '99', 'must lie between 100 and 1000000000, not 99'],
    ['GATEWAY_INVITATION_TTL_HOURS', '0', 'must lie between 0.000001 and 87600, not 0'],
    ['GATEWAY_INVITATION_TTL_HOURS', 'Infinity', 'must be a number, such as 1.5'],
    ['GATEWAY_AUDIT_LOG', 'yes', 'must be true or false'],
    ['GATEWAY_LOG_LEVEL', 'loud', 'must be one of debug, info, warn, error'],
    ['GATEWAY_SERVICE_AUTH_TOKENS', ' , ', 'is set but holds no entry'],
    ['GATEWAY_SERVICE_AUTH_TOKENS', ' ', 'is set but holds no entry'],
    [
      'GATEWAY_ADMIN_API_SECRET',
      'top secret',
      'holds an entry with characters that a header cannot carry',
    ],
    [
      'DATABASE_URL',
      'mysql://u:secret@h/d',
      'must be a postgres:// or postgresql:// URL of one server',
    ],
    [
      'DATABASE_URL',
      'postgres://u:s@a:5432,b:5432/d',
      'must be a postgres:// or postgresql:// URL of one server',
    ],
    ['GATEWAY_METRICS_PORT', '8080', 'must differ from GATEWAY_CONNECT_PORT'],
    ['GATEWAY_CONECT_PORT', '1', 'no such setting; did you mean GATEWAY_CONNECT_PORT?'],
    ['GATEWAY_COMPLETELY_DIFFERENT', '1', 'no such setting'],
    ...['own', 'node'].map((value) => [
      'GATEWAY_HTTP2',
      value,
      'no longer a setting; HTTP/2 has one framing, which `own` was. Remove the variable',
    ]),
  ])('%s=%s: %s', (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name}: ${problem}`]);
  });

  test('all problems are told together, and no secret in any of them', () => {
    const problems = problemsOf({
      GATEWAY_WORKERS: '0',
      GATEWAY_POLL_INTERVAL_MS: 'often',
      GATEWAY_ADMIN_API_SECRET: 'top secret',
    });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toContain('top secret');
  });
});

test('a process with wrong settings ends with code 2, every problem and no stack', () => {
  const script = `import { loadConfigOrExit } from './src/config/load-config.ts'; loadConfigOrExit();`;
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, GATEWAY_WORKERS: '0', GATEWAY_PORT: '1' },
  });
  expect(result.status).toBe(2);
  expect(result.stderr).toContain('  GATEWAY_WORKERS: must lie between 1 and 256, not 0\n');
  expect(result.stderr).toContain('  GATEWAY_PORT: no such setting');
  expect(result.stderr).not.toMatch(/\n\s+at /);
});
