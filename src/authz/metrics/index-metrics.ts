import type { MetricStore } from '../../observability/metric-store.ts';
import type { WorkerStats } from '../../protocol/messages.ts';
import type { ActivationMetrics } from '../../services/models/activation-job.ts';
import type { ReadIndexMetrics } from '../../services/reads/read-index.ts';
import { entriesOf, recordOf } from '../../shared/record.ts';
import type { LocalReplicaFigures } from '../../workers/pool/local-replicas.ts';

/** 100 µs to 2.5 s: a query that finds nothing new is at the low end. */
const DURATION_BOUNDS_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];
const READ_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000];

/** Series of what decisions are made from: indexes of workers and of this thread, the read index, models. */
export function createIndexMetrics(store: MetricStore) {
  return {
    /** Adds what a worker counted, and replaces its standing figures. */
    addIndexes: workerIndexes(store),
    /** Memory that the indexes of all workers may take. */
    indexLimit: store.gauge({
      name: 'gatehouse_index_limit_bytes',
      help: 'What all indexes together may take.',
    }),
    replicatedShards: store.gauge({
      name: 'gatehouse_spread_shards',
      help: 'Shards that several workers answer for.',
    }),
    workerRestarts: store.counter({
      name: 'gatehouse_worker_restarts_total',
      help: 'Decision workers that ended and were started again.',
    }),
    threadReplicas: threadReplicaMetrics(store),
    readIndex: readIndexMetrics(store),
    models: modelMetrics(store),
  };
}

/** Figures of all workers together: a label by worker would not describe the service. */
function workerIndexes(store: MetricStore): (slot: number, stats: WorkerStats) => void {
  const gauge = (name: string, help: string) => store.gauge({ name, help });
  const counter = (name: string, help: string) => store.counter({ name, help });
  const sums = {
    indexBytes: gauge('gatehouse_index_bytes', 'Memory of the loaded tuple indexes.'),
    shardsLoaded: gauge('gatehouse_index_shards', 'Shards loaded.'),
    tuples: gauge('gatehouse_index_tuples', 'Tuples in loaded shards.'),
    queueDepth: gauge('gatehouse_worker_queue_requests', 'Requests waiting for workers.'),
  };
  const lag = gauge(
    'gatehouse_watermark_lag',
    'Commits that the shard furthest behind has to apply.',
  );
  const age = gauge(
    'gatehouse_fsck_age_seconds',
    'How long ago the index was loaded or compared that waits longest.',
  );
  const counted = {
    shardLoads: counter('gatehouse_shard_loads_total', 'Shards loaded from a snapshot.'),
    shardLoadFailures: counter('gatehouse_shard_load_failures_total', 'Loads that failed.'),
    shardEvictions: counter('gatehouse_shard_evictions_total', 'Shards dropped for memory.'),
    catchUps: counter('gatehouse_catch_ups_total', 'Catch-ups read from the change log.'),
    scopeMismatches: counter(
      'gatehouse_scope_mismatches_total',
      'Requests that a worker decoded to another scope than was read before. None is answered.',
    ),
  };
  const compared = {
    shards: counter('gatehouse_fsck_shards_total', 'Loaded shards compared with the store.'),
    rows: counter('gatehouse_fsck_rows_total', 'Stored tuples compared with indexes.'),
    differences: counter(
      'gatehouse_fsck_differences_total',
      'Indexes that differed from what is stored, and were loaded again.',
    ),
    unfinished: counter(
      'gatehouse_fsck_unfinished_total',
      'Comparisons of an index that were given up.',
    ),
  };
  const standing = new Map<number, WorkerStats>();
  store.onCollect(() => {
    const all = [...standing.values()];
    for (const [name, sum] of entriesOf(sums)) {
      sum.set(all.reduce((total, stats) => total + stats[name], 0));
    }
    lag.set(Math.max(0, ...all.map(({ watermarkLagMax }) => watermarkLagMax)));
    age.set(Math.max(0, ...all.map(({ fsck }) => fsck.ageMs)) / 1_000);
  });
  return (slot, stats) => {
    standing.set(slot, stats);
    for (const [name, total] of entriesOf(counted)) total.inc(stats[name]);
    for (const [name, total] of entriesOf(compared)) total.inc(stats.fsck[name]);
  };
}

/** Metrics of the replicas on the gateway's thread. */
function threadReplicaMetrics(store: MetricStore) {
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
  const checksOf = recordOf(['answered', 'left'], (outcome) => checks.cell({ outcome }));
  return {
    /** Adopts what is so now. */
    show: (figures: LocalReplicaFigures): void => {
      shards.set(figures.shards);
      bytes.set(figures.indexBytes);
      for (const [outcome, cell] of entriesOf(checksOf)) cell.raiseTo(figures[outcome]);
    },
  };
}

/** Metrics of the read index. */
function readIndexMetrics(store: MetricStore) {
  const counter = (name: string, help: string) => store.counters({ name, help }).cell({});
  const queries = store.counters({
    name: 'gatehouse_read_index_queries_total',
    help: 'Queries for the heads of shards, by outcome.',
  });
  const { answered, failed } = recordOf(['answered', 'failed'], (outcome) =>
    queries.cell({ outcome }),
  );
  const served = { name: 'gatehouse_read_index_reads', help: 'Reads that one query served.' };
  const reads = store.histograms(served, READ_BOUNDS).cell({});
  const took = {
    name: 'gatehouse_read_index_duration_seconds',
    help: 'Queries for the heads of shards, from their sending to their answer.',
  };
  const duration = store.histograms(took, DURATION_BOUNDS_SECONDS).cell({});
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
  const metrics: ReadIndexMetrics = {
    answered: (count, seconds) => {
      answered.add();
      reads.observe(count);
      duration.observe(seconds);
    },
    failed: () => failed.add(),
    stalled: () => stalls.add(),
    carried: (rows) => carried.add(rows),
    historyLost: () => lost.add(),
  };
  return {
    ...metrics,
    settingsReloaded: (): void => reloads.add(),
    /** Reads that wait now. */
    waiting: store.gauge({
      name: 'gatehouse_read_index_parked_reads',
      help: 'Reads that wait for the head of their shard.',
    }),
  };
}

/** Metrics of activations of projects' models. */
function modelMetrics(store: MetricStore) {
  const counter = (name: string, help: string) => store.counters({ name, help }).cell({});
  const scanned = counter(
    'gatehouse_model_scanned_tuples_total',
    'Stored tuples that were looked at before a model came into force.',
  );
  const activations = store.counters({
    name: 'gatehouse_model_activations_total',
    help: 'Models that were pending, by what became of them.',
  });
  const ended = recordOf(['active', 'refused', 'cancelled'], (outcome) =>
    activations.cell({ outcome }),
  );
  const metrics: ActivationMetrics = {
    scanned: (tuples) => scanned.add(tuples),
    ended: (outcome) => ended[outcome].add(),
  };
  return {
    ...metrics,
    unsound: counter(
      'gatehouse_unsound_models_loaded_total',
      'Loads of stored models that would be refused if they were written today.',
    ),
  };
}
