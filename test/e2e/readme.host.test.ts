import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shellBlocks } from '../support/readme.ts';
import { type Service, startService } from '../support/service.ts';

/* The walk-through of README.md is run as it is written; comments in it say what is printed. */
let service: Service;

beforeAll(async () => {
  // As `npm start` without settings: no service tokens.
  service = await startService({ env: { GATEWAY_SERVICE_AUTH_TOKENS: '' } });
}, 90_000);
afterAll(async () => {
  await service.stop();
});

test('the walk-through prints what it says', async () => {
  const script = shellBlocks('Walk through the authorization service').join('');
  const expected = script
    .split('\n')
    .filter((line) => line.startsWith('# '))
    .map((line) => line.slice(2));
  expect(expected.length).toBeGreaterThan(5);
  // Bash takes a socket for its input as a remote login where SHLVL is unset, and would read its startup file.
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', script.replaceAll('localhost:8080', service.address)],
    { timeout: 60_000 },
  );
  expect(stderr).toBe('');
  expect(stdout.trim().split('\n')).toEqual(expected);
}, 90_000);
