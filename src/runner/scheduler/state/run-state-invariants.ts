import { assert } from '../../../shared/assert.ts';
import type { Job, Step } from '../../model/run.ts';
import { STATUS_OF_CONCLUSION, type RunState } from './run-state.ts';

/**
 * Throws when the state breaks one of the invariants of run-state.ts that a state alone shows: I2 to I6 and I10.
 * For after a record was applied; O(steps of the run), so behind DEBUG_ASSERTIONS.
 */
export function assertRunState({ phase, run, jobs }: RunState): void {
  const isFinished = phase === 'finished';
  assert((run.conclusion !== undefined) === isFinished, 'I5: a finished run has a conclusion');
  const isOver = run.status !== 'queued' && run.status !== 'in_progress';
  assert(isOver === isFinished, 'I5: the status of a run says whether it is finished');
  if (run.conclusion !== undefined) {
    assert(run.status === STATUS_OF_CONCLUSION[run.conclusion], 'I5: the status is its conclusion');
  }
  assertTimes(run);
  for (const [id, { job }] of jobs) {
    assert(job.id === id, 'I10: a job is found by its id');
    assert(job.attempt <= run.attempt, 'I6: no job is of a later attempt than its run');
    if (isFinished)
      assert(job.status === 'completed', 'I2: a finished run has completed jobs only');
    if (job.status === 'in_progress') {
      assert(run.startedAt !== undefined, 'I3: a job in progress lies in a run that was started');
    }
    assertJob(job);
  }
}

function assertJob(job: Job): void {
  const isCompleted = job.status === 'completed';
  assert((job.conclusion !== undefined) === isCompleted, 'I5: a completed job has a conclusion');
  assertTimes(job);
  let last = Number.NEGATIVE_INFINITY;
  for (const step of job.steps) {
    assert(step.number > last, 'I10: steps stand in the order of their numbers');
    last = step.number;
    assertStep(step, job);
  }
}

function assertStep(step: Step, job: Job): void {
  const isCompleted = step.status === 'completed';
  assert((step.conclusion !== undefined) === isCompleted, 'I5: a completed step has a conclusion');
  if (job.status === 'completed') assert(isCompleted, 'I2: a completed job has completed steps');
  if (step.status === 'in_progress') {
    assert(job.status === 'in_progress', 'I4: a step in progress lies in a job in progress');
  }
  assertTimes(step);
}

function assertTimes(part: {
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
}): void {
  const { startedAt, completedAt, durationMs } = part;
  const isMeasured = startedAt !== undefined && completedAt !== undefined;
  assert((durationMs !== undefined) === isMeasured, 'I5: what began and ended has a duration');
  assert(durationMs === undefined || durationMs >= 0, 'I5: nothing ends before it began');
}
