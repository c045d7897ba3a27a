import type { EventPublisher, RunnerEvent } from '../model/events.ts';

/** Hands every event to several takers, in the order in which they were given. */
export class EventFan implements EventPublisher {
  readonly #takers: readonly EventPublisher[];

  constructor(takers: readonly EventPublisher[]) {
    this.#takers = takers;
  }

  publish(event: RunnerEvent): void {
    for (const taker of this.#takers) taker.publish(event);
  }

  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void {
    for (const taker of this.#takers) taker.publishLog(runId, jobId, stepNumber, lines);
  }
}
