import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Conclusion } from '../../model/run.ts';
import type { PlannedJob, RunRecord } from './journal-records.ts';
import { applyRecord, conclusionOf, isAtOrBelow, RefusedRecord } from './run-state-reducer.ts';
import { concludeRun, runView, snapshotOf, type RunState } from './run-state.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const IDS = ['a', 'b', 'b:1', 'b:2', 'c', 'c/x', 'c/y'];
const CONCLUSIONS: readonly Conclusion[] = ['success', 'failure', 'cancelled', 'skipped'];

function planned(id: string): PlannedJob {
  return { id, name: `job ${id}`, needs: [], node: id.replace(/:\d+$/, '') };
}

function queued(at: string): RunRecord {
  return {
    type: 'run.queued',
    at,
    run: {
      id: 'r1',
      workflow: 'CI',
      fileName: 'ci.yml',
      name: 'CI',
      runNumber: 1,
      createdAt: at,
      trigger: { event: 'workflow_dispatch', ref: '', sha: '0'.repeat(40) },
    },
    request: {
      hasExplicitRef: false,
      actor: 'me',
      eventName: 'workflow_dispatch',
      inputs: {},
      event: {},
    },
    jobs: ['a', 'b', 'c'].map(planned),
    annotations: [],
  };
}

type Body = RunRecord extends infer Each
  ? Each extends RunRecord
    ? Omit<Each, 'at'>
    : never
  : never;

const jobId = fc.constantFrom(...IDS);
const number = fc.integer({ min: 1, max: 3 });
const conclusion = fc.constantFrom(...CONCLUSIONS);
const body: fc.Arbitrary<Body> = fc.oneof(
  fc.constant<Body>({ type: 'run.started', sandbox: { path: '/p', strategy: 'none' } }),
  fc.constant<Body>({ type: 'run.env', env: { A: '1' } }),
  fc.constant<Body>({ type: 'run.actions', actions: [{ name: 'a/b@v1', source: 'missing' }] }),
  fc.constant<Body>({ type: 'run.approved' }),
  fc.constant<Body>({ type: 'run.cancelRequested' }),
  conclusion.map((each): Body => ({ type: 'run.completed', conclusion: each })),
  fc.subarray(IDS).map((reset): Body => ({ type: 'run.rerun', reset })),
  fc
    .tuple(fc.constantFrom('b', 'c', 'a'), fc.subarray(IDS, { minLength: 1 }))
    .map(([node, ids]): Body => {
      const own = ids.filter((id) => isAtOrBelow(planned(id).node, node));
      return { type: 'jobs.planned', node, jobs: own.map(planned) };
    }),
  jobId.map((id): Body => ({ type: 'job.started', jobId: id, name: `started ${id}` })),
  fc.tuple(jobId, conclusion, fc.boolean()).map(([id, each, isSlow]): Body => ({
    type: 'job.completed',
    jobId: id,
    conclusion: each,
    result: each,
    ...(isSlow && each === 'cancelled' ? { hasTimedOut: true } : {}),
    outputs: {},
  })),
  fc.tuple(jobId, fc.uniqueArray(number, { minLength: 1 })).map(([id, numbers]): Body => ({
    type: 'steps.known',
    jobId: id,
    steps: numbers.map((each) => ({ number: each, name: `step ${each}` })),
  })),
  fc
    .tuple(jobId, number)
    .map(([id, each]): Body => ({ type: 'step.started', jobId: id, number: each, name: 'n' })),
  fc.tuple(jobId, number, conclusion).map(([id, each, how]): Body => ({
    type: 'step.completed',
    jobId: id,
    number: each,
    name: 'n',
    conclusion: how,
    outcome: how,
    outputs: {},
  })),
  jobId.map((id): Body => ({
    type: 'annotation',
    annotation: { level: 'notice', message: 'm', jobId: id },
  })),
  fc.tuple(jobId, number).map(([id, each]): Body => ({ type: 'summary', jobId: id, number: each })),
);
/** Random records, and the ones that finish what is open, so that reruns come about. */
const move = fc.oneof(
  { weight: 12, arbitrary: body },
  { weight: 1, arbitrary: fc.constant('finish' as const) },
);

function timeOf(index: number): string {
  return new Date(Date.UTC(2026, 0, 1) + index * 7).toISOString();
}

function plain(state: RunState): string {
  return JSON.stringify([state.phase, snapshotOf(state)]);
}

/** The records that complete every open step, job and the run itself. */
function finishing(state: RunState): Body[] {
  const bodies: Body[] = [];
  for (const { job } of state.jobs.values()) {
    if (job.status === 'completed') continue;
    for (const step of job.steps) {
      if (step.status === 'completed') continue;
      const how = { conclusion: 'cancelled', outcome: 'cancelled', outputs: {} } as const;
      const { number: each, name } = step;
      bodies.push({ type: 'step.completed', jobId: job.id, number: each, name, ...how });
    }
    const how = { conclusion: 'success', result: 'success', outputs: {} } as const;
    bodies.push({ type: 'job.completed', jobId: job.id, ...how });
  }
  return bodies;
}

