import { expect, test } from 'vitest';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import {
  createBench,
  secretsFrom,
  type Bench,
  type BenchOptions,
} from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

async function benchOf(
  workflows: Readonly<Record<string, string>>,
  options: BenchOptions = {},
): Promise<Bench> {
  return await createBench({ executor: new ScriptedExecutor(), ...options, workflows });
}

function conclusions(run: WorkflowRun): readonly (readonly [string, string | undefined])[] {
  return run.jobs.map((job) => [job.id, job.conclusion]);
}

const CALLED = `
on:
  workflow_call:
    inputs:
      count: { type: number, required: true }
      flag: { type: boolean, default: true }
      who: { type: string, default: nobody }
    secrets:
      KEY: { required: false }
    outputs:
      word: { value: "\${{ jobs.make.outputs.word }}-\${{ inputs.who }}" }
jobs:
  make:
    runs-on: ubuntu-latest
    outputs: { word: "\${{ steps.s.outputs.w }}" }
    steps:
      - { id: s, run: "set w made" }
      - run: say \${{ toJSON(inputs) }}
  check:
    needs: make
    runs-on: ubuntu-latest
    steps:
      - run: say \${{ secrets.KEY }}|\${{ secrets.OTHER }}|\${{ github.workflow }}|\${{ github.job }}
`;

test('the jobs of a called workflow are jobs of the run, with inputs, secrets and outputs', async () => {
  const secrets = secretsFrom({ '': { TOP: 'top-secret', OTHER: 'other' } });
  await using bench = await benchOf(
    {
      'called.yml': CALLED,
      'w.yml': `
name: Top
on: workflow_dispatch
jobs:
  first:
    runs-on: ubuntu-latest
    steps: [{ run: ok }]
  call:
    name: The call
    needs: first
    uses: ./.github/workflows/called.yml
    with: { count: "\${{ fromJSON('3') }}", who: you }
    secrets: { KEY: "\${{ secrets.TOP }}" }
  use:
    needs: call
    runs-on: ubuntu-latest
    steps: [{ run: "say \${{ needs.call.result }} \${{ needs.call.outputs.word }}" }]
`,
    },
    { secrets },
  );
  const { run: queued } = await bench.service.start({ workflow: 'w' });
  expect(queued.jobs.map((job) => [job.id, job.name, job.needs])).toEqual([
    ['first', 'first', []],
    ['call/make', 'The call / make', []],
    ['call/check', 'The call / check', ['call/make']],
    ['use', 'use', ['call']],
  ]);
  const run = await bench.events.completed(queued.id);
  expect(bench.errors(run.id)).toEqual([]);
  expect(run.conclusion).toBe('success');
  const inputs = JSON.parse(bench.events.lines(run.id, 'call/make', 2).join('\n')) as unknown;
  expect(inputs).toEqual({ count: 3, flag: true, who: 'you' });
  expect(bench.events.lines(run.id, 'call/check', 1)).toEqual(['top-secret||Top|check']);
  expect(bench.events.lines(run.id, 'use', 1)).toEqual(['success made-you']);
  // The audit sees which job could read what: only the secret that the call hands over.
  expect(secrets.reads.filter(({ names }) => names.length > 0)).toEqual([
    { jobId: 'call/make', names: ['TOP'] },
    { jobId: 'call/check', names: ['TOP'] },
  ]);
});

test('secrets: inherit hands all over, none hands nothing over', async () => {
  const caller = (secrets: string): string => `
on: workflow_dispatch
jobs:
  call:
    uses: ./.github/workflows/called.yml
    with: { count: 1 }
${secrets}
`;
  await using bench = await benchOf(
    {
      'called.yml': CALLED,
      'all.yml': caller('    secrets: inherit'),
      'none.yml': caller(''),
    },
    { secrets: secretsFrom({ '': { KEY: 'k', OTHER: 'o' } }) },
  );
  const all = await bench.run('all');
  expect(bench.events.lines(all.id, 'call/check', 1)).toEqual([
    'k|o|.github/workflows/all.yml|check',
  ]);
  const none = await bench.run('none');
  expect(bench.events.lines(none.id, 'call/check', 1)).toEqual([
    '||.github/workflows/none.yml|check',
  ]);
});

