import { assert, DEBUG_ASSERTIONS } from '../../../shared/assert.ts';
import type { Conclusion, Job, Step, WorkflowRun } from '../../model/run.ts';
import type {
  JobEntry,
  RunRecord,
  RunRecordType,
  RunRequest,
  RunSnapshot,
} from './journal-records.ts';
import { assertRunState } from './run-state-invariants.ts';
import {
  JOB_TRANSITIONS,
  RUN_TRANSITIONS,
  STEP_TRANSITIONS,
  type JobEvent,
  type RunEvent,
  type StepEvent,
} from './run-state-transitions.ts';
import { concludeRun, queuedJob, statusOf, type RunState } from './run-state.ts';

/** The record cannot happen in this state. The state is unchanged (I9). */
export class RefusedRecord extends Error {
  constructor(type: RunRecordType, why: string) {
    super(`${type} refused: ${why}`);
    this.name = 'RefusedRecord';
  }
}

type RecordOf<Type extends RunRecordType> = Extract<RunRecord, { readonly type: Type }>;
type RecordHandlers = {
  readonly [Type in RunEvent]: (state: RunState, record: RecordOf<Type>) => void;
};

/**
 * Applies one record: `state` itself is changed and answered; a new one is made for `run.queued` and
 * `snapshot`. The live run and recovery both use this, so that replay is the same function (I8).
 * Errors: RefusedRecord, before anything changed. Cost: O(steps of the job); planning and rerun O(jobs).
 */
export function applyRecord(state: RunState | undefined, record: RunRecord): RunState {
  if (record.type === 'run.queued') return createState(state, record);
  if (record.type === 'snapshot') return restoreState(record.state);
  if (state === undefined) throw new RefusedRecord(record.type, 'there is no run yet');
  const next = RUN_TRANSITIONS[state.phase][record.type];
  if (next === 'refused') throw new RefusedRecord(record.type, `the run is ${state.phase}`);
  // The handler of a type takes records of that type; the compiler cannot see the correlation.
  (HANDLERS[record.type] as (state: RunState, record: RunRecord) => void)(state, record);
  state.phase = next;
  const { conclusion, startedAt } = state.run;
  const status = statusOf(next, conclusion, startedAt !== undefined);
  state.run = { ...state.run, status, updatedAt: record.at };
  state.view = undefined;
  if (DEBUG_ASSERTIONS) assertRunState(state);
  return state;
}

function createState(state: RunState | undefined, record: RecordOf<'run.queued'>): RunState {
  if (state !== undefined) throw new RefusedRecord(record.type, 'the run exists');
  const jobs = new Map<string, JobEntry>();
  for (const planned of record.jobs) {
    if (jobs.has(planned.id)) throw new RefusedRecord(record.type, 'a job id twice');
    jobs.set(planned.id, { job: queuedJob(planned, 1), node: planned.node });
  }
  return {
    phase: 'queued',
    run: {
      ...record.run,
      attempt: 1,
      status: 'queued',
      updatedAt: record.at,
      ...waitOf(record.request, undefined),
    },
    request: record.request,
    jobs,
    annotations: [...record.annotations],
    summaries: [],
    queuedAt: record.at,
    view: undefined,
  };
}

function restoreState(snapshot: RunSnapshot): RunState {
  return {
    phase: 'finished',
    run: snapshot.run,
    request: snapshot.request,
    jobs: new Map(snapshot.jobs.map((entry) => [entry.job.id, entry])),
    annotations: [...snapshot.annotations],
    summaries: [...snapshot.summaries],
    queuedAt: snapshot.queuedAt,
    view: undefined,
  };
}

/** Approval is given once for a run: its reruns have the same commit and the same files. */
function waitOf(
  { fork }: RunRequest,
  approvedAt: string | undefined,
): Pick<WorkflowRun, 'waitingFor'> {
  const isWaiting = fork?.needsApproval === true && approvedAt === undefined;
  return isWaiting ? { waitingFor: 'approval' } : {};
}

function withoutWait(run: RunState['run']): RunState['run'] {
  const { waitingFor, ...rest } = run;
  return waitingFor === undefined ? run : rest;
}

