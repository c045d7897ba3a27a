/** Steps that try to leave processes behind, each in its own way. Linux: elsewhere there is no supervisor. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startSupervised } from '../../../src/runner/host/process/supervised-process.ts';
import { createSupervision } from '../../../src/runner/host/process/supervision.ts';
import type { ProblemReporter } from '../../../src/runner/model/ports.ts';
import { runJob, type JobOptions, type RecordedJob } from '../../support/job-harness.ts';
import { startProcess } from '../../support/runner-process.ts';
import { makeWorkspace, startRun } from '../../support/runner.ts';

const onProblem = vi.fn<ProblemReporter>();
const supervision = createSupervision(onProblem);
afterAll(() => supervision.close());

const KILL_ESCALATION = { interruptMs: 200, terminateMs: 200 };

function supervised(steps: string, options: JobOptions = {}): Promise<RecordedJob> {
  return runJob(steps, { supervision, ladder: KILL_ESCALATION, ...options });
}

type Process = { readonly pid: number; readonly state: string; readonly parent: number };

/** Processes whose arguments hold `mark`, and how they are: an independent look at /proc. */
function processesWith(mark: string): Process[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const isMarked = readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(mark);
      return isMarked ? [statOf(Number(name))] : [];
    } catch {
      return [];
    }
  });
}

function statOf(pid: number): Process {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { pid, state, parent: Number(parent) };
}

/** Zombies of the whole system, by their parents. */
function zombies(): Process[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const process = statOf(Number(name));
      return process.state === 'Z' ? [process] : [];
    } catch {
      return [];
    }
  });
}

