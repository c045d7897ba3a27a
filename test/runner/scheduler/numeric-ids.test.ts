import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ForkIsolation } from '../../../src/runner/model/isolation.ts';
import type { RunRecord } from '../../../src/runner/scheduler/state/journal-records.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';
import { createRunnerProject, type RunnerProject } from '../support/runner-project.ts';
import { createBench, type Bench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const STEPS = 'jobs: { a: { runs-on: x, steps: [{ run: ok }] } }';
const PLAIN = `on: workflow_dispatch\n${STEPS}\n`;
const WORKFLOWS = { 'w.yml': PLAIN, 'x.yml': PLAIN };

/** `github.run_id` of all jobs that ran, in their order. */
function runIdsOf(executor: ScriptedExecutor): readonly unknown[] {
  return executor.requests.map(
    ({ contexts }) => (contexts.github as Record<string, unknown>)['run_id'],
  );
}

async function startAgain(project: RunnerProject, more: object = {}): Promise<Bench> {
  return createBench({ project, executor: new ScriptedExecutor(), overrides: more });
}

/** The number of one more run; the process ends after it. */
async function oneMore(project: RunnerProject, more: object = {}): Promise<number> {
  await using bench = await startAgain(project, more);
  return numberOf(await bench.run('w'));
}

function numberOf({ numericId = Number.NaN }: { readonly numericId?: number | undefined }): number {
  return numericId;
}

test('all runs of a project are counted, of whatever workflow; a rerun keeps its number', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({ executor, workflows: WORKFLOWS });
  const first = await bench.run('w');
  const second = await bench.run('x');
  await bench.service.rerun(first.id, {});
  const again = await bench.events.completed(first.id, 2);
  const numbers = [first, second, again].map(numberOf);
  // Ten digits: no number of a workflow's run looks like one.
  expect(String(first.numericId)).toMatch(/^[1-9]\d{9}$/);
  expect(numbers).toEqual([numbers[0], numberOf(first) + 1, numbers[0]]);
  expect(runIdsOf(executor)).toEqual(numbers.map(String));
  expect([first, second].map(({ runNumber }) => runNumber)).toEqual([1, 1]);
});

test('runs that start at the same time have numbers of their own', async () => {
  await using bench = await createBench({ executor: new ScriptedExecutor(), workflows: WORKFLOWS });
  const names = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 'w' : 'x'));
  const started = await Promise.all(names.map((workflow) => bench.service.start({ workflow })));
  const numbers = started.map(({ run }) => numberOf(run));
  const least = Math.min(...numbers);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(names.map((_, index) => least + index));
  await Promise.all(started.map(({ run }) => bench.events.completed(run.id)));
  await bench.stop();
  const file = join(bench.project.dir, '.runner', 'last-run-id');
  expect(await readFile(file, 'utf8')).toBe(`${least + 19}\n`);
});

test('a run is found by its number, whose neighbours in the list it also names', async () => {
  await using bench = await createBench({ executor: new ScriptedExecutor(), workflows: WORKFLOWS });
  const { service } = bench;
  const runs = [await bench.run('w'), await bench.run('x'), await bench.run('w')];
  for (const run of runs) expect(service.get(String(run.numericId))?.id).toBe(run.id);
  const before = String(runs[1]?.numericId);
  expect(service.list({ limit: 9, before }).map(({ id }) => id)).toEqual([runs[0]?.id]);
  for (const text of ['1', `0${before}`, `${before}0`, 'undefined', 'NaN']) {
    expect(service.get(text)).toBeUndefined();
  }
  await service.remove(runs[1]?.id ?? '');
  expect(service.get(before)).toBeUndefined();
});

test('a removed number is not given again after a restart, however the run was removed', async () => {
  await using project = await createRunnerProject(WORKFLOWS);
  const first = await startAgain(project);
  await first.run('w');
  const last = await first.run('w');
  await first.service.remove(last.id);
  await first.stop();
  expect(await oneMore(project)).toBe(numberOf(last) + 1);
  // By hand, all of them.
  await rm(join(project.dir, '.runner', 'runs'), { recursive: true });
  expect(await oneMore(project)).toBe(numberOf(last) + 2);
});

