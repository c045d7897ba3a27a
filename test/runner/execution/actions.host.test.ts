import { describe, expect, test } from 'vitest';
import { runJob } from '../../support/job-harness.ts';

const CACHE = '.runner/actions';

/** A JavaScript action that tells what it sees of its inputs and state. */
const SCRIPT = (stage: string): string => `
const fs = require('node:fs');
console.log('${stage}', process.env.INPUT_WHO, 'state', process.env.STATE_seen ?? '-');
fs.appendFileSync(process.env.GITHUB_STATE, 'seen=${stage}\\n');
fs.appendFileSync(process.env.GITHUB_OUTPUT, 'from=${stage}\\n');
`;
const JS_ACTION = `
name: js
inputs:
  who: { description: x, default: "\${{ github.repository }}" }
runs: { using: node20, pre: pre.js, main: main.js, post: post.js }
`;

function jsAction(dir: string, yaml = JS_ACTION): Record<string, string> {
  return {
    [`${dir}/action.yml`]: yaml,
    [`${dir}/pre.js`]: SCRIPT('pre'),
    [`${dir}/main.js`]: SCRIPT('main'),
    [`${dir}/post.js`]: SCRIPT('post'),
  };
}

describe('JavaScript actions', () => {
  test('remote: pre, main and post share their state; inputs have defaults', async () => {
    const job = await runJob(
      `
      - id: js
        uses: owner/js@v1
        with: { WHO: world }
      - run: echo "\${{ steps.js.outputs.from }}"
      - uses: owner/js@v1
    `,
      { files: jsAction(`${CACHE}/owner/js@v1`) },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps.map((step) => step.name)).toEqual([
      'Pre Run owner/js@v1',
      'Pre Run owner/js@v1',
      'Run owner/js@v1',
      'Run echo "main"',
      'Run owner/js@v1',
      'Post Run owner/js@v1',
      'Post Run owner/js@v1',
    ]);
    expect(job.steps.map((step) => step.lines[0])).toEqual([
      'pre world state -',
      'pre owner/repo state -',
      'main world state pre',
      'main',
      'main owner/repo state pre',
      'post owner/repo state main',
      'post world state main',
    ]);
  });

  test('local: main and post, no pre; a post of its own runs though main failed', async () => {
    const files = jsAction('js');
    const job = await runJob('- uses: ./js', {
      files: { ...files, 'js/main.js': 'process.exit(4)' },
    });
    expect(job.steps.map((step) => [step.name, step.conclusion])).toEqual([
      ['Run ./js', 'failure'],
      ['Post Run ./js', 'success'],
    ]);
    expect(job.outcome.conclusion).toBe('failure');
  });

  test('a skipped step leaves no post; post-if decides; a failing post fails the job', async () => {
    const withIf = JS_ACTION.replace('post: post.js', 'post: post.js, post-if: failure()');
    const job = await runJob(
      `
      - if: false
        uses: ./js
      - uses: ./only-on-failure
      - uses: ./bad-post
    `,
      {
        files: {
          ...jsAction('js'),
          ...jsAction('only-on-failure', withIf),
          ...jsAction('bad-post'),
          'bad-post/post.js': 'process.exit(1)',
        },
      },
    );
    expect(job.steps.map((step) => [step.name, step.conclusion])).toEqual([
      ['Run ./js', 'skipped'],
      ['Run ./only-on-failure', 'success'],
      ['Run ./bad-post', 'success'],
      ['Post Run ./bad-post', 'failure'],
      // It comes after the one that failed.
      ['Post Run ./only-on-failure', 'success'],
    ]);
    expect(job.outcome.conclusion).toBe('failure');
  });

  test('an action in a folder of its repository, and one that is not here', async () => {
    const job = await runJob(
      `
      - uses: owner/js/sub/dir@feature/x
      - if: always()
        uses: owner/missing@v1
      - if: always()
        uses: ./missing
    `,
      { files: jsAction(`${CACHE}/owner/js@feature/x/sub/dir`) },
    );
    expect(job.text).toContain('put its repository into .runner/actions/owner/missing@v1');
    expect(job.text).toContain('Did you forget to run actions/checkout');
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.steps.find((step) => step.name.startsWith('Run owner/js'))?.conclusion).toBe(
      'success',
    );
  });

  test('a broken action.yml says where', async () => {
    const job = await runJob('- uses: ./a', {
      files: { 'a/action.yml': 'runs: { using: magic }' },
    });
    expect(job.annotations[0]?.message).toMatch(/a\/action\.yml \(line 1, column \d+\)/);
  });
});

