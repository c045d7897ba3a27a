import type { ActivityStatus } from '../../model/run.ts';
import type { RunRecordType } from './journal-records.ts';

/** `cancelling`: cancel was asked for and jobs are still open. `finished` has a conclusion. */
export type RunPhase = 'queued' | 'in_progress' | 'cancelling' | 'finished';

/** The phase after the event; `refused` when the event cannot happen there. */
type EndedJob<Phase> = Phase | 'refused';
type Table<Phase extends string, Event extends string> = Readonly<
  Record<Phase, Readonly<Record<Event, EndedJob<Phase>>>>
>;

/** `run.queued` and `snapshot` make a state instead of changing one. */
export type RunEvent = Exclude<RunRecordType, 'run.queued' | 'snapshot'>;
export type JobEvent = 'job.started' | 'job.completed' | 'run.rerun' | 'jobs.planned' | 'steps';
export type StepEvent = 'step.started' | 'step.completed';

/** Every event in every phase of a run. A cell that is missing does not compile. */
export const RUN_TRANSITIONS: Table<RunPhase, RunEvent> = {
  queued: {
    'run.started': 'in_progress',
    'run.env': 'queued',
    'run.actions': 'refused',
    'run.approved': 'queued',
    'run.cancelRequested': 'cancelling',
    // A run that cannot be started ends without having started.
    'run.completed': 'finished',
    'run.rerun': 'refused',
    'jobs.planned': 'refused',
    'job.started': 'refused',
    'job.completed': 'queued',
    'steps.known': 'refused',
    'step.started': 'refused',
    'step.completed': 'refused',
    annotation: 'queued',
    summary: 'refused',
  },
  in_progress: {
    'run.started': 'refused',
    'run.env': 'in_progress',
    'run.actions': 'in_progress',
    'run.approved': 'refused',
    'run.cancelRequested': 'cancelling',
    'run.completed': 'finished',
    'run.rerun': 'refused',
    'jobs.planned': 'in_progress',
    'job.started': 'in_progress',
    'job.completed': 'in_progress',
    'steps.known': 'in_progress',
    'step.started': 'in_progress',
    'step.completed': 'in_progress',
    annotation: 'in_progress',
    summary: 'in_progress',
  },
  cancelling: {
    'run.started': 'refused',
    'run.env': 'cancelling',
    'run.actions': 'cancelling',
    'run.approved': 'refused',
    // The second call, which kills.
    'run.cancelRequested': 'cancelling',
    'run.completed': 'finished',
    'run.rerun': 'refused',
    // Jobs with always() are planned and started in a run that is being cancelled.
    'jobs.planned': 'cancelling',
    'job.started': 'cancelling',
    'job.completed': 'cancelling',
    'steps.known': 'cancelling',
    'step.started': 'cancelling',
    'step.completed': 'cancelling',
    annotation: 'cancelling',
    summary: 'cancelling',
  },
  finished: {
    'run.started': 'refused',
    'run.env': 'refused',
    'run.actions': 'refused',
    'run.approved': 'refused',
    'run.cancelRequested': 'refused',
    'run.completed': 'refused',
    'run.rerun': 'queued',
    'jobs.planned': 'refused',
    'job.started': 'refused',
    'job.completed': 'refused',
    'steps.known': 'refused',
    'step.started': 'refused',
    'step.completed': 'refused',
    annotation: 'refused',
    summary: 'refused',
  },
};

/** `steps`: anything that happens to the steps of a job. */
export const JOB_TRANSITIONS: Table<ActivityStatus, JobEvent> = {
  queued: {
    'job.started': 'in_progress',
    // Skipped, cancelled before it started, or impossible to start.
    'job.completed': 'completed',
    'run.rerun': 'queued',
    'jobs.planned': 'queued',
    steps: 'refused',
  },
  in_progress: {
    'job.started': 'refused',
    'job.completed': 'completed',
    'run.rerun': 'refused',
    'jobs.planned': 'refused',
    steps: 'in_progress',
  },
  completed: {
    'job.started': 'refused',
    'job.completed': 'refused',
    'run.rerun': 'queued',
    'jobs.planned': 'refused',
    steps: 'refused',
  },
};

export const STEP_TRANSITIONS: Table<ActivityStatus, StepEvent> = {
  queued: { 'step.started': 'in_progress', 'step.completed': 'completed' },
  in_progress: { 'step.started': 'refused', 'step.completed': 'completed' },
  completed: { 'step.started': 'refused', 'step.completed': 'refused' },
};
