import type { Gauge } from 'prom-client';
import type { MetricStore } from '../observability/metric-store.ts';
import type { ReadIndexMetrics } from '../services/read-index.ts';

/** 100 µs to 2.5 s: a query that finds nothing new lies at the low end. */
const DURATION_BOUNDS_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];
const READ_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000];

export type IndexMetrics = ReadIndexMetrics & {
  settingsReloaded(): void;
  /** Reads that wait now. */
  readonly waiting: Gauge;
};

/** What is counted of the read index. */
export function createIndexMetrics(store: MetricStore): IndexMetrics {
  const queries = store.counters({
    name: 'gatehouse_read_index_queries_total',
    help: 'Queries for the heads of shards, by outcome.',
  });
  const answered = queries.cell({ outcome: 'answered' });
  const failed = queries.cell({ outcome: 'failed' });
  const reads = store
    .histograms(
      { name: 'gatehouse_read_index_reads', help: 'Reads that one query served.' },
      READ_BOUNDS,
    )
    .cell({});
  const duration = store
    .histograms(
      {
        name: 'gatehouse_read_index_duration_seconds',
        help: 'Queries for the heads of shards, from their sending to their answer.',
      },
      DURATION_BOUNDS_SECONDS,
    )
    .cell({});
  const counter = (name: string, help: string) => store.counters({ name, help }).cell({});
  const stalls = counter(
    'gatehouse_read_index_stalls_total',
    'Queries that were not answered promptly; the other connection served.',
  );
  const carried = counter(
    'gatehouse_read_index_carried_rows_total',
    'Change rows that came with the heads of shards.',
  );
  const lost = counter(
    'gatehouse_read_index_histories_lost_total',
    'Shards whose known position was not in the history that PostgreSQL holds.',
  );
  const reloads = counter(
    'gatehouse_read_index_settings_reloads_total',
    'Reads that found the settings of their project old, and loaded newer ones.',
  );
  return {
    answered: (count, seconds) => {
      answered.add(1);
      reads.observe(count);
      duration.observe(seconds);
    },
    failed: () => failed.add(1),
    stalled: () => stalls.add(1),
    carried: (rows) => carried.add(rows),
    historyLost: () => lost.add(1),
    settingsReloaded: () => reloads.add(1),
    waiting: store.gauge({
      name: 'gatehouse_read_index_parked_reads',
      help: 'Reads that wait for the head of their shard.',
    }),
  };
}