const HANDLERS: RecordHandlers = {
  'run.approved': (state, record) => {
    if (state.run.waitingFor === undefined) {
      throw new RefusedRecord('run.approved', 'the run does not wait for it');
    }
    state.run = { ...withoutWait(state.run), approvedAt: record.at };
  },
  'run.started': (state, record) => {
    if (state.run.waitingFor !== undefined) {
      throw new RefusedRecord('run.started', 'the run waits for approval');
    }
    state.run = { ...state.run, sandbox: record.sandbox, startedAt: record.at };
  },
  'run.env': (state, record) => {
    state.run = { ...state.run, env: record.env };
  },
  'run.actions': (state, record) => {
    state.run = { ...state.run, actions: record.actions };
  },
  'run.cancelRequested': (state, record) => {
    const cancelRequestedAt = state.run.cancelRequestedAt ?? record.at;
    state.run = { ...state.run, cancelRequestedAt };
  },
  'run.completed': (state, record) => {
    for (const { job } of state.jobs.values()) {
      if (job.status !== 'completed') throw new RefusedRecord(record.type, `${job.id} is open`);
    }
    state.run = {
      ...withoutWait(state.run),
      conclusion: record.conclusion,
      completedAt: record.at,
      ...durationOf(state.run.startedAt, record.at),
    };
  },
  'run.rerun': rerun,
  'jobs.planned': planJobs,
  'job.started': (state, record) => {
    const entry = entryOf(state, record, 'job.started');
    if (state.run.startedAt === undefined) {
      throw new RefusedRecord(record.type, 'the run was not started');
    }
    replaceJob(state, entry, {
      ...entry.job,
      name: record.name,
      status: 'in_progress',
      attempt: state.run.attempt,
      startedAt: record.at,
      ...(record.environment === undefined ? {} : { environment: { name: record.environment } }),
      ...(record.sandbox === undefined ? {} : { sandbox: record.sandbox }),
    });
  },
  'job.completed': completeJob,
  'steps.known': (state, record) => {
    const entry = entryOf(state, record, 'steps');
    const steps = new Map(entry.job.steps.map((step) => [step.number, step]));
    for (const { number, name, id } of record.steps) {
      const known = steps.get(number);
      if (known !== undefined && known.status !== 'queued') continue;
      steps.set(number, {
        number,
        name,
        ...(id === undefined ? {} : { id }),
        status: 'queued',
        log: '',
        outputs: {},
      });
    }
    const inOrder = [...steps.values()].sort((a, b) => a.number - b.number);
    replaceJob(state, entry, { ...entry.job, steps: inOrder });
  },
  'step.started': (state, record) => {
    replaceStep(state, record, 'step.started', (step) => ({
      ...step,
      name: record.name,
      status: 'in_progress',
      startedAt: record.at,
    }));
  },
  'step.completed': (state, record) => {
    replaceStep(state, record, 'step.completed', (step) => ({
      ...step,
      name: record.name,
      status: 'completed',
      conclusion: record.conclusion,
      outcome: record.outcome,
      outputs: record.outputs,
      completedAt: record.at,
      ...durationOf(step.startedAt, record.at),
    }));
  },
  annotation: (state, record) => {
    state.annotations.push(record.annotation);
  },
  summary: (state, record) => {
    entryOf(state, record, 'steps');
    const { jobId, number } = record;
    if (state.summaries.some((mark) => mark.jobId === jobId && mark.number === number)) return;
    state.summaries.push({ jobId, number });
  },
};

function completeJob(state: RunState, record: RecordOf<'job.completed'>): void {
  const entry = entryOf(state, record, 'job.completed');
  const open = entry.job.steps.find((step) => step.status !== 'completed');
  if (open !== undefined) throw new RefusedRecord(record.type, `step ${open.number} is open`);
  const { environment, startedAt } = entry.job;
  const url = record.environmentUrl;
  const job: Job = {
    ...entry.job,
    status: 'completed',
    conclusion: record.conclusion,
    outputs: record.outputs,
    attempt: state.run.attempt,
    completedAt: record.at,
    ...durationOf(startedAt, record.at),
    ...(environment === undefined || url === undefined
      ? {}
      : { environment: { ...environment, url } }),
  };
  const { result, hasTimedOut } = record;
  state.jobs.set(job.id, {
    job,
    node: entry.node,
    result,
    ...(hasTimedOut === true ? { hasTimedOut } : {}),
  });
}

