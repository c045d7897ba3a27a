import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { afterLastTest } from '../../support/runner.ts';
import { callCli, runCli, startCli } from './cli-process.ts';
import { cliProject } from './cli-project.ts';

describe('what is wrong is 2', { timeout: 120_000 }, () => {
  const whenDone = afterLastTest();
  let untouched = '';
  beforeAll(() => {
    untouched = cliProject(false, whenDone);
  });

  test('inputs, each with its name', async () => {
    const args = ['run', 'ok', '-i', 'whom=x', '-i', 'level=x', '-i', 'count=x'];
    const { code, stderr, stdout } = await callCli(cliProject(), args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      'error: the inputs are wrong\n  whom: is not an input of this workflow\n' +
        '  level: must be one of low, high\n  count: must be a number\n',
    );
  });

  test('a workflow, with line and column', async () => {
    const { code, stderr } = await callCli(cliProject(), ['run', 'broken']);
    expect([code, stderr]).toEqual([2, "error: broken.yml:5:5: Unexpected value 'stepz'\n"]);
  });

  test.each([
    [['run'], 'run needs <workflow>'],
    [['run', 'nothing'], 'nothing'],
    [['run', 'ok', 'more'], 'run: too many arguments'],
    [['run', 'ok', '--input', 'x'], '--input x: must be name=value'],
    [['run', 'ok', '-i', 'a=1', '-i', 'a=2'], '--input a: is given more than once'],
    [['run', 'ok', '--strategy', 'x'], '--strategy: must be one of worktree, copy, none'],
    [['run', 'ok', '--failed'], '--failed is no option of run, but of rerun\n'],
    [['run', 'ok', '--inptu', 'a=b'], 'there is no option --inptu\n       did you mean --input?\n'],
    [['--inptu=hunter2', 'x'], 'there is no option --inptu\n       did you mean --input?\n'],
    [['run', 'ok', '--wholly-unknown=hunter2'], 'error: there is no option --wholly-unknown\nSee:'],
    [['run', 'ok', '-Z'], 'there is no option -Z\n'],
    [['run', 'ok', '-j'], '-j needs a value: -j JOB\n'],
    [
      ['run', 'ok', '--job', '-n'],
      '--job needs a value; write --job=VALUE'.replace('; ', '\n       '),
    ],
    [['run', 'ok', '--quiet=1'], '--quiet takes no value\n'],
    [['run', 'ok', '-e', 'nowhere.json'], '--payload nowhere.json: cannot be read'],
    [
      ['run', 'ok', '--event', 'psuh'],
      "event: 'psuh' is no event that GitHub has\n       did you mean push?\n",
    ],
    [['run', 'okk'], "There is no workflow 'okk'\n       did you mean ok?\n"],
    [['run', 'fail', '--event', 'push'], 'fail.yml has no trigger push'],
    [['run', 'ok', '-j', 'nope'], "jobs: ok.yml has no job 'nope', but build, after\n"],
    [['run', 'ok', '-j', 'biuld'], 'did you mean build?\n'],
    [['run', 'ok', '--matrix', 'node'], '--matrix node: must be key:value'],
    [['run', 'ok', '--matrix', 'node:20'], "matrix: 'node': ok.yml has no matrix\n"],
    [
      ['run', 'parts', '--matrix', 'nod:20'],
      "matrix: no matrix of parts.yml has the key 'nod'\n       there are node (18, 20), os (linux, mac)\n",
    ],
    [['run', 'parts', '-n', '--matrix', 'node:99'], "matrix: 'node' is never '99'\n"],
    [['run', 'ok', '--var', 'A'], '--var A: must be name=value'],
    [['run', 'ok', '-s', 'NOT_THERE'], '--secret NOT_THERE: has no value'],
    [['run', 'ok', '-s', '=value-in-the-wrong-place'], '--secret: must be NAME or NAME=VALUE'],
    [['run', 'ok', '-n', '-i', 'level=x'], 'level: must be one of low, high'],
    [['run', 'ok', '-n', '--ref', 'nowhere'], 'the project is not a git repository'],
    [['nope'], 'there is no command nope\n       there are run, list'],
    [['rn'], 'there is no command rn\n       did you mean run?\n'],
    [['runs', '--limit', '0'], '--limit: must be a number from 1 to 1000'],
    [['logs', '99'], 'there is no run 99'],
    [['secrets', 'set'], 'secrets needs list, set <NAME> or delete <NAME>'],
    [['list', '-w', '/no/such/folder'], '/no/such/folder is not a folder'],
  ])('%j', async (args, text) => {
    const { code, stderr, stdout } = await callCli(untouched, args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(text);
  });

  test('nothing repeats a value that stands behind an unknown option', async () => {
    const { stderr } = await callCli(cliProject(), ['run', 'ok', '--secrt=hunter2']);
    expect(stderr).toContain('did you mean --secret?');
    expect(stderr).not.toContain('hunter2');
  });

  test('the version is told', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const args of [['--version'], ['-V'], ['run', '--version']]) {
      const { code, stdout } = await callCli(cliProject(), args);
      expect([code, stdout]).toEqual([0, `gatehouse-runner ${version}\n`]);
    }
  });

  test('what nobody reads is no success', async () => {
    const cli = startCli(cliProject(), ['--version']);
    // As `| head` does that has seen enough.
    cli.stopReading();
    expect([await cli.ended, cli.stdout]).toEqual([1, '']);
  });

  test('settings', async () => {
    const { code, stderr } = await runCli(cliProject(), ['runs'], { env: { RUNNER_PROT: '1' } });
    expect([code, stderr]).toEqual([2, expect.stringContaining('RUNNER_PROT')]);
  });
});
