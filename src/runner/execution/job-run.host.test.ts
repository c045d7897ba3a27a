import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runJob } from '../../../test/support/job-harness.ts';

function conclusions(job: Awaited<ReturnType<typeof runJob>>): (string | undefined)[] {
  return job.steps.map((step) => step.conclusion);
}

describe('run steps', () => {
  test('say things, end with success, are announced and reported in order', async () => {
    const job = await runJob(`
      - name: One
        run: echo first
      - run: |
          echo second
          echo third >&2
    `);
    expect(job.outcome).toEqual({ conclusion: 'success', outputs: {} });
    expect(job.steps.map((step) => step.name)).toEqual(['One', 'Run echo second']);
    expect(job.text).toBe('first\nsecond\nthird');
    expect(job.events).toEqual(['start 1', 'end 1', 'start 2', 'end 2']);
  });

  test('an exit code fails the step and skips what follows, but for always() and failure()', async () => {
    const job = await runJob(`
      - run: exit 3
      - run: echo no
      - if: always()
        run: echo always
      - if: failure()
        run: echo failure
      - if: success()
        run: echo no
    `);
    expect(job.outcome.conclusion).toBe('failure');
    expect(conclusions(job)).toEqual(['failure', 'skipped', 'success', 'success', 'skipped']);
    expect(job.annotations).toContainEqual({
      level: 'error',
      message: 'Process completed with exit code 3.',
      jobId: 'job',
      stepNumber: 1,
    });
    // A skipped step completes without having been started.
    expect(job.events).not.toContain('start 2');
    expect(job.events).toContain('end 2');
  });

  test('continue-on-error tells outcome and conclusion apart', async () => {
    const job = await runJob(`
      - id: a
        continue-on-error: true
        run: exit 1
      - run: echo "\${{ steps.a.outcome }} \${{ steps.a.conclusion }} \${{ job.status }}"
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[0]).toMatchObject({ outcome: 'failure', conclusion: 'success' });
    expect(job.text).toContain('failure success success');
  });

  test('env: workflow below job below step; GITHUB_ENV stays below the step', async () => {
    const job = await runJob(`
on: push
env: { A: workflow, B: workflow, C: workflow, D: "\${{ github.repository }}" }
jobs:
  job:
    runs-on: ubuntu-latest
    env: { B: job, C: job, E: "\${{ github.repository }}" }
    steps:
      - run: echo "$A $B $C $D $E"
        env: { C: step }
      - run: |
          echo "A=file" >> "$GITHUB_ENV"
          echo "C=file" >> "$GITHUB_ENV"
          printf 'M<<EOF\\nx\\ny\\nEOF\\n' >> "$GITHUB_ENV"
          echo "now $A"
      - run: echo "$A $C $M \${{ env.A }}"
        env: { C: step }
`);
    expect(job.steps.map((step) => step.lines)).toEqual([
      ['workflow job step owner/repo owner/repo'],
      ['now workflow'],
      ['file step x', 'y file'],
    ]);
  });

  test('GITHUB_PATH goes in front, the last one first', async () => {
    const job = await runJob(
      `
      - run: |
          chmod +x a/tool b/tool
          echo "$PWD/a" >> "$GITHUB_PATH"
          echo "$PWD/b" >> "$GITHUB_PATH"
      - run: tool
    `,
      { files: { 'a/tool': '#!/bin/sh\necho a', 'b/tool': '#!/bin/sh\necho b' } },
    );
    expect(job.text).toBe('b');
  });

  test('outputs are seen by later steps and the job; those with a secret only by steps', async () => {
    const job = await runJob(
      `
on: push
jobs:
  job:
    runs-on: ubuntu-latest
    environment: { name: prod, url: "https://\${{ steps.a.outputs.v }}.example" }
    outputs:
      v: "\${{ steps.a.outputs.v }}"
      s: "\${{ steps.a.outputs.s }}"
      none: "\${{ steps.a.outputs.none }}"
    steps:
      - id: a
        run: |
          echo v=1 >> "$GITHUB_OUTPUT"
          echo s=hush-hush >> "$GITHUB_OUTPUT"
      - run: test "\${{ steps.a.outputs.s }}" = hush-hush
`,
      { request: { masks: ['hush-hush'] } },
    );
    expect(job.outcome).toEqual({
      conclusion: 'success',
      outputs: { v: '1' },
      environmentUrl: 'https://1.example',
    });
    expect(job.steps[0]?.outputs).toEqual({ v: '1', s: '***' });
    expect(job.annotations.map(({ message }) => message).join()).toContain(`'s' is left out`);
  });

  test('secrets show nowhere: log, names, annotations, summaries', async () => {
    const job = await runJob(
      `
      - name: "with \${{ secrets.KEY }}"
        run: |
          echo "\${{ secrets.KEY }}"
          echo "::warning title=\${{ secrets.KEY }}::\${{ secrets.KEY }}"
          echo "::add-mask::later-one"
          echo later-one
          echo "# \${{ secrets.KEY }} later-one" >> "$GITHUB_STEP_SUMMARY"
          exit 1
    `,
      {
        request: { masks: ['s3cr3t-key'] },
        contexts: { secrets: { KEY: 's3cr3t-key' } },
      },
    );
    expect(JSON.stringify([job.steps, job.annotations])).not.toMatch(/s3cr3t-key|later-one/);
    expect(job.steps[0]?.name).toBe('with ***');
    expect(job.steps[0]?.summary).toBe('# *** ***\n');
  });

  test('the environment is scrubbed, and what the runner sets cannot be overridden', async () => {
    const job = await runJob(
      `
      - run: env
        env: { GITHUB_SHA: mine, CI: "no", RUNNER_OS: mine }
      - run: |
          cat "$GITHUB_EVENT_PATH"; echo
          test -d "$RUNNER_TEMP" -a "$GITHUB_WORKSPACE" = "$PWD"
    `,
      {
        environment: {
          RUNNER_API_TOKEN: 'token',
          AWS_SECRET_ACCESS_KEY: 'key',
          NODE_OPTIONS: '-r x',
        },
        contexts: { inputs: { 'Some name': true } },
      },
    );
    const lines = job.steps[0]?.lines ?? [];
    // Where packages come from is passed on, as the list in docs/runner.md says.
    const foreign = /^(RUNNER_API|AWS|NODE_OPT|VITEST|npm_(?!config_(cafile|registry)=))/;
    expect(lines.filter((line) => foreign.test(line))).toEqual([]);
    expect(lines).toContain(`GITHUB_SHA=${'0'.repeat(40)}`);
    expect(lines).toContain('GITHUB_ACTIONS=true');
    expect(lines).toContain('CI=no');
    expect(lines).toContain('INPUT_SOME_NAME=true');
    expect(lines.some((line) => line.startsWith('RUNNER_TRACKING_ID=github_'))).toBe(true);
    expect(lines.some((line) => /^RUNNER_OS=(Linux|macOS)$/.test(line))).toBe(true);
    expect(job.steps[1]?.lines).toEqual(['{"action":"test"}']);
    expect(job.outcome.conclusion).toBe('success');
  });

  test('each step has command files of its own', async () => {
    const job = await runJob(`
      - run: echo "$GITHUB_ENV $GITHUB_OUTPUT"; test ! -s "$GITHUB_OUTPUT"; echo a=1 >> "$GITHUB_OUTPUT"
      - run: echo "$GITHUB_ENV $GITHUB_OUTPUT"; test ! -s "$GITHUB_OUTPUT"
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[0]?.lines[0]).not.toBe(job.steps[1]?.lines[0]);
  });

  test('a broken command file fails the step', async () => {
    const job = await runJob(`
      - run: echo "no equals sign" >> "$GITHUB_ENV"
      - if: always()
        run: echo "NODE_OPTIONS=--require x" >> "$GITHUB_ENV"
      - if: always()
        run: echo "[$NODE_OPTIONS]"
    `);
    expect(conclusions(job)).toEqual(['failure', 'success', 'success']);
    expect(job.text).toContain('[]');
    expect(job.text).toContain(`Unable to process file command 'env'`);
  });

  test('step timeout', async () => {
    const job = await runJob(`
      - name: Long
        timeout-minutes: 0.002
        run: sleep 30
      - run: echo no
    `);
    expect(conclusions(job)).toEqual(['failure', 'skipped']);
    expect(job.annotations[0]?.message).toBe(
      `The action 'Long' has timed out after 0.002 minutes.`,
    );
  });

  test('job timeout: the job is cancelled, always() runs', async () => {
    const job = await runJob(
      `
      - run: sleep 30
      - if: always()
        run: echo always
    `,
      { request: { timeoutMs: 100 } },
    );
    expect(job.outcome).toMatchObject({ conclusion: 'cancelled', hasTimedOut: true });
    expect(conclusions(job)).toEqual(['cancelled', 'success']);
    expect(job.annotations.some(({ message }) => message.includes('maximum execution time'))).toBe(
      true,
    );
  });

  test('wrong expressions fail their step and nothing else', async () => {
    const job = await runJob(`
      - run: echo "\${{ fromJSON('{') }}"
      - if: fromJSON('{') && always()
        run: echo no
      - if: always()
        env: { A: "\${{ fromJSON('{') }}" }
        run: echo no
      - if: always()
        run: echo yes
    `);
    expect(conclusions(job)).toEqual(['failure', 'failure', 'failure', 'success']);
  });

  test('all outputs together have a limit', async () => {
    const job = await runJob(`
      - run: |
          head -c 700000 /dev/zero | tr '\\0' a > big
          echo "a=$(cat big)" >> "$GITHUB_OUTPUT"
      - run: echo "b=$(cat big)" >> "$GITHUB_OUTPUT"
    `);
    expect(conclusions(job)).toEqual(['success', 'failure']);
    expect(job.annotations[0]?.message).toContain('exceed 1048576 bytes');
  });

  test('a step has ten annotations of a level, whoever makes them', async () => {
    const job = await runJob(
      `
      - uses: ./c
      - run: echo "::error::one of the next"
    `,
      {
        files: {
          'c/action.yml': `
name: c
runs:
  using: composite
  steps:
    - { run: "for i in 1 2 3 4 5 6 7; do echo ::error::$i; done", shell: bash }
    - { run: "for i in 1 2 3 4 5 6 7; do echo ::error::$i; done; exit 1", shell: bash }
`,
        },
      },
    );
    expect(job.annotations.filter(({ stepNumber }) => stepNumber === 1)).toHaveLength(10);
    expect(job.text).toContain('Process completed with exit code 1.');
  });

  test('the log ends at its limit; the step goes on', async () => {
    const job = await runJob(
      `
      - run: |
          for i in $(seq 1 2000); do echo "line $i"; done
          touch went-on
      - run: echo more
    `,
      { request: { logBytesMax: 5_000 } },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(existsSync(join(job.projectDir, 'went-on'))).toBe(true);
    expect(Buffer.byteLength(job.text)).toBeLessThan(5_200);
    expect(job.text.match(/what follows is discarded/g)).toHaveLength(1);
    expect(job.annotations).toHaveLength(1);
  });

  test('a hundred thousand lines arrive in order, held back while the disk lags', async () => {
    let open = 0;
    let isOverrun = false;
    const job = await runJob('- run: seq 1 100000', {
      onLog() {
        isOverrun ||= open > 0;
        open += 1;
        return new Promise((resolve) =>
          setImmediate(() => {
            open -= 1;
            resolve();
          }),
        );
      },
    });
    const expected = Array.from({ length: 100_000 }, (_, index) => String(index + 1));
    expect(job.steps[0]?.lines).toEqual(expected);
    expect(isOverrun).toBe(false);
  });
});

describe('shells', () => {
  test('bash stops in pipes, the default does not, sh is sh', async () => {
    const job = await runJob(`
      - shell: bash
        run: false | true
      - if: always()
        run: false | true; echo "$-" | grep -q e; echo "$BASH_VERSION" | grep -q .
      - if: always()
        shell: sh
        run: test -z "$BASH_VERSION"; echo sh
    `);
    expect(conclusions(job)).toEqual(['failure', 'success', 'success']);
  });

  test('python, node, custom and unknown ones', async () => {
    const job = await runJob(`
      - shell: python
        run: print(1 + 1)
      - shell: node
        run: console.log(2 + 1)
      - shell: cat -A {0}
        run: plain
      - shell: perl
        run: print 1
      - if: always()
        shell: does-not-exist {0}
        run: x
    `);
    expect(job.steps.slice(0, 3).map((step) => step.lines)).toEqual([['2'], ['3'], ['plain']]);
    expect(conclusions(job).slice(3)).toEqual(['failure', 'failure']);
    expect(job.text).toContain(`Shell must be a valid built-in`);
    expect(job.text).toContain('does-not-exist: command not found');
  });

  test('working-directory and shell: step, job, workflow', async () => {
    const job = await runJob(
      `
on: push
defaults: { run: { shell: sh, working-directory: workflow } }
jobs:
  job:
    runs-on: ubuntu-latest
    defaults: { run: { working-directory: job } }
    steps:
      - run: basename "$PWD"; test -z "$BASH_VERSION"
      - working-directory: step
        shell: bash
        run: basename "$PWD"; test -n "$BASH_VERSION"
      - working-directory: missing
        run: echo no
`,
      { files: { 'workflow/x': '', 'job/x': '', 'step/x': '' } },
    );
    expect(job.steps.slice(0, 2).map((step) => step.lines)).toEqual([['job'], ['step']]);
    expect(job.steps[2]?.conclusion).toBe('failure');
    expect(job.text).toContain('working directory');
  });

  test('scripts are for their owner alone', async () => {
    const job = await runJob('- run: stat -c %a "$0" 2>/dev/null || stat -f %Lp "$0"');
    expect(job.text).toBe('700');
  });

  test('the event file is what the run was started with', async () => {
    const job = await runJob('- run: echo "$GITHUB_EVENT_PATH"');
    expect(JSON.parse(readFileSync(job.text, 'utf8'))).toEqual({ action: 'test' });
  });
});
