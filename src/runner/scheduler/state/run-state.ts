import type { JsonObject } from '../../../shared/json.ts';
/**
 * SPEC of the state of a run.
 *
 * States: a run is queued, in_progress, cancelling or finished; a job and a step are queued, in_progress
 * or completed. Events: the records of journal-records.ts. Transitions: run-state-transitions.ts.
 *
 * Invariants:
 * I1  A run leaves `finished` by a rerun only; `queued` is entered by creation and rerun only.
 *     [run-state.test.ts]
 * I2  A finished run has completed jobs only; a completed job has completed steps only.
 *     [run-state.test.ts]
 * I3  A job in progress lies in a run that was started and is not finished. [run-state.test.ts]
 * I4  A step in progress lies in a job in progress. [run-state.test.ts]
 * I5  A conclusion stands exactly on what is finished or completed; completedAt >= startedAt, and
 *     durationMs is their difference. [run-state.test.ts]
 * I6  attempt grows by one with each rerun, and no job's attempt is beyond the run's.
 *     [run-state.test.ts]
 * I7  The conclusion of a finished run follows from the results of its jobs, and from whether one timed
 *     out or cancel was asked for (concludeRun), but for a run that could not be started. [run-state.test.ts]
 * I8  Applying the records of a journal to nothing gives the state of the run that wrote them, for
 *     each prefix. Recovery is this. [run-state.test.ts]
 * I9  A refused record changes nothing. [run-state.test.ts]
 * I10 Job ids are unique, and steps stand in the order of their numbers, which are unique.
 *     [run-state.test.ts]
 *
 * Of the events:
 * I11 What is emitted is on disk, and get() shows what is on disk only.
 *     [test/runner/scheduler/announcements.test.ts]
 * I12 Per run: run.started < job.started < step.started < step.log* < step.completed <
 *     job.completed < run.completed; what was skipped is completed without having been started.
 *     [test/runner/scheduler/announcements.test.ts]
 *
 * Constraints on many runs:
 * C1  At most so many runs and jobs are in progress, and runs take turns.
 *     [test/runner/scheduler/limits.test.ts]
 * C2  Of a concurrency group one member goes on; nobody waits for itself or in a circle.
 *     [test/runner/scheduler/concurrency.test.ts]
 * C3  After kill -9 at any instant: what was emitted stands, nothing is in progress, queued runs
 *     go on. [test/runner/faults/scheduler-kill.host.test.ts]
 */
import type { Annotation, Conclusion, Job, RunStatus, WorkflowRun } from '../../model/run.ts';
import type {
  JobEntry,
  PlannedJob,
  RunRequest,
  RunSnapshot,
  SummaryMark,
} from './journal-records.ts';
import type { RunPhase } from './run-state-transitions.ts';

/** One run. Only applyRecord changes it; the objects inside are replaced, never changed. */
export type RunState = {
  phase: RunPhase;
  run: Omit<WorkflowRun, 'jobs'>;
  readonly request: RunRequest;
  /** By job id, in the order shown. */
  jobs: Map<string, JobEntry>;
  annotations: Annotation[];
  summaries: SummaryMark[];
  /** When it was queued last; the order of the queue. */
  queuedAt: string;
  /** The last answer of runView, while nothing changed. */
  view: WorkflowRun | undefined;
};

/** How the wire calls a finished run of each conclusion. */
export const STATUS_OF_CONCLUSION: Readonly<Record<Conclusion, RunStatus>> = {
  success: 'completed',
  skipped: 'completed',
  failure: 'failed',
  cancelled: 'cancelled',
};

/** The status on the wire (§2.1): a run that is cancelled before it started stays queued until it ends. */
export function statusOf(
  phase: RunPhase,
  conclusion: Conclusion | undefined,
  hasStarted: boolean,
): RunStatus {
  if (phase === 'finished') return STATUS_OF_CONCLUSION[conclusion ?? 'failure'];
  if (phase === 'queued') return 'queued';
  return hasStarted ? 'in_progress' : 'queued';
}

/** The run as the wire shows it, steps without logs. Cost: O(jobs) after a change, else O(1). */
export function runView(state: RunState): WorkflowRun {
  state.view ??= { ...state.run, jobs: Array.from(state.jobs.values(), (entry) => entry.job) };
  return state.view;
}

/**
 * What a run comes to: cancelled when that was asked for, a failure when a job timed out, else the worst
 * result of its jobs; skipped when all were.
 */
export function concludeRun(
  results: Iterable<Conclusion | undefined>,
  isCancelRequested: boolean,
  hasTimedOut = false,
): Conclusion {
  if (isCancelRequested) return 'cancelled';
  if (hasTimedOut) return 'failure';
  let worst: Conclusion = 'skipped';
  for (const result of results) {
    if (result === 'failure') return 'failure';
    if (result === 'cancelled') worst = 'cancelled';
    else if (result === 'success' && worst === 'skipped') worst = 'success';
  }
  return worst;
}

/** A job that waits. */
export function queuedJob(planned: PlannedJob, attempt: number): Job {
  const matrix: JsonObject | undefined = planned.matrix;
  return {
    id: planned.id,
    name: planned.name,
    status: 'queued',
    steps: [],
    outputs: {},
    needs: planned.needs,
    ...(matrix === undefined ? {} : { matrix }),
    attempt,
  };
}

/** The state as plain data, for compaction. Cost: O(jobs). */
export function snapshotOf(state: RunState): RunSnapshot {
  return {
    run: state.run,
    request: state.request,
    jobs: [...state.jobs.values()],
    annotations: state.annotations,
    summaries: state.summaries,
    queuedAt: state.queuedAt,
  };
}
