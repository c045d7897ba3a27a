import { expect, test } from 'vitest';
import type { JournalRecord, RunStore } from '../../../src/runner/model/storage.ts';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const WORKFLOW = `
on: workflow_dispatch
jobs:
  a:
    runs-on: x
    strategy: { matrix: { n: [1, 2, 3] } }
    steps: [{ run: "say \${{ matrix.n }}" }, { if: false, run: ok }, { run: ok }]
  b: { needs: a, runs-on: x, steps: [{ run: ok }] }
  c: { if: false, runs-on: x, steps: [{ run: ok }] }
`;

/** The store with something done around each append. */
function aroundAppends(
  store: RunStore,
  around: (record: JournalRecord, append: () => Promise<void>) => Promise<void>,
): RunStore {
  return {
    recover: () => store.recover(),
    keepWorkflow: (runId, sources) => store.keepWorkflow(runId, sources),
    readWorkflow: (runId) => store.readWorkflow(runId),
    append: (runId, record) => around(record, () => store.append(runId, record)),
    compact: (runId, record) => store.compact(runId, record),
    openLog: (...args) => store.openLog(...args),
    readLog: (...args) => store.readLog(...args),
    remove: (runId) => store.remove(runId),
    writeSummary: (...args) => store.writeSummary(...args),
    readSummary: (...args) => store.readSummary(...args),
    assertDiskSpace: () => store.assertDiskSpace(),
    close: () => store.close(),
  };
}

test('I11: what is announced, and what get() shows, is on the disk', async () => {
  const onDisk: string[] = [];
  const held: (() => void)[] = [];
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': WORKFLOW },
    storeOf: (store) =>
      aroundAppends(store, async (record, append) => {
        await append();
        // The disk answers late, and not in order.
        await new Promise<void>((resolve) => {
          held.push(resolve);
          setTimeout(() => held.splice(Math.floor(Math.random() * held.length), 1)[0]?.(), 1);
        });
        onDisk.push(keyOf(record));
      }),
  });
  let announced = 0;
  bench.events.onEvent = (event) => {
    if (event.type === 'step.log') return;
    announced += 1;
    const step = 'stepNumber' in event ? event.stepNumber : '';
    const job = 'jobId' in event ? event.jobId : '';
    expect(onDisk).toContain(`${event.type}|${job}|${step}`);
  };
  const run = await bench.run('w');
  expect(run.conclusion).toBe('success');
  expect(announced).toBeGreaterThan(20);
  expect(bench.problems).toEqual([]);
});

function keyOf(record: JournalRecord): string {
  const { jobId = '', number = '' } = record as { jobId?: string; number?: number };
  return `${record.type}|${jobId}|${number}`;
}

test('I12: the order of the events of a run', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': WORKFLOW },
  });
  const { id } = await bench.run('w');
  const story = bench.events.events.filter((event) => event.runId === id);
  expect(story[0]?.type).toBe('run.started');
  expect(story.at(-1)?.type).toBe('run.completed');
  for (const job of ['a:1', 'a:2', 'a:3', 'b', 'c']) {
    const own = story.flatMap((event) =>
      'jobId' in event && event.jobId === job
        ? [`${event.type}${'stepNumber' in event ? event.stepNumber : ''}`]
        : [],
    );
    const expected =
      job === 'c'
        ? ['job.completed']
        : job === 'b'
          ? ['job.started', 'step.started1', 'step.completed1', 'job.completed']
          : [
              'job.started',
              'step.started1',
              'step.log1',
              'step.completed1',
              'step.completed2',
              'step.started3',
              'step.completed3',
              'job.completed',
            ];
    expect(own).toEqual(expected);
  }
});

test('a start that is not on the disk is refused and leaves nothing behind', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': WORKFLOW },
    storeOf: (store) =>
      aroundAppends(store, (record, append) =>
        record.type === 'run.queued' ? Promise.reject(new Error('no space')) : append(),
      ),
  });
  await expect(bench.service.start({ workflow: 'w' })).rejects.toThrow('no space');
  expect(bench.service.list({ limit: 10 })).toEqual([]);
  expect(bench.service.counts()).toEqual({ queued: 0, inProgress: 0 });
});

test('a journal that cannot be written any more ends its run, told to all who wait', async () => {
  let isBroken = false;
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: {
      'w.yml':
        'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: ok }, { run: wait never }] } }\n',
    },
    storeOf: (store) =>
      aroundAppends(store, (record, append) => {
        isBroken ||= record.type === 'step.completed';
        return isBroken ? Promise.reject(new Error('no space')) : append();
      }),
  });
  const run = await bench.run('w');
  expect(run.conclusion).toBe('cancelled');
  expect(bench.errors(run.id).map(({ message }) => message)).toEqual([
    'Stopped: the journal could not be written',
  ]);
  expect(bench.problems).toContain('runner.journal: no space');
});

test('a log that cannot be written is a failure with an annotation, and its lines are not announced', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: {
      'w.yml':
        'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: say one }, { run: say two }] } }\n',
    },
    storeOf: (store) => ({
      ...aroundAppends(store, (_record, append) => append()),
      openLog: (...place) => {
        const writer = store.openLog(...place);
        const refuse = (): never => {
          throw new Error('no space');
        };
        return { write: refuse, close: () => writer.close() };
      },
    }),
  });
  const run = await bench.run('w');
  expect(run.conclusion).toBe('failure');
  expect(bench.errors(run.id)).toMatchObject([{ jobId: 'a', stepNumber: 1 }]);
  expect(bench.events.events.filter(({ type }) => type === 'step.log')).toEqual([]);
  expect(bench.problems).toEqual(['runner.record: no space']);
});
