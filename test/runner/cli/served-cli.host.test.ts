import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runEnded, startRun, startRunner } from '../../support/runner.ts';
import { inLong, inShort } from '../../support/test-length.ts';
import { callCli, runCli, startCli } from './cli-process.ts';
import { cliProject } from './cli-project.ts';

describe('with another runner on the workspace', { timeout: 120_000 }, () => {
  inShort(test)('commands call it, with its token', async () => {
    const workspace = cliProject(true);
    const token = 'the-token-of-this-runner';
    const { url } = await startRunner(workspace, { RUNNER_API_TOKEN: token });
    const endpoint = readFileSync(join(workspace, '.runner', 'endpoint.json'), 'utf8');
    expect(JSON.parse(endpoint)).toEqual({ url, pid: process.pid });
    expect(endpoint).not.toContain(token);
    const refused = await callCli(workspace, ['run', 'ok']);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('RUNNER_API_TOKEN'),
    ]);
    const env = { RUNNER_API_TOKEN: token };
    const run = await callCli(workspace, ['run', 'ok', '-i', 'who=Ann'], env);
    expect(run.code).toBe(0);
    for (const text of ['build │   Hello Ann', '✓ Build it success', 'careful', '  digits  5 B']) {
      expect(run.stdout).toContain(text);
    }
    expect((await callCli(workspace, ['logs', '1'], env)).stdout).toContain('Hello Ann\n');
  });

  inShort(test)('errors and events are those of the runner', async () => {
    const workspace = cliProject(true);
    await startRunner(workspace);
    const env = {};
    const inputs = await callCli(workspace, ['run', 'ok', '-i', 'count=x'], env);
    expect([inputs.code, inputs.stderr]).toEqual([
      2,
      'error: the inputs are wrong\n  count: must be a number\n',
    ]);
    const json = await callCli(workspace, ['run', 'fail', '--json'], env);
    expect(json.code).toBe(1);
    const types = json.stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect([types[0], types.at(-1)]).toEqual(['run.started', 'run.completed']);
    expect((await callCli(workspace, ['runs'], env)).stdout.split('\n')).toHaveLength(2);
    const push = ['run', 'event', '--event', 'push', '-e', '-'];
    const event = await runCli(workspace, push, { env, input: '{"after":"abc"}' });
    expect([event.code, event.stdout]).toEqual([0, expect.stringContaining('show │ push abc')]);
    const none = await callCli(workspace, ['run', 'fail', '--event', 'push'], env);
    expect([none.code, none.stderr]).toEqual([2, 'error: fail.yml has no trigger push\n']);
  });

  inLong(test)('secrets are those of the runner', async () => {
    const workspace = cliProject(true);
    await startRunner(workspace);
    const set = await runCli(workspace, ['secrets', 'set', 'KEY'], { input: 'secret-value' });
    expect(set.code).toBe(0);
    expect((await callCli(workspace, ['secrets', 'list'])).stdout).toBe('KEY\n');
  });

  inShort(test)('Ctrl-C cancels the run over there, and so does cancel', async () => {
    const workspace = cliProject(true);
    const { url } = await startRunner(workspace);
    const cli = startCli(workspace, ['run', 'nap']);
    await cli.until('│ sleeping');
    cli.interrupt();
    // npm's copy of what the terminal has sent to both.
    cli.interrupt('SIGTERM');
    expect(await cli.ended).toBe(130);
    expect(cli.stdout).toContain('│ cleaned up');
    expect(cli.stderr).not.toContain('Killing the run');
    const id = await startRun(url, 'nap');
    const cancel = await callCli(workspace, ['cancel', id]);
    expect([cancel.code, cancel.stdout]).toEqual([0, `Cancelling ${id}\n`]);
    expect((await runEnded(url, id)).conclusion).toBe('cancelled');
  });

  inShort(test)('a second one waits for nobody: it says who has the workspace', async () => {
    const workspace = cliProject();
    const first = startCli(workspace, ['run', 'nap']);
    await first.until('│ sleeping');
    const second = await callCli(workspace, ['run', 'ok']);
    expect([second.code, second.stdout]).toEqual([1, '']);
    expect(second.stderr).toContain(`process ${first.pid} runs something in this workspace`);
    first.interrupt();
    expect(await first.ended).toBe(130);
    expect((await callCli(workspace, ['run', 'skip', '-q'])).code).toBe(0);
  });

  inLong(test)('a runner that is gone is told, when the run was its', async () => {
    const workspace = cliProject(true);
    const { runner } = await startRunner(workspace, { RUNNER_SHUTDOWN_TIMEOUT_MS: '100' });
    const cli = startCli(workspace, ['run', 'stubborn']);
    await cli.until('│ sleeping');
    await runner.stop();
    // It was told of the end before the streams were completed.
    expect(await cli.ended).not.toBe(0);
    expect(existsSync(join(workspace, '.runner', 'endpoint.json'))).toBe(false);
  });
});
