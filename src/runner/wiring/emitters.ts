import { assert } from '../../shared/assert.ts';
import { EventHub } from '../events/event-hub.ts';
import { LogFollower } from '../events/log-follower.ts';
import type { EventPublisher, RunnerEvent } from '../model/events.ts';
import type { RunStore } from '../model/storage.ts';
import type { Scheduler } from '../scheduler/run-service.ts';
import type { RunnerMetrics } from './runner-metrics.ts';
import type { WiringBasis } from './wiring-basis.ts';

/** Takers of events, which the scheduler needs; two of them need the scheduler in turn. */
export type Emitters = {
  readonly hub: EventHub;
  readonly follower: LogFollower;
  /** Undefined where nobody can ask for them. */
  readonly metrics: RunnerMetrics | undefined;
  /** All of them, in the order in which they are reported. */
  readonly events: EventPublisher;
  /** Hands the scheduler over, once it is there. */
  begin(runs: Scheduler): void;
};

export async function createEmitters(basis: WiringBasis, store: RunStore): Promise<Emitters> {
  const { settings, version, pingMs } = basis;
  let scheduler: Scheduler | undefined;
  const runs = (): Scheduler => {
    // Nobody can ask before the listeners are bound.
    assert(scheduler !== undefined, 'the scheduler is there when it is asked for');
    return scheduler;
  };
  const hub = new EventHub({
    subscribersMax: settings.maxSubscribers,
    bufferBytesMax: settings.subscriberBufferBytes,
    pingMs,
  });
  const follower = new LogFollower(runs, (...place) => store.readLog(...place));
  const metrics =
    basis.hasMetrics === false
      ? undefined
      : new (await import('./runner-metrics.ts')).RunnerMetrics({
          counts: () => runs().counts(),
          refused: () => runs().refusedCount,
          hub: () => hub.stats,
          build: { version, commit: settings.commit },
          queuedMax: settings.maxQueuedRuns,
          activeMax: settings.maxConcurrentRuns,
        });
  const takers = [hub, follower, metrics, basis.events].filter((taker) => taker !== undefined);
  return {
    hub,
    follower,
    metrics,
    events: new EventFan(takers),
    begin: (started) => {
      scheduler = started;
    },
  };
}

/** Hands every event to several takers, in the order in which they were given. */
class EventFan implements EventPublisher {
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
