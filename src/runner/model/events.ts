import type { Job, Step, WorkflowRun } from './run.ts';

/** The events of GET /api/events but `ping`, `gap` and `reset`, which the stream itself makes. */
export type RunnerEvent =
  | { readonly type: 'run.started'; readonly runId: string; readonly run: WorkflowRun }
  | { readonly type: 'run.completed'; readonly runId: string; readonly run: WorkflowRun }
  | {
      readonly type: 'job.started';
      readonly runId: string;
      readonly jobId: string;
      readonly job: Job;
    }
  | {
      readonly type: 'job.completed';
      readonly runId: string;
      readonly jobId: string;
      readonly job: Job;
    }
  | {
      readonly type: 'step.started' | 'step.completed';
      readonly runId: string;
      readonly jobId: string;
      readonly stepNumber: number;
      /** `log` is ''. */
      readonly step: Step;
    }
  | {
      readonly type: 'step.log';
      readonly runId: string;
      readonly jobId: string;
      readonly stepNumber: number;
      /** Masked, without line break. */
      readonly line: string;
    };

export type RunnerEventType = RunnerEvent['type'];

/**
 * Emits events that are already on disk, to the event streams. `publish` never blocks, never
 * throws, costs O(1) plus O(subscribers) of buffering.
 */
export interface EventPublisher {
  publish(event: RunnerEvent): void;
  /** Many lines of one step at once; the hot path of a chatty step. */
  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void;
}
