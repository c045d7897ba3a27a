import type { Gauge } from 'prom-client';
import type { MetricStore } from '../observability/metric-store.ts';
import type { DatabaseTime } from '../shared/database-clock.ts';

/** How well the database's time is known. */
export type ClockMetrics = {
  readonly clock: Readonly<Record<'uncertainty' | 'offset' | 'held' | 'steps', Gauge>>;
};

export function createClockMetrics(store: MetricStore): ClockMetrics {
  const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
  return {
    clock: {
      uncertainty: gauge(
        'gatehouse_clock_uncertainty_seconds',
        "How far from the database's the time may be by which expiry is decided.",
      ),
      offset: gauge(
        'gatehouse_clock_offset_seconds',
        "What the database's clock shows more than the wall clock of this machine.",
      ),
      held: gauge(
        'gatehouse_clock_held_seconds',
        'For how long time stands still, since the clock of the database went back.',
      ),
      steps: gauge(
        'gatehouse_clock_steps',
        'How often the clock of the database was found to have been set since the start.',
      ),
    },
  };
}

/** Sets the gauges to how it stands now. */
export function showClock({ clock }: ClockMetrics, time: DatabaseTime): void {
  clock.uncertainty.set(time.uncertaintyMs / 1000);
  clock.offset.set(time.wallOffsetMs / 1000);
  clock.held.set(time.heldMs / 1000);
  clock.steps.set(time.steps);
}
