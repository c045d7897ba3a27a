import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  afterLastTest,
  makeWorkspace,
  runEnded,
  startRun,
  startRunner,
  type WhenDone,
} from '../../support/runner.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { callCli, runCli, startCli } from './cli-process.ts';

const OK = `name: Build it
on:
  push:
  workflow_dispatch:
    inputs:
      who: { default: world }
      level: { type: choice, options: [low, high] }
      count: { type: number }
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - name: Greet
        env: { WHO: '\${{ inputs.who }}' }
        run: |
          echo "::group::Inside"
          echo "Hello $WHO"
          echo "::endgroup::"
          printf '\\033[31mred\\033[0m\\033]0;title\\007\\033[2J end\\n'
          echo "::warning file=a.ts,line=3::careful"
          echo "## Well done" >> "$GITHUB_STEP_SUMMARY"
          echo 0123 > digits
      - uses: actions/upload-artifact@v4
        with: { name: digits, path: digits }
  after: { needs: build, runs-on: ubuntu-latest, steps: [{ run: echo after }] }
`;
const FAIL = `on: workflow_dispatch
jobs:
  good: { runs-on: ubuntu-latest, steps: [{ run: echo fine }] }
  bad:
    runs-on: ubuntu-latest
    steps: [{ name: Break, run: 'echo because of this; [ -e "$GATE" ]', env: { GATE: '\${{ vars.GATE }}' } }]
`;
const SKIP = `on: workflow_dispatch
jobs: { none: { if: false, runs-on: ubuntu-latest, steps: [{ run: exit 1 }] } }
`;
const NAP = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps:
      - run: echo sleeping; while true; do sleep 0.1; done
      - if: always()
        run: echo cleaned up
`;
const STUBBORN = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps: [{ run: "trap '' INT TERM; echo pid=$$; echo sleeping; while true; do sleep 0.1; done" }]
`;
const EVENT = `on: [push, workflow_dispatch]
jobs:
  show:
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "\${{ github.event_name }} \${{ github.event.after }}"' }]
`;
const PARTS = `on: { workflow_dispatch: , schedule: [{ cron: '30 5 * * *', timezone: Asia/Tokyo }] }
jobs:
  first: { runs-on: ubuntu-latest, steps: [{ run: echo first }] }
  legs:
    needs: first
    runs-on: ubuntu-latest
    strategy: { matrix: { node: [18, 20], os: [linux, mac] } }
    steps:
      - env: { G: '\${{ secrets.GIVEN }}', I: '\${{ secrets.INHERITED }}', F: '\${{ secrets.FILED }}' }
        run: echo "\${{ matrix.node }} \${{ matrix.os }} \${{ vars.PLACE }} \${#G} \${#I} \${#F}"
  lone: { runs-on: ubuntu-latest, steps: [{ run: echo lone }] }
`;
const scheduled = (cron: string): string =>
  `on: { schedule: [{ cron: '${cron}' }] }\njobs: { a: { runs-on: x, steps: [{ run: ls }] } }\n`;
const BROKEN = 'on: push\njobs:\n  a:\n    runs-on: x\n    stepz: []\n';

