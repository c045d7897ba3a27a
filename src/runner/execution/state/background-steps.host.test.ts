import { describe, expect, test } from 'vitest';
import { runJob } from '../../../../test/support/job-harness.ts';

describe('background steps', () => {
  test('what they leave is seen once they are waited for, not before', async () => {
    const job = await runJob(`
      - id: bg
        background: true
        run: |
          echo "V=1" >> "$GITHUB_ENV"
          echo "out=2" >> "$GITHUB_OUTPUT"
          touch done
      - run: |
          while [ ! -e done ]; do sleep 0.02; done
          echo "[$V \${{ steps.bg.outputs.out }}\${{ steps.bg.outcome }}]"
      - wait: bg
      - run: echo "[$V \${{ steps.bg.outputs.out }} \${{ steps.bg.outcome }}]"
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[1]?.lines).toEqual(['[ ]']);
    expect(job.steps[3]?.lines).toEqual(['[1 2 success]']);
  });

  test('they run beside the others and beside each other', async () => {
    const job = await runJob(`
      - parallel:
          - run: touch a; while [ ! -e b ]; do sleep 0.02; done; echo saw b
          - run: touch b; while [ ! -e a ]; do sleep 0.02; done; echo saw a
      - run: test -e a -a -e b; echo after
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps.map((step) => step.conclusion)).toEqual(Array(4).fill('success'));
    expect(job.text).toContain('saw a');
    expect(job.text).toContain('saw b');
  });

  test('a failing one fails the wait, with what follows skipped', async () => {
    const job = await runJob(`
      - id: bg
        background: true
        run: exit 1
      - wait-all: null
      - run: echo no
    `);
    expect(job.steps.map((step) => step.conclusion)).toEqual(['failure', 'failure', 'skipped']);
    expect(job.outcome.conclusion).toBe('failure');
  });

  test('those nobody waits for are awaited before the job ends, and count', async () => {
    const job = await runJob(`
      - background: true
        run: sleep 0.3; exit 1
      - run: echo on
    `);
    expect(job.steps.map((step) => step.conclusion)).toEqual(['failure', 'success']);
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.events).toEqual(['start 1', 'start 2', 'end 2', 'end 1']);
  });

  test('cancel ends one; that is no failure of the job', async () => {
    const job = await runJob(`
      - id: server
        background: true
        run: touch up; while true; do sleep 0.05; done
      - run: while [ ! -e up ]; do sleep 0.02; done
      - cancel: server
      - run: echo "\${{ steps.server.outcome }}"
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[0]?.conclusion).toBe('cancelled');
    expect(job.steps[3]?.lines).toEqual(['cancelled']);
  });

  test('at most ten at a time', async () => {
    const parts = Array.from(
      { length: 12 },
      (_, index) => `
      - background: true
        run: |
          touch run-${index}
          ls run-* | wc -l
          while [ ! -e go ]; do sleep 0.02; done
          rm run-${index}`,
    );
    const job = await runJob(`${parts.join('')}
      - run: |
          while [ "$(ls run-* | wc -l)" -lt 10 ]; do sleep 0.02; done
          sleep 0.2
          ls run-* | wc -l
          touch go
      - wait-all: null
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[12]?.lines).toEqual(['10']);
  });

  test('a cancel of the job ends them all', async () => {
    const job = await runJob(
      `
      - background: true
        run: trap 'echo bye; exit 1' INT; echo ready; while true; do sleep 0.05; done
      - wait-all: null
      - if: always()
        run: echo always
    `,
      { onLine: (line, execution) => line === 'ready' && execution.cancel('cancel') },
    );
    expect(job.outcome.conclusion).toBe('cancelled');
    expect(job.steps.map((step) => step.conclusion)).toEqual(['cancelled', 'cancelled', 'success']);
    expect(job.text).toContain('bye');
  });
});
