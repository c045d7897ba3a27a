import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runJob, temporaryDir, writeFiles } from '../../support/job-harness.ts';

/** Short enough to wait for, long enough to tell the rungs apart. */
const KILL_ESCALATION = { interruptMs: 400, terminateMs: 400 };

/** A zombie that nobody collects, as in a container without an init, has ended. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z');
}

describe('cancel', () => {
  test('SIGINT first: a step that takes it ends in its own way, always() and cancelled() run', async () => {
    const job = await runJob(
      `
      - run: |
          trap 'echo interrupted; exit 1' INT
          echo ready
          while true; do sleep 0.05; done
      - run: echo no
      - if: always()
        run: echo "always \${{ job.status }}"
      - if: cancelled()
        run: echo cancelled
      - if: failure()
        run: echo no
    `,
      { onLine: (line, execution) => line === 'ready' && execution.cancel('cancel') },
    );
    expect(job.outcome.conclusion).toBe('cancelled');
    expect(job.steps.map((step) => step.conclusion)).toEqual([
      'cancelled',
      'skipped',
      'success',
      'success',
      'skipped',
    ]);
    expect(job.text).toContain('interrupted');
    expect(job.text).toContain('always cancelled');
  });

  test('then SIGTERM, then SIGKILL, each after its time', async () => {
    const job = await runJob(
      `
      - shell: node
        run: |
          process.on('SIGINT', () => console.log('int'));
          process.on('SIGTERM', () => console.log('term'));
          setInterval(() => undefined, 1000);
          console.log('ready');
    `,
      {
        ladder: KILL_ESCALATION,
        onLine: (line, execution) => line === 'ready' && execution.cancel('cancel'),
      },
    );
    const lines = job.steps[0]?.lines ?? [];
    expect(lines.slice(0, 3)).toEqual(['ready', 'int', 'term']);
    expect(job.steps[0]?.conclusion).toBe('cancelled');
  });

  test('a step whose condition still holds goes on', async () => {
    const projectDir = temporaryDir();
    const job = await runJob(
      `
      - if: always()
        run: |
          trap 'echo interrupted' INT TERM
          echo ready
          while [ ! -e go ]; do sleep 0.02 || true; done
          echo went on
      - run: echo no
    `,
      {
        projectDir,
        ladder: KILL_ESCALATION,
        onLine(line, execution) {
          if (line !== 'ready') return;
          execution.cancel('cancel');
          // Were it stopped, it would be by the time that both rungs have passed.
          setTimeout(
            () => writeFiles(projectDir, { go: '' }),
            2 * KILL_ESCALATION.interruptMs + 200,
          );
        },
      },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual(['success', 'skipped']);
    expect(job.steps[0]?.lines).toEqual(['ready', 'went on']);
    expect(job.outcome.conclusion).toBe('cancelled');
  });

  test('force kills now and starts nothing more', async () => {
    const job = await runJob(
      `
      - run: |
          trap '' INT TERM
          echo "pid $$"
          while true; do sleep 0.05; done
      - if: always()
        run: touch ran
    `,
      {
        onLine(line, execution) {
          if (!line.startsWith('pid')) return;
          execution.cancel('cancel');
          execution.cancel('force');
        },
      },
    );
    expect(job.outcome.conclusion).toBe('cancelled');
    expect(job.steps.map((step) => step.conclusion)).toEqual(['cancelled', 'skipped']);
    expect(existsSync(join(job.projectDir, 'ran'))).toBe(false);
    expect(isAlive(Number(job.steps[0]?.lines[0]?.slice(4)))).toBe(false);
  });

  test('always() steps may go on for cancel-timeout-minutes only', async () => {
    const job = await runJob(
      `
on: push
jobs:
  job:
    runs-on: ubuntu-latest
    cancel-timeout-minutes: 0.025
    steps:
      - run: echo ready; sleep 30
      - if: always()
        run: trap '' INT TERM; while true; do sleep 0.05; done
      - if: always()
        run: echo no
`,
      {
        ladder: KILL_ESCALATION,
        onLine: (line, execution) => line === 'ready' && execution.cancel('cancel'),
      },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual(['cancelled', 'cancelled', 'skipped']);
  });

  test('within a composite action the steps decide', async () => {
    const job = await runJob(
      `
      - uses: ./action
      - run: echo no
    `,
      {
        files: {
          'action/action.yml': `
name: a
runs:
  using: composite
  steps:
    - run: echo ready; sleep 30
      shell: bash
    - run: echo no
      shell: bash
    - if: always()
      run: echo inner always
      shell: bash
`,
        },
        ladder: KILL_ESCALATION,
        onLine: (line, execution) => line === 'ready' && execution.cancel('cancel'),
      },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual(['cancelled', 'skipped']);
    expect(job.text).toContain('inner always');
    expect(job.text.split('\n')).not.toContain('no');
  });
});

describe('nothing is left behind', () => {
  test('processes in sessions of their own end with the job', async () => {
    const job = await runJob(`
      - run: |
          setsid sh -c 'echo $$ > pid; while true; do sleep 0.1; done' > /dev/null 2>&1 < /dev/null &
          while [ ! -s pid ]; do sleep 0.02; done
      - run: kill -0 "$(cat pid)" && echo alive
    `);
    // It lives as long as the job: steps may start servers for later ones.
    expect(job.text).toBe('alive');
    expect(job.outcome.conclusion).toBe('success');
    const pid = Number(readFileSync(join(job.projectDir, 'pid'), 'utf8'));
    expect(isAlive(pid)).toBe(false);
    expect(job.annotations.map(({ message }) => message).join()).toContain('left behind');
  });
});