test('calls nest, and a matrix on a call makes a workflow of each leg', async () => {
  await using bench = await benchOf({
    'inner.yml': `
on: { workflow_call: { inputs: { n: { type: number } } } }
jobs:
  leaf:
    runs-on: ubuntu-latest
    strategy: { matrix: { x: [a, b] } }
    steps: [{ run: "say \${{ inputs.n }}\${{ matrix.x }}" }]
`,
    'outer.yml': `
on: { workflow_call: { inputs: { n: { type: number } } } }
jobs:
  in:
    uses: ./.github/workflows/inner.yml
    with: { n: "\${{ inputs.n }}" }
`,
    'w.yml': `
on: workflow_dispatch
jobs:
  out:
    strategy: { matrix: { n: [1, 2] } }
    uses: ./.github/workflows/outer.yml
    with: { n: "\${{ matrix.n }}" }
  end:
    needs: out
    runs-on: ubuntu-latest
    steps: [{ run: "say \${{ needs.out.result }}" }]
`,
  });
  const run = await bench.run('w');
  expect(bench.errors(run.id)).toEqual([]);
  expect(run.jobs.map((job) => [job.id, job.name])).toEqual([
    ['out:1/in/leaf:1', 'out (1) / in / leaf (a)'],
    ['out:1/in/leaf:2', 'out (1) / in / leaf (b)'],
    ['out:2/in/leaf:1', 'out (2) / in / leaf (a)'],
    ['out:2/in/leaf:2', 'out (2) / in / leaf (b)'],
    ['end', 'end'],
  ]);
  expect(bench.events.lines(run.id, 'out:2/in/leaf:1', 1)).toEqual(['2a']);
  expect(bench.events.lines(run.id, 'end', 1)).toEqual(['success']);
  expect(bench.problems).toEqual([]);
});

test('a call that is skipped or cannot be made is one job; a failure inside fails the caller', async () => {
  await using bench = await benchOf({
    'called.yml': `
on: { workflow_call: { inputs: { n: { type: number } } } }
jobs:
  a: { runs-on: ubuntu-latest, steps: [{ run: fail }] }
  b: { runs-on: ubuntu-latest, steps: [{ run: ok }] }
`,
    'w.yml': `
on: workflow_dispatch
jobs:
  skipped:
    if: false
    uses: ./.github/workflows/called.yml
  wrong:
    uses: ./.github/workflows/called.yml
    with: { n: "\${{ github.actor }}" }
  failing:
    uses: ./.github/workflows/called.yml
  after:
    needs: failing
    if: failure()
    runs-on: ubuntu-latest
    steps: [{ run: ok }]
`,
  });
  const run = await bench.run('w');
  expect(conclusions(run)).toEqual([
    ['skipped', 'skipped'],
    ['wrong', 'failure'],
    ['failing/a', 'failure'],
    ['failing/b', 'success'],
    ['after', 'success'],
  ]);
  expect(bench.errors(run.id)).toEqual([
    {
      level: 'error',
      message: expect.stringContaining('must be a number') as string,
      jobId: 'wrong',
      file: '.github/workflows/w.yml',
      title: 'wrong',
    },
  ]);
});

