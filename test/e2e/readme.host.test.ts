import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shellBlocks } from '../support/readme.ts';
import { type Service, startService } from '../support/service.ts';

/* The walk-throughs of README.md are run as they are written; comments in them say what is printed. */
let service: Service;

beforeAll(async () => {
  // As `npm start` without settings: no service tokens. README.md says that Watch needs its setting.
  service = await startService({
    postgres: 'shared',
    env: { GATEWAY_SERVICE_AUTH_TOKENS: '', GATEWAY_WATCH_STREAMS: '8' },
  });
}, 120_000);
afterAll(async () => {
  await service.stop();
});

test.each([
  ['Walk through the authorization service', 6],
  ['Ask more of it', 7],
])(
  'what stands under "%s" prints what it says',
  async (heading, prints) => {
    const script = shellBlocks(heading).join('');
    const expected = script
      .split('\n')
      .filter((line) => line.startsWith('# '))
      .map((line) => line.slice(2));
    expect(expected.length).toBeGreaterThanOrEqual(prints);
    // Bash takes a socket for its input as a remote login where SHLVL is unset, and would read its startup file.
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', script.replaceAll('localhost:8080', service.address)],
      { timeout: 120_000, env: { ...process.env, XDG_CONFIG_HOME: '/nowhere' } },
    );
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual(expected);
  },
  90_000,
);
