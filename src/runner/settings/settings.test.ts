import { expect, test } from 'vitest';
import { AppError } from '../../shared/app-error.ts';
import { loadRunnerSettings, redactedRunnerSettings } from './settings.ts';

const MACHINE = { cpuCount: 8, memoryBytes: 4 * 1024 ** 3 };

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadRunnerSettings(env, MACHINE);
  } catch (error) {
    if (error instanceof AppError && error.reason === 'CONFIG_INVALID') {
      return error.message.split('\n');
    }
    throw error;
  }
  return [];
}

test('the defaults are those of the contract', () => {
  expect(loadRunnerSettings({}, MACHINE)).toMatchObject({
    port: 4800,
    host: 'localhost',
    workspace: '.',
    apiToken: undefined,
    allowedOrigins: [],
    allowedHosts: [],
    maxConcurrentRuns: 4,
    maxConcurrentJobs: 8,
    maxQueuedRuns: 100,
    maxSubscribers: 256,
    subscriberBufferBytes: 1024 * 1024,
    retainedRuns: 500,
    retainedDays: 30,
    runsOn: 'host',
    enableSchedule: false,
    inboxPort: undefined,
    metricsPort: undefined,
  });
});

test.each([
  [
    { HOST: '0.0.0.0' },
    ['HOST: 0.0.0.0 can be reached from other machines, which demands RUNNER_API_TOKEN'],
  ],
  [
    { HOST: '127.example.org' },
    ['HOST: 127.example.org can be reached from other machines, which demands RUNNER_API_TOKEN'],
  ],
  [{ HOST: '0.0.0.0', RUNNER_API_TOKEN: 'x' }, []],
  [{ HOST: '127.0.0.2' }, []],
  [{ RUNNER_INBOX_PORT: '4800' }, ['RUNNER_INBOX_PORT: must differ from PORT']],
  [{ RUNNER_METRICS_PORT: '0', RUNNER_INBOX_PORT: '0', PORT: '0' }, []],
  [
    { RUNNER_ALOWED_HOSTS: 'x' },
    ['RUNNER_ALOWED_HOSTS: no such setting; did you mean RUNNER_ALLOWED_HOSTS?'],
  ],
  [{ RUNNER_SECRET_DEPLOY_KEY: 'x', RUNNER_TEMP: '/tmp', RUNNER_OS: 'Linux' }, []],
  [
    { RUNNER_ALLOWED_ORIGINS: 'http://a.example/path' },
    [
      'RUNNER_ALLOWED_ORIGINS: holds "http://a.example/path"; each must be `*` or an origin such as http://localhost:3000',
    ],
  ],
  [
    { RUNNER_SECRETS_KEY: 'hush' },
    ['RUNNER_SECRETS_KEY: must be one line of at least 8 characters'],
  ],
])('%j: %j', (env, problems) => {
  expect(problemsOf(env as unknown as Record<string, string>)).toEqual(problems);
});

test('printing hides secrets', () => {
  const settings = loadRunnerSettings(
    { RUNNER_API_TOKEN: 'hush', RUNNER_HOST_TOKEN: 'hush', RUNNER_WEBHOOK_SECRET: 'hush' },
    MACHINE,
  );
  expect(JSON.stringify(redactedRunnerSettings(settings))).not.toContain('hush');
});