describe('composite actions', () => {
  test('inputs, outputs, env and steps of their own', async () => {
    const job = await runJob(
      `
      - id: c
        uses: ./c
        with: { name: you }
        env: { FROM_STEP: step }
      - run: echo "[\${{ steps.c.outputs.said }}] [$FROM_STEP] [$INNER] [$GLOBAL] [\${{ steps.inner.outcome }}]"
    `,
      {
        files: {
          'c/action.yml': `
name: c
inputs: { name: { description: n }, other: { description: o, default: def } }
outputs: { said: { description: s, value: "\${{ steps.inner.outputs.x }}" } }
runs:
  using: composite
  steps:
    - id: inner
      shell: bash
      env: { INNER: inner }
      run: |
        echo "x=hello \${{ inputs.name }} \${{ inputs.other }}" >> "$GITHUB_OUTPUT"
        echo "GLOBAL=set" >> "$GITHUB_ENV"
        echo "$FROM_STEP $INNER $(basename "$GITHUB_ACTION_PATH")"
    - shell: bash
      run: echo "[$INNER] $GLOBAL"
`,
        },
      },
    );
    expect(job.steps[0]?.lines).toEqual(['step inner c', '[] set']);
    expect(job.steps[1]?.lines).toEqual(['[hello you def] [] [] [set] []']);
  });

  test('a failure inside fails the step, failure() is about the own steps', async () => {
    const job = await runJob(
      `
      - continue-on-error: true
        run: exit 1
      - uses: ./c
      - if: failure()
        run: echo outer
    `,
      {
        files: {
          'c/action.yml': `
name: c
runs:
  using: composite
  steps:
    - if: failure()
      run: echo too early
      shell: sh
    - run: exit 2
      shell: sh
    - run: echo no
      shell: sh
    - if: failure()
      run: echo inner
      shell: sh
`,
        },
      },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual(['success', 'failure', 'success']);
    expect(job.steps[1]?.lines).toEqual(['##[error]Process completed with exit code 2.', 'inner']);
  });

  test('nest, up to nine deep; $/ is the repository they are in', async () => {
    const nested = (inner: string): string =>
      `name: n\nruns: { using: composite, steps: [{ ${inner} }] }`;
    const files: Record<string, string> = {
      [`${CACHE}/o/r@v1/outer/action.yml`]: nested('uses: $/inner'),
      [`${CACHE}/o/r@v1/inner/action.yml`]: nested('run: echo deep, shell: bash'),
      'loop/action.yml': nested('uses: ./loop'),
    };
    const job = await runJob(
      `
      - uses: o/r/outer@v1
      - uses: $/loop
    `,
      { files },
    );
    expect(job.steps[0]?.lines).toEqual(['deep']);
    expect(job.steps[1]?.conclusion).toBe('failure');
    expect(job.text).toContain('more than 9 deep');
  });

  test('post steps of actions inside run at the end of the job', async () => {
    const job = await runJob(
      `
      - uses: ./c
      - run: echo between
    `,
      {
        files: {
          ...jsAction('js'),
          'c/action.yml': `name: c\nruns: { using: composite, steps: [{ uses: ./js }] }`,
        },
      },
    );
    expect(job.text.split('\n')).toEqual([
      'main owner/repo state -',
      'between',
      'post owner/repo state main',
    ]);
  });

  test('pre of remote actions inside remote ones runs before the job, with the state of its step', async () => {
    const nested = (inner: string): string =>
      `name: n\ninputs: { to: { description: t } }\nruns: { using: composite, steps: [{ ${inner} }] }`;
    const job = await runJob(
      `
      - run: echo first
      - uses: o/outer@v1
        with: { to: someone }
    `,
      {
        files: {
          ...jsAction(`${CACHE}/o/js@v1`),
          [`${CACHE}/o/outer@v1/action.yml`]: nested(
            'uses: o/middle@v1, with: { to: "${{ inputs.to }}" }',
          ),
          [`${CACHE}/o/middle@v1/action.yml`]: nested(
            'uses: o/js@v1, with: { who: "${{ inputs.to }}" }',
          ),
        },
      },
    );
    expect(job.steps[0]?.name).toBe('Pre Run o/outer@v1');
    expect(job.text.split('\n')).toEqual([
      'pre someone state -',
      'first',
      'main someone state pre',
      'post someone state main',
    ]);
  });

  test('timeout of the step that uses it ends what runs inside', async () => {
    const job = await runJob(
      `
      - uses: ./c
        timeout-minutes: 0.003
    `,
      {
        files: {
          'c/action.yml': `
name: c
runs:
  using: composite
  steps:
    - { run: sleep 30, shell: bash }
    - { if: always(), run: echo no, shell: bash }
`,
        },
      },
    );
    expect(job.steps[0]?.conclusion).toBe('failure');
    expect(job.text).toContain('has timed out');
    expect(job.text.split('\n')).not.toContain('no');
  });
});

describe('containers', () => {
  test.each([
    ['docker:// step', '- uses: docker://alpine:3', {}],
    ['docker action', '- uses: ./d', { 'd/Dockerfile': 'FROM scratch' }],
  ])('%s: one clear failure', async (_name, text, files) => {
    const job = await runJob(text, { files });
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.annotations).toHaveLength(1);
    expect(job.annotations[0]?.message).toContain('needs a container');
  });

  test('job container: no step runs', async () => {
    const job = await runJob(`
on: push
jobs:
  job:
    runs-on: ubuntu-latest
    container: alpine
    steps:
      - run: echo no
`);
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.steps[0]?.conclusion).toBe('skipped');
    expect(job.annotations[0]?.message).toContain('needs a container');
  });
});
