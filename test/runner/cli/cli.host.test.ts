import { existsSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startRunner } from '../../support/runner.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { callCli, runCli, startCli } from './cli-process.ts';
import { cliProject } from './cli-project.ts';

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // ESRCH: it is gone.
    return false;
  }
}

describe('run', { timeout: 120_000 }, () => {
  inShort(test)(
    'tells jobs, steps and lines as they come, then results; success is 0',
    async () => {
      const { code, stdout, stderr } = await runCli(cliProject(true), [
        'run',
        'ok',
        '-i',
        'who=Ann',
      ]);
      expect([code, stderr]).toEqual([0, '']);
      for (const text of [
        'Build it #1  ok.yml · workflow_dispatch · main · ',
        'build ● build',
        'build ▸ Greet',
        'build │ ▾ Inside',
        'build │   Hello Ann',
        'build │ Warning: careful',
        'build ✓ Greet ',
        'build ✓ build success in ',
        'after │ after',
        '✓ Build it success in ',
        'warning build a.ts:3 Greet: careful',
        '  ## Well done',
        '  digits  5 B  ',
      ]) {
        expect(stdout).toContain(text);
      }
      // Plain, as nobody watches: no escape of ours, and none of the workflow's.
      expect(stdout).toContain('build │ red end\n');
      expect(stdout).not.toContain('\u001b');
    },
  );

  inLong(test)(
    'colours are there when they are forced, sequences of a workflow that do more never',
    async () => {
      const env = { FORCE_COLOR: '1' };
      const { stdout } = await runCli(cliProject(), ['run', 'ok'], { env });
      expect(stdout).toContain('\u001b[31mred\u001b[0m end\u001b[0m');
      const others = stdout
        .split('\u001b')
        .slice(1)
        .filter((part) => !/^\[[0-9;]*m/.test(part));
      expect(others).toEqual([]);
    },
  );

  inLong(test)('colours are not there when they are both forced and refused', async () => {
    const env = { FORCE_COLOR: '1', NO_COLOR: '1' };
    const plain = await runCli(cliProject(), ['run', 'ok'], { env });
    expect(plain.stdout).toContain('Hello world');
    expect(plain.stdout).not.toContain('\u001b');
  });

  inShort(test)(
    'a failure is 1; quiet shows results and the last lines of what failed',
    async () => {
      const { code, stdout } = await callCli(cliProject(), ['run', 'fail.yml', '--quiet']);
      expect(code).toBe(1);
      expect(stdout).toContain('✗ Break');
      expect(stdout).toContain('bad › Break, last lines\n  because of this\n');
      expect(stdout).not.toContain('│');
      expect(stdout).not.toContain('fine');
    },
  );

  inShort(test)('a run in which all is skipped is 0', async () => {
    const { code, stdout } = await callCli(cliProject(), ['run', 'skip']);
    expect([code, stdout.includes('skipped')]).toEqual([0, true]);
  });

  inShort(test)('a run in which the runner left everything out is 1', async () => {
    const workspace = cliProject();
    const text = 'on: push\njobs: { w: { runs-on: windows-latest, steps: [{ run: exit 0 }] } }\n';
    writeFileSync(join(workspace, '.github/workflows/windows.yml'), text);
    const { code, stdout } = await callCli(workspace, ['run', 'windows']);
    expect([code, stdout]).toEqual([1, expect.stringContaining('Nothing ran: 1 job was left out')]);
  });

  inShort(test)('--json prints every event with its type, in order, and nothing else', async () => {
    const { code, stdout, stderr } = await callCli(cliProject(), ['run', 'ok', '--json']);
    expect([code, stderr]).toEqual([0, '']);
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; runId: string; line?: string });
    const types = events.map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['run.started', 'run.completed']);
    expect(types.filter((type) => type === 'job.completed')).toHaveLength(2);
    expect(types.filter((type) => type === 'step.started')).toHaveLength(3);
    expect(new Set(events.map(({ runId }) => runId)).size).toBe(1);
    const [line] = events.filter((event) => event.line === 'Hello world');
    expect(line).toEqual({
      type: 'step.log',
      runId: events[0]?.runId,
      jobId: 'build',
      stepNumber: 1,
      line: 'Hello world',
    });
  });

  inShort(test)('an event and its payload are what the workflow sees', async () => {
    const workspace = cliProject();
    writeFileSync(join(workspace, 'push.json'), '{"after":"abc"}');
    // From the working directory, which is that of the tests.
    const path = relative('', join(workspace, 'push.json'));
    const args = ['run', 'event', '--event', 'push', '--payload', path];
    const { code, stdout } = await callCli(workspace, args);
    expect(code).toBe(0);
    expect(stdout).toContain('show │ push abc');
  });

  test('jobs, legs, secrets and variables of one run alone, with and without a runner that serves', async () => {
    const workspace = cliProject(true);
    writeFileSync(join(workspace, 'run.secrets'), '# own\nFILED="in the file"\nGIVEN=overridden\n');
    const own = [
      '-s',
      'GIVEN=given-value',
      '-s',
      'INHERITED',
      '--secret-file',
      join(workspace, 'run.secrets'),
    ];
    const chosen = [
      '-j',
      'legs',
      '--matrix',
      'node:20',
      '--matrix',
      'os:mac',
      '--var',
      'PLACE=here',
    ];
    const env = { INHERITED: 'from-outside' };
    for (const isServed of byLength([false], [false, true])) {
      if (isServed) await startRunner(workspace);
      const { code, stdout } = await callCli(workspace, ['run', 'parts', ...chosen, ...own], env);
      expect([code, stdout.includes('│ 20 mac here 11 12 11\n')]).toEqual([0, true]);
      expect(stdout).toMatch(/^first +✓ first success/m);
      expect(stdout).not.toMatch(/\(18|linux|lone|given-value|from-outside|in the file/);
    }
  });

  inShort(test)('-n shows what would run after all checks, and leaves nothing behind', async () => {
    const workspace = cliProject(true);
    const plan = await callCli(workspace, [
      'run',
      'parts',
      '-n',
      '-j',
      'legs',
      '--matrix',
      'node:20',
    ]);
    expect([plan.code, plan.stderr]).toEqual([0, '']);
    expect(plan.stdout).toMatch(
      /^parts\.yml {2}parts\.yml · workflow_dispatch · main · [0-9a-f]{7}\n/,
    );
    for (const line of [
      'first first\n   1 Run echo first\n',
      'legs:1 legs (20, linux)  needs first\n',
      'Nothing was run.\n',
    ]) {
      expect(plan.stdout).toContain(line);
    }
    expect(plan.stdout).not.toMatch(/\(18|lone/);
    const json = await callCli(workspace, ['run', 'ok', '-n', '--json', '--event', 'push']);
    const { event, jobs } = JSON.parse(json.stdout) as { event: string; jobs: { id: string }[] };
    expect([event, jobs.map(({ id }) => id)]).toEqual(['push', ['build', 'after']]);
    expect(existsSync(join(workspace, '.runner'))).toBe(false);
  });

  inShort(test)('strategy and ref choose where it works', async () => {
    const workspace = cliProject(true);
    const none = await callCli(workspace, ['run', 'ok', '--strategy', 'none']);
    expect(none.code).toBe(0);
    expect(existsSync(join(workspace, 'digits'))).toBe(true);
    const ref = await callCli(workspace, ['run', 'ok', '--ref', 'nowhere']);
    expect([ref.code, ref.stderr]).toEqual([
      2,
      expect.stringContaining('no branch, tag or commit'),
    ]);
  });
});

