import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { commit, createFixture, seedProject } from './fixture.ts';

const run = promisify(execFile);

/** Files below `dir` that hold `text`, relative to it. */
async function filesWith(dir: string, text: string): Promise<readonly string[]> {
  const { stdout } = await run('grep', ['-rlaF', '-e', text, '.'], { cwd: dir }).catch(
    (error: unknown) => {
      // grep ends with 1 when it finds nothing.
      if ((error as { code?: unknown }).code === 1) return { stdout: '' };
      throw error;
    },
  );
  return stdout.split('\n').filter((name) => name !== '');
}

test('neither token nor webhook secret stand in a file, an argument, an audit line or a message', async () => {
  const fixture = await createFixture();
  await seedProject(fixture);
  const { host, sync, stateDir, projectDir } = fixture;
  // Stands before git in PATH and writes down what it is called with.
  const argumentsFile = join(stateDir, '..', 'arguments');
  const binDir = join(stateDir, '..');
  const path = process.env['PATH'] ?? '';
  const realGit = (await run('which', ['git'])).stdout.trim();
  const wrapper = `#!/bin/sh\nprintf '%s\\n' "$@" >> '${argumentsFile}'\nexec '${realGit}' "$@"\n`;
  await writeFile(join(binDir, 'git'), wrapper);
  await chmod(join(binDir, 'git'), 0o755);
  process.env['PATH'] = `${binDir}${delimiter}${path}`;
  onTestFinished(() => {
    process.env['PATH'] = path;
  });

  const { owner, repo } = host;
  const secret = 'webhook-secret-for-tests';
  await sync.putConfig({
    enabled: true,
    host: { owner, repo, pollIntervalMs: 0, webhookSecret: secret },
  });
  host.state.addIssue();
  await host.writeWiki({ 'Home.md': 'x' });
  expect((await sync.pull({})).errors).toEqual([]);
  await commit(projectDir, 'One');
  await sync.push({});
  const body = JSON.stringify({ message: `bad credentials ${host.token}` });
  host.plan({ match: /./, status: 403, body, times: 9 });
  const failed = await sync.pull({ full: true });
  expect(failed.errors.length).toBeGreaterThan(2);
  const rawBody = Buffer.from('{"a":1}');
  const signature = createHmac('sha256', secret).update(rawBody).digest('hex');
  const headers = new Headers({
    'x-host-event': 'push',
    'x-host-signature-256': `sha256=${signature}`,
  });
  await sync.verifyDelivery({ headers, rawBody });

  const basic = Buffer.from(`x-access-token:${host.token}`).toString('base64');
  for (const text of [host.token, basic]) {
    expect(await filesWith(join(stateDir, '..'), text)).toEqual([]);
  }
  expect(await filesWith(join(stateDir, '..'), 'ls-remote')).toContain('./arguments');
  expect(await filesWith(stateDir, secret)).toEqual([]);
  const told = JSON.stringify([failed, await sync.audit({}), sync.status(), sync.getConfig()]);
  for (const text of [host.token, basic, secret]) expect(told).not.toContain(text);
});
