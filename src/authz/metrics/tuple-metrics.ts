import type { MetricStore } from '../../observability/metric-store.ts';
import type { BulkMetrics } from '../../services/bulk/bulk-ports.ts';
import type { WatchMetrics } from '../../services/watch/tuple-watch.ts';
import { recordOf } from '../../shared/record.ts';

const HELD_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1];
const LAG_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30];

/** Series of tuples that are moved in numbers, written in vain, and followed. */
export function createTupleMetrics(store: MetricStore) {
  const undecidable = store.counters({
    name: 'gatehouse_undecidable_tuples_total',
    help: 'Tuples written whose condition is not known or lacks what it needs: they grant nothing.',
  });
  const stalledStreams = store.counter({
    name: 'gatehouse_stalled_streams_total',
    help: 'Streams that ended since their readers took nothing for too long, by method.',
    labelNames: ['method'],
  });
  for (const method of ['StreamTuples', 'Watch']) stalledStreams.inc({ method }, 0);
  return {
    /** Outside of models with conditions of their own. */
    undecidableTuples: recordOf(['condition_name', 'condition_params'], (field) =>
      undecidable.cell({ field }),
    ),
    stalledStreams,
    bulk: bulkMetrics(store),
    watch: watchMetrics(store),
  };
}

/** Methods that move many tuples. */
function bulkMetrics(store: MetricStore): BulkMetrics {
  const counter = (name: string, help: string) => store.counters({ name, help }).cell({});
  const exported = counter('gatehouse_tuples_exported_total', 'Tuples that StreamTuples sent.');
  const deleted = counter('gatehouse_tuples_deleted_total', 'Tuples that DeleteTuples deleted.');
  const imports = store.counters({
    name: 'gatehouse_tuples_imported_total',
    help: 'Tuples that ImportTuples wrote: as a whole into an empty tenant, or in chunks.',
  });
  const imported = recordOf(['whole', 'chunks'], (way) => imports.cell({ way }));
  const hold = {
    name: 'gatehouse_bulk_hold_seconds',
    help: 'How long a chunk of an import or a delete held the lock of its tenant.',
  };
  const held = store.histograms(hold, HELD_BOUNDS_SECONDS).cell({});
  const writes = store.counters({
    name: 'gatehouse_guarded_writes_total',
    help: 'Writes with preconditions or an idempotency key, by outcome.',
  });
  const guarded = recordOf(['written', 'replayed', 'refused'], (outcome) =>
    writes.cell({ outcome }),
  );
  return {
    exported: (tuples) => exported.add(tuples),
    imported: (tuples, way) => imported[way].add(tuples),
    deleted: (tuples) => deleted.add(tuples),
    held: (seconds) => held.observe(seconds),
    guarded: (outcome) => guarded[outcome].add(),
  };
}

/** Metrics of the followers of changes. */
function watchMetrics(store: MetricStore): WatchMetrics {
  const streams = store.gauge({
    name: 'gatehouse_watch_streams',
    help: 'Streams that follow changes of tuples.',
  });
  const messages = store.counters({
    name: 'gatehouse_watch_messages_total',
    help: 'Messages to those who follow changes, by kind.',
  });
  const sent = recordOf(['changes', 'heartbeat', 'modelChanged', 'resync'], (kind) =>
    messages.cell({ kind }),
  );
  const behind = {
    name: 'gatehouse_watch_lag_seconds',
    help: 'From the begin of a write in the database to its being told to a follower.',
  };
  const lag = store.histograms(behind, LAG_BOUNDS_SECONDS).cell({});
  return {
    streams: (change) => streams.inc(change),
    sent: (kind) => sent[kind].add(),
    lag: (seconds) => lag.observe(seconds),
  };
}
