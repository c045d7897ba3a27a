import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { callCli, runCli } from './cli-process.ts';
import { cliProject } from './cli-project.ts';

describe('what was recorded', { timeout: 120_000 }, () => {
  test('list, runs, logs and rerun, without a runner that serves', async () => {
    const workspace = cliProject();
    const list = await callCli(workspace, ['list']);
    expect(list.code).toBe(0);
    expect(list.stdout).toContain('✓ ok.yml        Build it  push, workflow_dispatch  -i who=');
    expect(list.stdout).toContain(
      "✗ broken.yml    push\n    broken.yml:5:5: Unexpected value 'stepz'",
    );
    expect(list.stdout).toMatch(
      /parts\.yml .*\n {4}30 5 \* \* \* Asia\/Tokyo {2}next \d{4}-\d\d-\d\d 20:30 UTC\n/,
    );
    expect(list.stdout).toContain('    beyond.yml:1:26: Invalid cron expression.');
    expect(list.stdout).toMatch(/ {4}20\/15 \* \* \* \* {2}next \S+ \d\d:(?:20|35|50) UTC\n/);
    expect(list.stdout).toContain("    idle.yml:3:3: The job 'rest' has nothing to do");
    for (const more of ['-n', '-q']) {
      const beyond = await callCli(workspace, ['run', 'beyond', '--event', 'schedule', more]);
      expect([beyond.code, beyond.stderr]).toEqual([2, expect.stringContaining('Invalid cron')]);
      const idle = await callCli(workspace, ['run', 'idle', more]);
      expect([idle.code, idle.stderr]).toEqual([2, expect.stringContaining("The job 'rest'")]);
    }
    expect((await callCli(workspace, ['-l'])).stdout).toBe(list.stdout);
    const empty = await callCli(workspace, ['runs']);
    expect(empty.stdout).toBe('There are no runs.\n');
    expect((await callCli(workspace, ['logs'])).stderr).toContain('there are no runs');
    expect((await callCli(workspace, ['run', 'fail', '-q'])).code).toBe(1);
    const runs = await callCli(workspace, ['runs']);
    expect(runs.stdout).toMatch(/^✗ {4}#1 {2}failure {5}\d{4}-\d\d-\d\d /);
    const json = await callCli(workspace, ['runs', '--json']);
    const { id } = JSON.parse(json.stdout) as { id: string };
    const logs = await callCli(workspace, ['logs', id, '--job', 'bad']);
    expect(logs.stdout).toBe(
      '=== Job: bad (bad) ===\n--- Step 1: Break [failure] ---\nbecause of this\n' +
        '##[error]Process completed with exit code 1.\n',
    );
    writeFileSync(join(workspace, 'gate'), '');
    const rerun = await callCli(workspace, ['rerun', '1', '--failed']);
    expect(rerun.code).toBe(1);
    expect(rerun.stdout).toContain('attempt 2');
    expect(rerun.stdout).not.toContain('fine');
    const cancel = await callCli(workspace, ['cancel', '1']);
    expect([cancel.code, cancel.stderr]).toEqual([1, expect.stringContaining('nothing runs')]);
  });

  test('secrets come from standard input and are in no output', async () => {
    const workspace = cliProject();
    const set = await runCli(workspace, ['secrets', 'set', 'api_key'], {
      input: 'hunter2-value\n',
    });
    expect([set.code, set.stdout]).toEqual([0, 'Created api_key\n']);
    const argument = await callCli(workspace, ['secrets', 'set', 'api_key', 'hunter2-value']);
    expect(argument.code).toBe(2);
    expect(argument.stdout + argument.stderr).not.toContain('hunter2-value');
    expect((await callCli(workspace, ['secrets', 'list'])).stdout).toBe('API_KEY\n');
    expect((await callCli(workspace, ['secrets', 'delete', 'api_key'])).code).toBe(0);
    expect((await callCli(workspace, ['secrets', 'list'])).stdout).toBe('');
    expect((await callCli(workspace, ['secrets', 'delete', 'api_key'])).code).toBe(2);
  });
});