describe('Ctrl-C', { timeout: 120_000 }, () => {
  inShort(test)('cancels: steps that always run do, and the exit code is 130', async () => {
    const cli = startCli(cliProject(), ['run', 'nap']);
    await cli.until('│ sleeping');
    cli.interrupt();
    // npm's copy of what the terminal has sent to both.
    cli.interrupt('SIGTERM');
    expect(await cli.ended).toBe(130);
    expect(cli.stdout).toContain('│ cleaned up');
    expect(cli.stderr).not.toContain('Killing the run');
    expect(cli.stdout).toContain('⊘ nap.yml cancelled');
    expect(cli.stderr).toContain('Ctrl-C again kills');
  });

  inShort(test)('twice kills what resists, and nothing stays behind', async () => {
    const cli = startCli(cliProject(), ['run', 'stubborn']);
    await cli.until('│ sleeping');
    const pid = Number(/pid=(\d+)/.exec(cli.stdout)?.[1]);
    expect(isAlive(pid)).toBe(true);
    cli.interrupt();
    await cli.until('Cancelling the run');
    await sleep(400);
    cli.interrupt();
    expect(await cli.ended).toBe(130);
    expect(isAlive(pid)).toBe(false);
  });

  inLong(test)('SIGTERM and a terminal that hangs up end it as well', async () => {
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
      const cli = startCli(cliProject(), ['run', signal === 'SIGHUP' ? 'stubborn' : 'nap']);
      await cli.until('│ sleeping');
      cli.interrupt(signal);
      expect(await cli.ended).toBe(130);
    }
  });
});
