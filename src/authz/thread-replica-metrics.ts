import type { MetricStore } from '../observability/metric-store.ts';
import type { LocalReplicaFigures } from '../workers/slot/local-replicas.ts';

export type ThreadReplicaMetrics = {
  /** Adopts what is so now. */
  show(figures: LocalReplicaFigures): void;
};

/** What is shown of the replicas on the gateway's thread. */
export function createThreadReplicaMetrics(store: MetricStore): ThreadReplicaMetrics {
  const shards = store.gauge({
    name: 'gatehouse_thread_shards',
    help: 'Shards with a second index on the thread that serves HTTP.',
  });
  const bytes = store.gauge({
    name: 'gatehouse_thread_index_bytes',
    help: 'Memory of the indexes on the thread that serves HTTP, which gatehouse_index_bytes holds too.',
  });
  const checks = store.counters({
    name: 'gatehouse_thread_checks_total',
    help: 'Single Checks of shards with an index on the thread that serves HTTP: answered there, or left to a worker.',
  });
  const answered = checks.cell({ outcome: 'answered' });
  const left = checks.cell({ outcome: 'left' });
  return {
    show: (figures) => {
      shards.set(figures.shards);
      bytes.set(figures.indexBytes);
      answered.add(figures.answered - answered.value);
      left.add(figures.left - left.value);
    },
  };
}