function expectInvariants(state: RunState): void {
  const run = runView(state);
  const isFinished = state.phase === 'finished';
  // I5 of the run
  expect(run.conclusion !== undefined, 'I5').toBe(isFinished);
  expect(isFinished, 'I5').toBe(['completed', 'failed', 'cancelled'].includes(run.status));
  expect(new Set(run.jobs.map((job) => job.id)).size, 'I10').toBe(run.jobs.length);
  for (const job of run.jobs) {
    if (isFinished) expect(job.status, 'I2').toBe('completed');
    if (job.status === 'in_progress') {
      expect(run.status, 'I3').toBe('in_progress');
      expect(run.startedAt, 'I3').toBeDefined();
    }
    expect(job.conclusion !== undefined, 'I5').toBe(job.status === 'completed');
    expect(job.attempt, 'I6').toBeLessThanOrEqual(run.attempt);
    const numbers = job.steps.map((step) => step.number);
    expect(numbers, 'I10').toEqual([...new Set(numbers)].sort((a, b) => a - b));
    for (const step of job.steps) {
      if (job.status === 'completed') expect(step.status, 'I2').toBe('completed');
      if (step.status === 'in_progress') expect(job.status, 'I4').toBe('in_progress');
      expect(step.conclusion !== undefined, 'I5').toBe(step.status === 'completed');
      expectTimes(step);
    }
    expectTimes(job);
  }
  expectTimes(run);
}

function expectTimes(part: {
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
}): void {
  if (part.startedAt === undefined || part.completedAt === undefined) {
    expect(part.durationMs, 'I5').toBeUndefined();
    return;
  }
  const duration = Date.parse(part.completedAt) - Date.parse(part.startedAt);
  expect(duration, 'I5').toBeGreaterThanOrEqual(0);
  expect(part.durationMs, 'I5').toBe(duration);
}

describe(`the state of a run (SEED=${SEED})`, () => {
  test('I1 to I10: random records keep the invariants, and replay of each prefix is the state', () => {
    let accepted = 0;
    let refused = 0;
    let reruns = 0;
    fc.assert(
      fc.property(fc.array(move, { maxLength: 100, size: 'max' }), (moves) => {
        const records: RunRecord[] = [queued(timeOf(0))];
        let state = applyRecord(undefined, records[0] as RunRecord);
        const states = [plain(state)];
        const attempt = (each: Body): void => {
          const record = { ...each, at: timeOf(records.length) } as RunRecord;
          const before = plain(state);
          const { phase, run } = state;
          try {
            state = applyRecord(state, record);
          } catch (error) {
            expect(error).toBeInstanceOf(RefusedRecord);
            expect(plain(state), 'I9').toBe(before);
            refused += 1;
            return;
          }
          accepted += 1;
          records.push(record);
          states.push(plain(state));
          if (phase === 'finished') expect(record.type, 'I1').toBe('run.rerun');
          if (state.phase === 'queued' && phase !== 'queued') {
            expect(record.type, 'I1').toBe('run.rerun');
          }
          const grown = record.type === 'run.rerun' ? 1 : 0;
          reruns += grown;
          expect(state.run.attempt, 'I6').toBe(run.attempt + grown);
          expectInvariants(state);
        };
        for (const each of moves) {
          if (each !== 'finish') {
            attempt(each);
            continue;
          }
          for (const ending of finishing(state)) attempt(ending);
          const how = conclusionOf(state);
          const wasOpen = state.phase !== 'finished';
          attempt({ type: 'run.completed', conclusion: how });
          if (wasOpen) expect(state.run.conclusion, 'I7').toBe(how);
        }
        // As the disk gives them back.
        const onDisk = records.map((record) => JSON.parse(JSON.stringify(record)) as RunRecord);
        let replayed: RunState | undefined;
        for (const [index, record] of onDisk.entries()) {
          replayed = applyRecord(replayed, record);
          expect(plain(replayed), 'I8').toBe(states[index]);
        }
      }),
      { seed: SEED, numRuns: 200 },
    );
    // The property is about something.
    expect(accepted).toBeGreaterThan(1000);
    expect(refused).toBeGreaterThan(1000);
    expect(reruns).toBeGreaterThan(10);
  });

  test('I8: a snapshot restores a finished run as it was', () => {
    let state = applyRecord(undefined, queued(timeOf(0)));
    for (const each of finishing(state)) state = applyRecord(state, { ...each, at: timeOf(1) });
    state = applyRecord(state, { type: 'run.completed', at: timeOf(2), conclusion: 'success' });
    const snapshot = JSON.parse(JSON.stringify(snapshotOf(state))) as ReturnType<typeof snapshotOf>;
    const restored = applyRecord(undefined, { type: 'snapshot', at: timeOf(3), state: snapshot });
    expect(plain(restored)).toBe(plain(state));
    const again: RunRecord = { type: 'run.rerun', at: timeOf(4), reset: ['a'] };
    expect(plain(applyRecord(restored, again))).toBe(plain(applyRecord(state, again)));
  });

  test('I7: cancel beats failure and timeout, which beat cancelled jobs, then success, then skipped', () => {
    expect(concludeRun(['success', 'failure'], true)).toBe('cancelled');
    expect(concludeRun(['cancelled', 'success'], true, true)).toBe('cancelled');
    expect(concludeRun(['cancelled', 'success'], false, true)).toBe('failure');
    expect(concludeRun(['success', 'cancelled', 'failure'], false)).toBe('failure');
    expect(concludeRun(['success', 'cancelled', 'skipped'], false)).toBe('cancelled');
    expect(concludeRun(['skipped', 'success'], false)).toBe('success');
    expect(concludeRun(['skipped'], false)).toBe('skipped');
    expect(concludeRun([], false)).toBe('skipped');
  });
});