test('a number that was taken by a start which failed, or a crash ended, is not given again', async () => {
  await using project = await createRunnerProject(WORKFLOWS);
  let isRefusing = false;
  const bench = await createBench({
    project,
    executor: new ScriptedExecutor(),
    storeOf: (store) => {
      const append = store.append.bind(store);
      return Object.assign(store, {
        append: (...given: Parameters<typeof append>) =>
          isRefusing ? Promise.reject(new Error('no')) : append(...given),
      });
    },
  });
  const first = await bench.run('w');
  isRefusing = true;
  await expect(bench.service.start({ workflow: 'w' })).rejects.toThrow('no');
  // As a crash: nobody shuts down.
  await bench.store.close();
  expect(await oneMore(project)).toBe(numberOf(first) + 2);
});

test.each([
  ['lost', undefined],
  ['empty', ''],
  ['torn', '179'],
  ['of another kind', '{"last":5}'],
  ['beyond what a number can be', '99999999999999999999\n'],
])('where the counter is %s, no run has the number of another one', async (_, text) => {
  await using project = await createRunnerProject(WORKFLOWS);
  const kept = await oneMore(project);
  const file = join(project.dir, '.runner', 'last-run-id');
  const damage = (): Promise<void> => (text === undefined ? rm(file) : writeFile(file, text));
  await damage();
  // The clock says that it is long ago; the run that is kept says otherwise.
  const past = { ...systemClock, nowMs: () => 1_000_000_000_000 };
  const next = await oneMore(project, { clock: past });
  expect(next).toBe(kept + 1);
  // Without any run the time decides, which is beyond all that was given.
  await damage();
  await rm(join(project.dir, '.runner', 'runs'), { recursive: true });
  const later = { ...systemClock, nowMs: () => Date.now() + 100_000 };
  expect(await oneMore(project, { clock: later })).toBeGreaterThan(next);
});

test('a run of an older version keeps its id as its number, over restarts and reruns', async () => {
  await using project = await createRunnerProject(WORKFLOWS);
  const before = await startAgain(project);
  const old = await before.run('w');
  const next = await before.run('w');
  await before.stop();
  const journal = join(project.dir, '.runner', 'runs', old.id, 'journal.jsonl');
  await writeFile(journal, withoutNumber(await readFile(journal, 'utf8')));
  await rm(join(project.dir, '.runner', 'last-run-id'));
  for (const attempt of [2, 3]) {
    const executor = new ScriptedExecutor();
    await using bench = await createBench({ project, executor });
    expect(bench.service.get(old.id)?.numericId).toBeUndefined();
    await bench.service.rerun(old.id, {});
    await bench.events.completed(old.id, attempt);
    expect(runIdsOf(executor)).toEqual([old.id]);
  }
  expect(await oneMore(project)).toBeGreaterThan(numberOf(next));
});

test('a job knows other runs by their numbers, one of a fork its own alone', async () => {
  await using project = await createRunnerProject(WORKFLOWS);
  const executor = new ScriptedExecutor();
  const overrides = { isolation: isolationIn(project.dir) };
  await using bench = await createBench({ project, executor, overrides });
  const other = await bench.run('w');
  const own = await bench.run('w');
  const { run } = await bench.service.start({ workflow: 'w', fork: { needsApproval: false } });
  const fork = await bench.events.completed(run.id);
  expect(fork.conclusion).toBe('success');
  const [, byOwn, byFork] = executor.requests.map(({ idOfRun }) => idOfRun);
  const named = [other, own, fork].flatMap(({ id, numericId }) => [id, String(numericId)]);
  expect(named.map((text) => byOwn?.(text))).toEqual(
    [other, own, fork].flatMap(({ id }) => [id, id]),
  );
  expect(named.map((text) => byFork?.(text))).toEqual([...named.slice(0, 5), fork.id]);
  expect(byOwn?.('7')).toBe('7');
});

/** Keeps nothing apart: jobs of forks are begun all the same. */
function isolationIn(dir: string): ForkIsolation {
  const place = join(dir, 'apart');
  const job = { workspace: place, temp: place, commands: place, shared: place, home: place };
  return {
    isInUse: false,
    whyNot: () => Promise.resolve(undefined),
    begin: () =>
      Promise.resolve({
        ...job,
        uid: 0,
        dir: place,
        wrap: (program) => program,
        give: () => Promise.resolve(),
        end: () => Promise.resolve(),
      }),
  };
}

/** The journal of a finished run, as it was before runs had numbers. */
function withoutNumber(journal: string): string {
  const record = JSON.parse(journal) as Extract<RunRecord, { readonly type: 'snapshot' }>;
  const { numericId, ...run } = record.state.run;
  expect(numericId).toBeGreaterThan(0);
  return `${JSON.stringify({ ...record, state: { ...record.state, run } })}\n`;
}
