import { assert } from '../../shared/assert.ts';
import { EventHub } from '../face/events/event-hub.ts';
import { LogFollower } from '../face/events/log-follower.ts';
import type { EventPublisher } from '../model/events.ts';
import type { RunStore } from '../model/storage.ts';
import type { Scheduler } from '../scheduler/run-service.ts';
import { EventFan } from './event-fan.ts';
import type { PartsBasis } from './parts-basis.ts';
import type { RunnerMetrics } from './runner-metrics.ts';

/** Takers of events, which the scheduler needs; two of them need the scheduler in turn. */
export type Announcers = {
  readonly hub: EventHub;
  readonly follower: LogFollower;
  /** Undefined where nobody can ask for them. */
  readonly metrics: RunnerMetrics | undefined;
  /** All of them, in the order in which they are told. */
  readonly events: EventPublisher;
  /** Hands the scheduler over, once it is there. */
  begin(runs: Scheduler): void;
};

export async function createAnnouncers(basis: PartsBasis, store: RunStore): Promise<Announcers> {
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
