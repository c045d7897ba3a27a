import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir } from '../../support/job-harness.ts';
import { makeWorkspace, startRunner } from '../../support/runner.ts';
import { runCli } from './cli-process.ts';

test('the names of a committed vault are listed in a fresh clone, with its key and without', async () => {
  const workspace = makeWorkspace({ '.github/workflows/a.yml': 'on: push\njobs: {}\n' }, true);
  for (const [name, ...place] of [
    ['api_key'],
    ['token', '--env', 'production'],
    ['kept_here', '--backend', 'local'],
  ] as const) {
    const args = ['secrets', 'set', name, '--backend', 'vault', ...place];
    expect(await runCli(workspace, args, { input: 'hunter2' })).toMatchObject({
      code: 0,
    });
  }
  const git = (cwd: string, ...args: string[]) => execFileSync('git', args, { cwd });
  git(workspace, 'add', '-A');
  git(workspace, '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'vault');
  const clone = join(temporaryDir(), 'clone');
  git(workspace, 'clone', '-q', workspace, clone);
  const list = async (env: Record<string, string>, ...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await runCli(clone, ['secrets', 'list', ...args], { env });
    return [code, stdout, stderr.split(':')[0]];
  };
  const vault = ['--backend', 'vault'];
  expect(await list({}, ...vault)).toEqual([0, 'API_KEY\nTOKEN\n', '']);
  expect(await list({}, ...vault, '--env', 'production')).toEqual([0, 'TOKEN\n', '']);
  const stranger = { HOME: clone, XDG_CONFIG_HOME: join(clone, '.config') };
  const hint = 'The values need a key';
  expect(await list(stranger, ...vault)).toEqual([0, 'API_KEY\nTOKEN\n', hint]);
  expect(await list({}, '--backend', 'local')).toEqual([0, '', '']);
  expect(await list({}, '--backend', 'safe')).toEqual([2, '', 'error']);
  // The same where a runner serves the clone; this one has no key.
  await startRunner(clone);
  expect(await list({}, ...vault, '--env', 'production')).toEqual([0, 'TOKEN\n', hint]);
});
