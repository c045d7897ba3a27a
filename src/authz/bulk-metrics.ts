import type { MetricStore } from '../observability/metric-store.ts';
import type { BulkMetrics } from '../services/bulk/bulk-ports.ts';

const HELD_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1];

/** Series of the methods that move many tuples, all there from the start. */
export function createBulkMetrics(store: MetricStore): BulkMetrics {
  const exported = store.counter({
    name: 'gatehouse_tuples_exported_total',
    help: 'Tuples that StreamTuples sent.',
  });
  const imported = store.counter<'way'>({
    name: 'gatehouse_tuples_imported_total',
    help: 'Tuples that ImportTuples wrote: as a whole into an empty tenant, or in chunks.',
    labelNames: ['way'],
  });
  for (const way of ['whole', 'chunks']) imported.inc({ way }, 0);
  const deleted = store.counter({
    name: 'gatehouse_tuples_deleted_total',
    help: 'Tuples that DeleteTuples deleted.',
  });
  const held = store
    .histograms(
      {
        name: 'gatehouse_bulk_hold_seconds',
        help: 'How long a chunk of an import or a delete held the lock of its tenant.',
      },
      HELD_BOUNDS_SECONDS,
    )
    .cell({});
  const guarded = store.counter<'outcome'>({
    name: 'gatehouse_guarded_writes_total',
    help: 'Writes with preconditions or an idempotency key, by outcome.',
    labelNames: ['outcome'],
  });
  for (const outcome of ['written', 'replayed', 'refused']) guarded.inc({ outcome }, 0);
  return {
    exported: (tuples) => exported.inc(tuples),
    imported: (tuples, way) => imported.inc({ way }, tuples),
    deleted: (tuples) => deleted.inc(tuples),
    held: (seconds) => held.observe(seconds),
    guarded: (outcome) => guarded.inc({ outcome }),
  };
}
