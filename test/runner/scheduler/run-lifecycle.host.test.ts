import { expect, test } from 'vitest';
import { createBench, textOf } from '../support/scheduler-bench.ts';

test('a run of two jobs tells its story in order and shows what it came to', async () => {
  await using bench = await createBench({
    workflows: {
      'ci.yml': `
name: CI
on: workflow_dispatch
jobs:
  build:
    runs-on: ubuntu-latest
    outputs:
      word: \${{ steps.say.outputs.word }}
    steps:
      - id: say
        run: |
          echo hello
          echo "word=green" >> "$GITHUB_OUTPUT"
  use:
    needs: build
    runs-on: ubuntu-latest
    steps:
      - name: Use it
        run: echo "got \${{ needs.build.outputs.word }}"
      - if: failure()
        run: exit 1
`,
    },
  });
  const { run: queued } = await bench.service.start({ workflow: 'ci' });
  expect(queued).toMatchObject({ status: 'queued', workflow: 'CI', runNumber: 1, attempt: 1 });
  expect(queued.trigger.event).toBe('workflow_dispatch');
  const run = await bench.events.completed(queued.id);
  expect(bench.problems).toEqual([]);
  expect(run).toMatchObject({ status: 'completed', conclusion: 'success' });
  expect(run.jobs.map((job) => [job.id, job.conclusion])).toEqual([
    ['build', 'success'],
    ['use', 'success'],
  ]);
  expect(run.jobs[0]?.outputs).toEqual({ word: 'green' });
  expect(run.jobs[1]?.needs).toEqual(['build']);
  const story = bench.events.story(queued.id);
  expect(story[0]).toBe('run.started');
  expect(story.at(-1)).toBe('run.completed');
  expect(story.indexOf('job.completed build')).toBeLessThan(story.indexOf('job.started use'));
  expect(await textOf(bench.service.logs(queued.id, {}))).toBe(
    [
      '=== Job: build (build) ===',
      '--- Step 1: Run echo hello [success] ---',
      'hello',
      '',
      '=== Job: use (use) ===',
      '--- Step 1: Use it [success] ---',
      'got green',
      '--- Step 2: Run exit 1 [skipped] ---',
      '',
    ].join('\n'),
  );
});
