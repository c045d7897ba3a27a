import { expect, test } from 'vitest';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const CHECKOUT = '{ uses: actions/checkout@v4 }';
const CALLED = `on: workflow_call
jobs:
  inner: { runs-on: x, steps: [{ run: ok }] }
  tidy: { runs-on: x, steps: [${CHECKOUT}, { run: ok }] }
`;

test('a run says once which of its jobs have no checkout, matrix jobs and called ones too', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    workflows: {
      'called.yml': CALLED,
      'w.yml': `on: workflow_dispatch
jobs:
  none: { if: false, runs-on: x, steps: [{ run: ok }] }
  first: { needs: none, if: always(), runs-on: x, steps: [${CHECKOUT}, { run: ok }] }
  legs:
    needs: first
    if: always()
    runs-on: x
    strategy: { matrix: { n: [1, 2, 3] } }
    steps: [{ run: ok }]
  known:
    needs: legs
    if: always()
    strategy: { matrix: { n: [1, 2] } }
    uses: ./.github/workflows/called.yml
  late: { needs: known, if: always(), runs-on: x, steps: [{ run: fail }] }
`,
    },
  });
  const { id } = await bench.run('w');
  const notices = (): readonly string[] =>
    bench.service
      .annotations(id)
      .filter(({ message }) => message.includes('actions/checkout'))
      .map(({ message, jobId }) => `${jobId}: ${message.split(':')[0]}`);
  expect(notices()).toEqual(['undefined: No actions/checkout in legs, known/inner, late']);
  // Those that are not run again have nothing to be warned of.
  await bench.service.rerun(id, { failedOnly: true });
  await bench.events.completed(id, 2);
  expect(notices()).toEqual(['undefined: No actions/checkout in late']);
  await bench.service.rerun(id, {});
  await bench.events.completed(id, 3);
  expect(notices()).toEqual(['undefined: No actions/checkout in legs, known/inner, late']);
});

test('jobs that only the run knows are named when they start; many are counted', async () => {
  const executor = new ScriptedExecutor();
  const many = Array.from(
    { length: 22 },
    (_, index) => `  j${index}: { needs: call, runs-on: x, steps: [{ run: ok }] }`,
  );
  await using bench = await createBench({
    executor,
    workflows: {
      'called.yml': CALLED,
      'w.yml': `on: workflow_dispatch
jobs:
  call:
    strategy: { matrix: { n: "\${{ fromJSON('[1]') }}" } }
    uses: ./.github/workflows/called.yml
${many.join('\n')}
`,
    },
  });
  const { id } = await bench.run('w');
  const [only, ...more] = bench.service
    .annotations(id)
    .filter(({ message }) => message.includes('actions/checkout'));
  expect(more).toEqual([]);
  expect(only?.message).toMatch(/^No actions\/checkout in call\/inner, j0, .*, j18 and 3 more: /);
});

test('nothing is said where the workspace of every job begins as on GitHub', async () => {
  const workflows = {
    'w.yml': 'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: ok }] } }\n',
  };
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    workflows,
    overrides: { strictCheckout: true },
  });
  const { id } = await bench.run('w');
  expect(bench.service.annotations(id)).toEqual([]);
});
