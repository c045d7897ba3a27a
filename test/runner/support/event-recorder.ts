import type { EventPublisher, RunnerEvent } from '../../../src/runner/model/events.ts';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';

type Waiter = { readonly isMet: (event: RunnerEvent) => boolean; readonly resolve: () => void };

/** Keeps everything that is announced, in order. */
export class EventRecorder implements EventPublisher {
  readonly events: RunnerEvent[] = [];
  readonly #waiters = new Set<Waiter>();
  /** Called with each event, before it is kept. */
  onEvent: ((event: RunnerEvent) => void) | undefined;

  publish(event: RunnerEvent): void {
    this.onEvent?.(event);
    this.events.push(event);
    for (const waiter of this.#waiters) {
      if (!waiter.isMet(event)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void {
    for (const line of lines) this.publish({ type: 'step.log', runId, jobId, stepNumber, line });
  }

  /** Resolves with the first event, past or coming, that `isMet` takes. */
  when(isMet: (event: RunnerEvent) => boolean): Promise<void> {
    if (this.events.some(isMet)) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.add({ isMet, resolve }));
  }

  /** The run as it was announced with its end; of the last attempt when there were several. */
  async completed(runId: string, attempt = 1): Promise<WorkflowRun> {
    const isEnd = (event: RunnerEvent): boolean =>
      event.type === 'run.completed' && event.runId === runId && event.run.attempt >= attempt;
    await this.when(isEnd);
    const end = this.events.findLast(isEnd);
    if (end?.type !== 'run.completed') throw new Error('the run did not end');
    return end.run;
  }

  /** `type jobId#step` of the events of a run but the log lines, in order. */
  story(runId: string): readonly string[] {
    return this.events.flatMap((event) => {
      if (event.runId !== runId || event.type === 'step.log') return [];
      if (event.type === 'run.started' || event.type === 'run.completed') return [event.type];
      const step = 'stepNumber' in event ? `#${event.stepNumber}` : '';
      return [`${event.type} ${event.jobId}${step}`];
    });
  }

  /** The lines announced of a step. */
  lines(runId: string, jobId: string, stepNumber: number): readonly string[] {
    return this.events.flatMap((event) =>
      event.type === 'step.log' &&
      event.runId === runId &&
      event.jobId === jobId &&
      event.stepNumber === stepNumber
        ? [event.line]
        : [],
    );
  }
}