test('fail-fast and cancel reach the jobs of called workflows; always() there resists', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    {
      'called.yml': `
on: { workflow_call: { inputs: { script: { type: string } } } }
jobs:
  a: { runs-on: x, steps: [{ run: "\${{ inputs.script }}" }] }
  b: { needs: a, runs-on: x, steps: [{ run: ok }] }
  c: { needs: a, if: always(), runs-on: x, steps: [{ run: ok }] }
`,
      'w.yml': `
on: workflow_dispatch
jobs:
  m:
    strategy: { matrix: { script: [wait fail-now, wait never] } }
    uses: ./.github/workflows/called.yml
    with: { script: "\${{ matrix.script }}" }
`,
      'one.yml': `
on: workflow_dispatch
jobs:
  call: { uses: ./.github/workflows/called.yml, with: { script: wait never } }
`,
      'failing.yml': `
on: workflow_dispatch
jobs:
  m:
    strategy: { matrix: { script: [fail, wait never] } }
    uses: ./.github/workflows/called.yml
    with: { script: "\${{ matrix.script }}" }
`,
    },
    { limits: { jobsInProgressMax: 4 }, executor },
  );
  const failing = await bench.run('failing');
  expect(failing.conclusion).toBe('failure');
  expect(conclusions(failing)).toEqual([
    ['m:1/a', 'failure'],
    ['m:1/b', 'skipped'],
    ['m:1/c', 'success'],
    ['m:2/a', 'cancelled'],
    ['m:2/b', 'skipped'],
    // Its matrix job as a whole was cancelled, not the run: always() does not resist that.
    ['m:2/c', 'cancelled'],
  ]);
  const { run } = await bench.service.start({ workflow: 'one' });
  await bench.events.when((event) => event.type === 'step.started' && event.runId === run.id);
  await bench.service.cancel(run.id);
  expect(conclusions(await bench.events.completed(run.id))).toEqual([
    ['call/a', 'cancelled'],
    ['call/b', 'skipped'],
    ['call/c', 'success'],
  ]);
  expect(bench.problems).toEqual([]);
});

test('a called workflow has a concurrency of its own, which may not be one that its run holds', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    {
      'called.yml': `
on: { workflow_call: { inputs: { gate: { type: string } } } }
concurrency: deploy
jobs: { a: { runs-on: x, steps: [{ run: "wait \${{ inputs.gate }}" }] } }
`,
      'w.yml': `
on: { workflow_dispatch: { inputs: { gate: { type: string } } } }
jobs:
  call: { uses: ./.github/workflows/called.yml, with: { gate: "\${{ inputs.gate }}" } }
`,
      'held.yml': `
on: workflow_dispatch
concurrency: Deploy
jobs:
  call: { uses: ./.github/workflows/called.yml, with: { gate: never } }
`,
    },
    { limits: { jobsInProgressMax: 4 }, executor },
  );
  const start = async (gate: string): Promise<string> =>
    (await bench.service.start({ workflow: 'w', inputs: { gate } })).run.id;
  const first = await start('first');
  await bench.events.when((event) => event.type === 'job.started' && event.runId === first);
  const second = await start('second');
  const third = await start('third');
  const evicted = await bench.events.completed(second);
  expect(conclusions(evicted)).toEqual([['call', 'cancelled']]);
  executor.open('first');
  executor.open('third');
  expect((await bench.events.completed(third)).conclusion).toBe('success');
  const held = await bench.run('held');
  expect(conclusions(held)).toEqual([['call', 'cancelled']]);
  expect(bench.errors(held.id)[0]?.message).toContain('a deadlock was detected');
});

test('a script of a called workflow is warned of once, however often it is called', async () => {
  await using bench = await benchOf({
    'called.yml': `
on: { workflow_call: { inputs: { who: { type: string }, count: { type: number } } } }
jobs: { a: { runs-on: x, steps: [{ run: 'say \${{ inputs.who }} \${{ inputs.count }} \${{ inputs.who == 1 }}' }] } }
`,
    'w.yml': `
on: workflow_dispatch
jobs:
  one: { uses: ./.github/workflows/called.yml, with: { who: a } }
  two: { uses: ./.github/workflows/called.yml, with: { who: b } }
`,
  });
  const run = await bench.run('w');
  const warnings = bench.service
    .annotations(run.id)
    .filter(({ message }) => message.includes('becomes part of the script'));
  expect(warnings.map(({ jobId, message }) => [jobId, message.split(' becomes')[0]])).toEqual([
    ['one/a', "Line 3: ${{ inputs.who }} in 'run'"],
  ]);
});