function rerun(state: RunState, record: RecordOf<'run.rerun'>): void {
  const reset = new Set(record.reset);
  for (const id of reset) entryOf(state, { type: record.type, jobId: id }, 'run.rerun');
  const attempt = state.run.attempt + 1;
  for (const [id, { job, node }] of state.jobs) {
    if (!reset.has(id)) continue;
    state.jobs.set(id, { job: queuedJob({ ...job, node }, attempt), node });
  }
  // What the last attempt as a whole came to is gone; of its jobs the kept ones speak.
  const { id, workflow, fileName, name, runNumber, numericId, createdAt, trigger } = state.run;
  const { inputs, approvedAt } = state.run;
  state.run = {
    id,
    workflow,
    fileName,
    name,
    runNumber,
    ...(numericId === undefined ? {} : { numericId }),
    attempt,
    status: 'queued',
    createdAt,
    updatedAt: record.at,
    trigger,
    ...(approvedAt === undefined ? {} : { approvedAt }),
    ...waitOf(state.request, approvedAt),
    ...(inputs === undefined ? {} : { inputs }),
    ...(state.run.env === undefined ? {} : { env: state.run.env }),
  };
  const isKept = (jobId: string | undefined): boolean => jobId !== undefined && !reset.has(jobId);
  state.annotations = state.annotations.filter((annotation) => isKept(annotation.jobId));
  state.summaries = state.summaries.filter((mark) => isKept(mark.jobId));
  state.queuedAt = record.at;
}

/** True when `candidate` is `node` or lies below it (in a called workflow). */
export function isAtOrBelow(candidate: string, node: string): boolean {
  return candidate === node || candidate.startsWith(`${node}/`) || candidate.startsWith(`${node}:`);
}

function planJobs(state: RunState, record: RecordOf<'jobs.planned'>): void {
  const jobs = new Map<string, JobEntry>();
  const planned = new Set(record.jobs.map((job) => job.id));
  assert(planned.size === record.jobs.length, 'planned jobs have ids of their own');
  const insert = (): void => {
    for (const job of record.jobs) {
      const known = state.jobs.get(job.id);
      // A matrix job that is kept from an earlier attempt stays as it is.
      const isKept = known !== undefined && known.job.status === 'completed';
      const entry = { job: queuedJob(job, state.run.attempt), node: job.node };
      jobs.set(job.id, isKept ? known : entry);
    }
  };
  let isInserted = false;
  for (const [id, entry] of state.jobs) {
    if (!isAtOrBelow(entry.node, record.node)) {
      if (planned.has(id)) throw new RefusedRecord(record.type, `${id} exists`);
      jobs.set(id, entry);
      continue;
    }
    if (JOB_TRANSITIONS[entry.job.status]['jobs.planned'] === 'refused' && !planned.has(id)) {
      throw new RefusedRecord(record.type, `${id} is ${entry.job.status}`);
    }
    if (entry.job.status === 'in_progress') throw new RefusedRecord(record.type, `${id} runs`);
    if (!isInserted) insert();
    isInserted = true;
  }
  if (!isInserted) insert();
  state.jobs = jobs;
}

function entryOf(
  state: RunState,
  record: { readonly type: RunRecordType; readonly jobId: string },
  event: JobEvent,
): JobEntry {
  const entry = state.jobs.get(record.jobId);
  if (entry === undefined) throw new RefusedRecord(record.type, 'no such job');
  if (JOB_TRANSITIONS[entry.job.status][event] === 'refused') {
    throw new RefusedRecord(record.type, `${record.jobId} is ${entry.job.status}`);
  }
  return entry;
}

function replaceJob(state: RunState, entry: JobEntry, job: Job): void {
  state.jobs.set(job.id, { ...entry, job });
}

function replaceStep(
  state: RunState,
  record: RecordOf<'step.started' | 'step.completed'>,
  event: StepEvent,
  change: (step: Step) => Step,
): void {
  const entry = entryOf(state, record, 'steps');
  const index = entry.job.steps.findIndex((step) => step.number === record.number);
  const step = entry.job.steps[index];
  if (step === undefined) throw new RefusedRecord(record.type, 'no such step');
  if (STEP_TRANSITIONS[step.status][event] === 'refused') {
    throw new RefusedRecord(record.type, `step ${step.number} is ${step.status}`);
  }
  replaceJob(state, entry, { ...entry.job, steps: entry.job.steps.with(index, change(step)) });
}

function durationOf(
  startedAt: string | undefined,
  completedAt: string,
): { readonly durationMs?: number } {
  if (startedAt === undefined) return {};
  return { durationMs: Math.max(0, Date.parse(completedAt) - Date.parse(startedAt)) };
}

/** The conclusion that follows from the jobs as they are (I7). */
export function conclusionOf(state: RunState): Conclusion {
  const entries = [...state.jobs.values()];
  return concludeRun(
    entries.map(({ result }) => result),
    state.run.cancelRequestedAt !== undefined,
    entries.some(({ hasTimedOut }) => hasTimedOut === true),
  );
}
