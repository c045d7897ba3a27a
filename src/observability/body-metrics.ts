import type { Counter } from 'prom-client';
import type { MetricStore } from './metric-store.ts';

/** Metrics of the memory of request bodies. */
export type BodyFigures = {
  readonly bytesMax: number;
  readonly heldBytes: number;
  /** By what was used up. */
  readonly counts: Readonly<Record<'refused' | 'cut', Readonly<Record<string, number>>>>;
};

/**
 * Registers metrics of a service, whose names begin with `prefix`: the memory of its request
 * bodies, and how many did not fit.
 */
export function registerBodyMetrics(
  store: MetricStore,
  prefix: string,
  figures: BodyFigures,
): void {
  const held = store.gauge({
    name: `${prefix}_body_memory_bytes`,
    help: 'Memory that request bodies hold.',
  });
  store
    .gauge({
      name: `${prefix}_body_memory_limit_bytes`,
      help: 'Memory that request bodies may hold together.',
    })
    .set(figures.bytesMax);
  const counters = {
    refused: store.counter({
      name: `${prefix}_bodies_refused_total`,
      help: 'Requests refused for their bodies, by the share of the memory that was used up; crumbs: they came in too small pieces.',
      labelNames: ['kind'],
    }),
    cut: store.counter({
      name: `${prefix}_bodies_cut_total`,
      help: 'Unfinished request bodies that had to make place for others, by the share of the memory that was used up.',
      labelNames: ['kind'],
    }),
  };
  const seen = new Map<string, number>();
  const show = (): void => {
    held.set(figures.heldBytes);
    for (const outcome of ['refused', 'cut'] as const) {
      for (const [kind, count] of Object.entries(figures.counts[outcome])) {
        const key = `${outcome} ${kind}`;
        counters[outcome].inc({ kind }, count - (seen.get(key) ?? 0));
        seen.set(key, count);
      }
    }
  };
  show();
  store.onCollect(show);
}

/** Reasons by which a message is refused before it is built. */
const MESSAGE_REFUSALS = ['BATCH_TOO_LARGE', 'FIELD_TOO_LARGE'];

/** Counts messages that hold more than they may, by reason; each reason has its series from the start, so that rates see the first one. */
export function createMessageRefusals(store: MetricStore, prefix: string): Counter {
  const refused = store.counter({
    name: `${prefix}_messages_refused_total`,
    help: 'Requests refused before they were built, since they hold more than they may, by reason.',
    labelNames: ['reason'],
  });
  for (const reason of MESSAGE_REFUSALS) refused.inc({ reason }, 0);
  return refused;
}