/** A program that runs for long and can be told from all others, without a variable of its parent's. */
function idler(mark: string): string {
  return `env -i "$(command -v sh)" -c 'while :; do /bin/sleep 1; done' ${mark}`;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

describe.skipIf(process.platform !== 'linux')('what a step leaves behind ends with its job', () => {
  const ways: readonly (readonly [string, (mark: string) => string])[] = [
    ['a session of its own and an empty environment', (mark) => `setsid ${idler(mark)} &`],
    ['forked twice', (mark) => `(setsid ${idler(mark)} & ) ; (( ${idler(mark)} & ) & )`],
    [
      'deaf to polite signals',
      (mark) =>
        `setsid env -i /bin/sh -c 'trap "" INT TERM HUP; while :; do /bin/sleep 1; done' ${mark} &`,
    ],
    [
      'stopped, and so deaf to all of them',
      (mark) => `setsid env -i /bin/sh -c 'kill -STOP $$; /bin/sleep 1000' ${mark} &`,
    ],
    [
      'a chain that starts its next link just before it ends',
      (mark) =>
        `printf '%s\\n' '/bin/sleep 0.002; setsid env -i /bin/sh "$0" "$1" & exit 0' > chain; setsid env -i /bin/sh ./chain ${mark} &`,
    ],
    [
      'its supervisor killed',
      (mark) => `setsid ${idler(mark)} & sleep 0.1; kill -9 $PPID; sleep 5`,
    ],
    ['its supervisor stopped', (mark) => `setsid ${idler(mark)} & kill -STOP $PPID`],
  ];

  test.each(ways)('%s', { timeout: 120_000 }, async (_, leave) => {
    const mark = `mark-${randomUUID()}`;
    const job = await supervised(
      `
      - run: |
          ${leave(mark).replaceAll('\n', '\n          ')}
          for i in $(seq 100); do pgrep -f ${mark} >/dev/null && break; sleep 0.02; done
    `,
      { request: { timeoutMs: 5_000 } },
    );
    expect(processesWith(mark)).toEqual([]);
    expect(job.annotations.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('left behind and ended'),
    );
    // The next job finds a supervisor as the first one did.
    expect((await supervised('- run: "true"')).outcome.conclusion).toBe('success');
    expect(onProblem).not.toHaveBeenCalled();
  });

  test(
    'a job whose steps kill or stop the parent of all supervisors ends, and the next has one',
    { timeout: 120_000 },
    async () => {
      const mark = `mark-${randomUUID()}`;
      const other = createSupervision(onProblem);
      onTestFinished(() => other.close());
      for (const signal of ['KILL', 'STOP', 'STOP']) {
        const job = await supervised(
          `- run: setsid ${idler(mark)} & kill -${signal} $(ps -o ppid= -p $PPID); sleep 0.1`,
          { supervision: other },
        );
        expect(job.outcome.conclusion).toBe('success');
        expect(processesWith(mark)).toEqual([]);
      }
      // Two at once: the second one needs a new supervisor.
      const jobs = await Promise.all(
        [1, 2].map(() =>
          supervised(`- run: setsid ${idler(mark)} & kill -9 $PPID`, { supervision: other }),
        ),
      );
      expect(jobs.map(({ outcome }) => outcome.conclusion)).toEqual(['failure', 'failure']);
      expect(processesWith(mark)).toEqual([]);
      expect(onProblem).not.toHaveBeenCalled();
    },
  );

  test('1,000 orphans leave nothing alive and no zombie', { timeout: 120_000 }, async () => {
    const mark = `mark-${randomUUID()}`;
    const before = new Set(zombies().map(({ pid }) => pid));
    const job = await supervised(`
      - run: |
          for i in $(seq 500); do (setsid env -i /bin/sh -c 'exit 0' ${mark} &) ; done
          for i in $(seq 500); do (setsid env -i /bin/sleep 1000.\${i}1 &) ; done
          echo "supervisor $PPID"
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(processesWith(mark)).toEqual([]);
    expect(processesWith('sleep\u00001000.').filter(({ state }) => state !== 'Z')).toEqual([]);
    const supervisor = Number(/supervisor (\d+)/.exec(job.text)?.[1]);
    const own = zombies().filter(
      ({ pid, parent }) => !before.has(pid) && [supervisor, process.pid].includes(parent),
    );
    expect(own).toEqual([]);
    expect(job.annotations).toContainEqual(
      expect.objectContaining({ message: '500 processes were left behind and ended' }),
    );
  });

  test('zombies are taken while the job goes on', async () => {
    const job = await supervised(`
      - run: |
          for i in $(seq 100); do (setsid env -i /bin/true &) ; done
          for i in $(seq 200); do
            count=$(ps -o stat= --ppid $PPID | grep -c '^Z') || true
            [ "$count" = 0 ] && break
            sleep 0.02
          done
          echo "zombies=$count"
    `);
    expect(job.text).toContain('zombies=0');
  });

  test('the end of one job does not touch the processes of another', async () => {
    const [mine, other] = [`mark-${randomUUID()}`, `mark-${randomUUID()}`];
    const release = join(mkdtempSync(join(tmpdir(), 'orphans-')), 'release');
    const long = supervised(`
      - run: |
          setsid ${idler(other)} &
          while [ ! -e ${release} ]; do sleep 0.01; done
          pgrep -f ${other} > /dev/null && echo still there
    `);
    await until(() => processesWith(other).length > 0);
    await supervised(`- run: setsid ${idler(mine)} &`);
    // One whose supervisor is killed is cleared by the parent of all supervisors.
    await supervised(`- run: setsid ${idler(mine)} & kill -9 $PPID`);
    expect(processesWith(mine)).toEqual([]);
    expect(processesWith(other)).not.toEqual([]);
    writeFileSync(release, '');
    const job = await long;
    expect(job.outcome.conclusion).toBe('success');
    expect(job.text).toContain('still there');
    expect(processesWith(other)).toEqual([]);
  });

  test.each([
    [
      'cancelled',
      {
        onLine: (line: string, run: { cancel(kind: 'cancel'): void }) =>
          line === 'up' && run.cancel('cancel'),
      },
      'cancelled',
    ],
    ['timed out', { request: { timeoutMs: 700 } }, 'cancelled'],
  ] as const)('a job that is %s leaves nothing', async (_, options, conclusion) => {
    const mark = `mark-${randomUUID()}`;
    const job = await supervised(
      `
      - run: |
          setsid ${idler(mark)} &
          trap "" INT TERM
          echo up
          while :; do sleep 1; done
    `,
      options,
    );
    expect(job.outcome.conclusion).toBe(conclusion);
    expect(processesWith(mark)).toEqual([]);
  });

  test('exit codes, signals, missing programs and the score for the OOM killer are what they were', async () => {
    const job = await supervised(`
      - { run: 'exit 37', continue-on-error: true }
      - { run: 'kill -KILL $$', continue-on-error: true }
      - { run: 'echo never', shell: 'no-such-program {0}', continue-on-error: true }
      - { run: 'echo never', working-directory: no/such/folder, continue-on-error: true }
      - run: cat /proc/self/oom_score_adj; ls -l /proc/self/fd/0; echo out; echo err >&2; echo again > /dev/stdout
    `);
    expect(job.annotations.map(({ message }) => message)).toEqual([
      'Process completed with exit code 37.',
      'Process was ended by SIGKILL.',
      expect.stringMatching(/^no-such-program: command not found: /),
      expect.stringMatching(/^The working directory 'no\/such\/folder' does not exist/),
    ]);
    expect(job.text).toMatch(/500\n.*\/dev\/null\nout\nerr\nagain$/s);
  });
});

test.skipIf(process.platform !== 'linux')('what cannot be started says why', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orphans-'));
  writeFileSync(join(folder, 'plain'), 'echo "script $1"', { mode: 0o755 });
  writeFileSync(join(folder, 'data'), 'no program');
  const supervisor = await supervision.acquire();
  const run = async (file: string, args: readonly string[] = []): Promise<string> => {
    let text = '';
    const onChunk = (chunk: Buffer): undefined => {
      text += chunk.toString();
      return undefined;
    };
    const env = { PATH: process.env['PATH'] ?? '' };
    const request = { file, args, cwd: folder, env, onChunk, trackingId: randomUUID() };
    const exit = await (await startSupervised(request, supervisor)).exit;
    return exit.error === undefined ? `${exit.code} ${text}` : exit.error.message;
  };
  // As execvp(3) has it: a script without a first line that names a program is the shell's.
  expect(await run('./plain', ['one'])).toBe('0 script one\n');
  expect(await run('no-such-program')).toBe('spawn no-such-program ENOENT');
  expect(await run('./data')).toBe('spawn ./data EACCES');
  expect(await run('true', ['x'.repeat(4_000_000)])).toBe('spawn true E2BIG');
  expect(await run('true', ['\0'])).toBe('spawn true EINVAL');
  expect(await supervisor?.release()).toEqual({ killed: 0, left: 0, isSure: true });
});

describe.skipIf(process.platform !== 'linux')('kill -9 of the runner', () => {
  test('ends its jobs, orphans without an environment too', { timeout: 120_000 }, async () => {
    const mark = `mark-${randomUUID()}`;
    const workspace = makeWorkspace({
      '.github/workflows/leave.yml': `on: workflow_dispatch\njobs:\n  one:\n    runs-on: x\n    steps:\n      - run: |\n          setsid ${idler(mark)} &\n          sleep 1000\n`,
    });
    const runner = await startProcess(workspace);
    await startRun(runner.url, 'leave');
    await until(() => processesWith(mark).length > 0);
    runner.child.kill('SIGKILL');
    await runner.ended;
    await until(() => processesWith(mark).length === 0);
    await until(() =>
      processesWith('supervisor-program').every(({ parent }) => existsSync(`/proc/${parent}`)),
    );
  });
});
