import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type ProcessRequest, type RunningProcess, startProcess } from './run-process.ts';

const PATH = process.env['PATH'] ?? '';
const started: RunningProcess[] = [];

afterEach(() => {
  for (const running of started.splice(0)) {
    running.kill();
  }
});

type Run = { readonly running: RunningProcess; readonly text: () => string };

function run(script: string, more: Partial<ProcessRequest> = {}): Run {
  const chunks: Buffer[] = [];
  const running = startProcess({
    file: 'bash',
    args: ['-c', script],
    cwd: tmpdir(),
    env: { PATH },
    trackingId: 'github_test',
    onChunk(chunk) {
      chunks.push(Buffer.from(chunk));
      return undefined;
    },
    ...more,
  });
  started.push(running);
  return { running, text: () => Buffer.concat(chunks).toString() };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await sleep(2);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}

describe('startProcess', () => {
  test('keeps stdout and stderr in the order written', async () => {
    const { running, text } = run('for i in $(seq 200); do echo o$i; echo e$i >&2; done');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    const expected = Array.from({ length: 200 }, (_, i) => `o${i + 1}\ne${i + 1}\n`).join('');
    expect(text()).toBe(expected);
  });

  test('lets programs open /dev/stdout and /dev/stderr', async () => {
    const { running, text } = run('echo one | tee /dev/stderr > /dev/null; echo two > /dev/stdout');
    expect((await running.exit).code).toBe(0);
    expect(text()).toBe('one\ntwo\n');
  });

  test.each([
    ['exit 0', { code: 0, signal: null }],
    ['exit 7', { code: 7, signal: null }],
    ['kill -TERM $$', { code: null, signal: 'SIGTERM' }],
    ['kill -KILL $$', { code: null, signal: 'SIGKILL' }],
  ])('%s', async (script, expected) => {
    expect(await run(script).running.exit).toEqual(expected);
  });

  test('stdin is empty, the environment is ours alone, with the tracking id', async () => {
    const { running, text } = run('cat; env', { env: { PATH, A: 'b c' } });
    await running.exit;
    const names = text()
      .trim()
      .split('\n')
      .filter((line) => !/^(_|PWD|SHLVL|OLDPWD)=/u.test(line));
    expect(names.sort()).toEqual(
      ['A=b c', `PATH=${PATH}`, 'RUNNER_TRACKING_ID=github_test'].sort(),
    );
  });

  test('leads a process group and session of its own, and is first to go without memory', async () => {
    const { running, text } = run('cat /proc/self/oom_score_adj; ps -o pgid=,sid= -p $$; echo $$');
    await running.exit;
    const numbers = text().trim().split(/\s+/u).map(Number);
    expect(numbers.slice(1)).toEqual([running.pid, running.pid, running.pid]);
    // Root in a container without CAP_SYS_RESOURCE may raise it as well.
    expect(numbers[0]).toBe(500);
  });

  test('drains a large output that a slow taker holds back, in order, never two calls at once', async () => {
    const chunks: Buffer[] = [];
    let isBusy = false;
    const { running } = run('seq 1 200000', {
      async onChunk(chunk) {
        expect(isBusy).toBe(false);
        isBusy = true;
        const copy = Buffer.from(chunk);
        await sleep(1);
        chunks.push(copy);
        isBusy = false;
      },
    });
    expect((await running.exit).code).toBe(0);
    const expected = spawnSync('seq', ['1', '200000'], { maxBuffer: 10_000_000 }).stdout;
    expect(Buffer.concat(chunks).equals(expected)).toBe(true);
  });

  test('a grandchild that holds the pipe open delays the exit by a bounded time, and lives on', async () => {
    const { running, text } = run('(while sleep 0.02; do echo alive; done) & echo $!; exit 3');
    expect((await running.exit).code).toBe(3);
    const grandchild = Number.parseInt(text(), 10);
    const length = text().length;
    await sleep(100);
    // Still there after several more writes, which nobody gets to see.
    expect(isAlive(grandchild)).toBe(true);
    expect(text().length).toBe(length);
    running.kill();
    await until(() => !isAlive(grandchild));
  });

  test.each([
    ['no such program', { file: '/no/such/program' }, 'ENOENT'],
    ['a folder', { file: tmpdir() }, 'EACCES'],
    ['arguments that are too long', { args: ['x'.repeat(200_000)] }, 'E2BIG'],
  ])('%s is an error, not an exception', async (_, more, code) => {
    const exit = await run('true', more).running.exit;
    expect(exit).toMatchObject({ code: null, signal: null, error: { code } });
  });

  test('a missing working directory is told from a missing program', async () => {
    const exit = await run('true', { cwd: '/no/such/folder' }).running.exit;
    expect(exit.error?.message).toBe('The working directory does not exist');
  });
});

describe('interrupt', () => {
  const killEscalation = { interruptMs: 60_000, terminateMs: 60_000 };

  test('ends with SIGINT and does not wait for the rest of the ladder', async () => {
    const { running, text } = run(
      `trap 'echo got INT; exit 9' INT; echo up; while :; do sleep 0.01; done`,
      {
        killEscalation,
      },
    );
    await until(() => text().includes('up'));
    await running.interrupt();
    expect((await running.exit).code).toBe(9);
    expect(text()).toBe('up\ngot INT\n');
  });

  test('goes on to SIGTERM, and then to SIGKILL, for the whole group', async () => {
    const { running, text } = run(
      `trap '' INT; trap 'echo got TERM' TERM; (trap '' INT TERM; echo child; exec sleep 100) &
       echo up; while :; do sleep 0.01; done`,
      { killEscalation: { interruptMs: 60, terminateMs: 200 } },
    );
    await until(() => text().includes('up') && text().includes('child'));
    await running.interrupt();
    expect(await running.exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(text()).toContain('got TERM');
  });

  test('waits for the group, not for its leader alone', async () => {
    const { running, text } = run(
      `(trap 'sleep 0.3; echo cleaned; exit' TERM; echo child; while :; do sleep 0.01; done) &
       trap 'exit 4' INT; echo up; while :; do sleep 0.01; done`,
      { killEscalation: { interruptMs: 500, terminateMs: 60_000 } },
    );
    await until(() => text().includes('up') && text().includes('child'));
    await Promise.all([running.interrupt(), running.interrupt()]);
    expect((await running.exit).code).toBe(4);
    expect(text()).toContain('cleaned');
  });

  test('does nothing to a process that has ended, or never started', async () => {
    const { running } = run('exit 0');
    await running.exit;
    await running.interrupt();
    running.kill();
    const unstarted = run('true', { file: '/no/such/program' }).running;
    await unstarted.interrupt();
    unstarted.kill();
    expect((await unstarted.exit).code).toBeNull();
  });

  test('kill ends the group at once', async () => {
    const { running, text } = run(`trap '' INT TERM; sleep 100 & echo up; wait`);
    await until(() => text().includes('up'));
    running.kill();
    expect(await running.exit).toEqual({ code: null, signal: 'SIGKILL' });
  });
});