function project(isGit = false, whenDone?: WhenDone): string {
  return makeWorkspace(
    {
      '.github/workflows/ok.yml': OK,
      '.github/workflows/fail.yml': FAIL,
      '.github/workflows/skip.yml': SKIP,
      '.github/workflows/nap.yml': NAP,
      '.github/workflows/stubborn.yml': STUBBORN,
      '.github/workflows/event.yml': EVENT,
      '.github/workflows/broken.yml': BROKEN,
      '.github/workflows/idle.yml': 'on: push\njobs:\n  rest: { runs-on: x }\n',
      '.github/workflows/beyond.yml': scheduled('0 */30 * * *'),
      '.github/workflows/quarters.yml': scheduled('20/15 * * * *'),
      '.github/workflows/parts.yml': PARTS,
    },
    isGit,
    whenDone,
  );
}

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
      const { code, stdout, stderr } = await runCli(project(true), ['run', 'ok', '-i', 'who=Ann']);
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
      const { stdout } = await runCli(project(), ['run', 'ok'], { env });
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
    const plain = await runCli(project(), ['run', 'ok'], { env });
    expect(plain.stdout).toContain('Hello world');
    expect(plain.stdout).not.toContain('\u001b');
  });

  inShort(test)(
    'a failure is 1; quiet shows results and the last lines of what failed',
    async () => {
      const { code, stdout } = await callCli(project(), ['run', 'fail.yml', '--quiet']);
      expect(code).toBe(1);
      expect(stdout).toContain('✗ Break');
      expect(stdout).toContain('bad › Break, last lines\n  because of this\n');
      expect(stdout).not.toContain('│');
      expect(stdout).not.toContain('fine');
    },
  );

  inShort(test)('a run in which all is skipped is 0', async () => {
    const { code, stdout } = await callCli(project(), ['run', 'skip']);
    expect([code, stdout.includes('skipped')]).toEqual([0, true]);
  });

  inShort(test)('a run in which the runner left everything out is 1', async () => {
    const workspace = project();
    const text = 'on: push\njobs: { w: { runs-on: windows-latest, steps: [{ run: exit 0 }] } }\n';
    writeFileSync(join(workspace, '.github/workflows/windows.yml'), text);
    const { code, stdout } = await callCli(workspace, ['run', 'windows']);
    expect([code, stdout]).toEqual([1, expect.stringContaining('Nothing ran: 1 job was left out')]);
  });

  inShort(test)('--json prints every event with its type, in order, and nothing else', async () => {
    const { code, stdout, stderr } = await callCli(project(), ['run', 'ok', '--json']);
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
    const workspace = project();
    writeFileSync(join(workspace, 'push.json'), '{"after":"abc"}');
    // From the working directory, which is that of the tests.
    const path = relative('', join(workspace, 'push.json'));
    const args = ['run', 'event', '--event', 'push', '--payload', path];
    const { code, stdout } = await callCli(workspace, args);
    expect(code).toBe(0);
    expect(stdout).toContain('show │ push abc');
  });

  test('jobs, legs, secrets and variables of one run alone, with and without a runner that serves', async () => {
    const workspace = project(true);
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
    const workspace = project(true);
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
    const workspace = project(true);
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

inShort(describe)('what is wrong is 2', { timeout: 120_000 }, () => {
  const whenDone = afterLastTest();
  let untouched = '';
  beforeAll(() => {
    untouched = project(false, whenDone);
  });

  test('inputs, each with its name', async () => {
    const args = ['run', 'ok', '-i', 'whom=x', '-i', 'level=x', '-i', 'count=x'];
    const { code, stderr, stdout } = await callCli(project(), args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      'error: the inputs are wrong\n  whom: is not an input of this workflow\n' +
        '  level: must be one of low, high\n  count: must be a number\n',
    );
  });

  test('a workflow, with line and column', async () => {
    const { code, stderr } = await callCli(project(), ['run', 'broken']);
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
    const { stderr } = await callCli(project(), ['run', 'ok', '--secrt=hunter2']);
    expect(stderr).toContain('did you mean --secret?');
    expect(stderr).not.toContain('hunter2');
  });

  test('the version is told', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const args of [['--version'], ['-V'], ['run', '--version']]) {
      const { code, stdout } = await callCli(project(), args);
      expect([code, stdout]).toEqual([0, `gatehouse-runner ${version}\n`]);
    }
  });

  test('what nobody reads is no success', async () => {
    const cli = startCli(project(), ['--version']);
    // As `| head` does that has seen enough.
    cli.stopReading();
    expect([await cli.ended, cli.stdout]).toEqual([1, '']);
  });

  test('settings', async () => {
    const { code, stderr } = await runCli(project(), ['runs'], { env: { RUNNER_PROT: '1' } });
    expect([code, stderr]).toEqual([2, expect.stringContaining('RUNNER_PROT')]);
  });
});

describe('Ctrl-C', { timeout: 120_000 }, () => {
  inShort(test)('cancels: steps that always run do, and the exit code is 130', async () => {
    const cli = startCli(project(), ['run', 'nap']);
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
    const cli = startCli(project(), ['run', 'stubborn']);
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
      const cli = startCli(project(), ['run', signal === 'SIGHUP' ? 'stubborn' : 'nap']);
      await cli.until('│ sleeping');
      cli.interrupt(signal);
      expect(await cli.ended).toBe(130);
    }
  });
});

inShort(describe)('what was recorded', { timeout: 120_000 }, () => {
  test('list, runs, logs and rerun, without a runner that serves', async () => {
    const workspace = project();
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
    const workspace = project();
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

describe('with another runner on the workspace', { timeout: 120_000 }, () => {
  inShort(test)('commands call it, with its token', async () => {
    const workspace = project(true);
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
    const workspace = project(true);
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
    const workspace = project(true);
    await startRunner(workspace);
    const set = await runCli(workspace, ['secrets', 'set', 'KEY'], { input: 'secret-value' });
    expect(set.code).toBe(0);
    expect((await callCli(workspace, ['secrets', 'list'])).stdout).toBe('KEY\n');
  });

  inShort(test)('Ctrl-C cancels the run over there, and so does cancel', async () => {
    const workspace = project(true);
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
    const workspace = project();
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
    const workspace = project(true);
    const { runner } = await startRunner(workspace, { RUNNER_SHUTDOWN_TIMEOUT_MS: '100' });
    const cli = startCli(workspace, ['run', 'stubborn']);
    await cli.until('│ sleeping');
    await runner.stop();
    // It was told of the end before the streams were completed.
    expect(await cli.ended).not.toBe(0);
    expect(existsSync(join(workspace, '.runner', 'endpoint.json'))).toBe(false);
  });
});
