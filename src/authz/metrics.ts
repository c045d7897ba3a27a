import type { Counter, Gauge } from 'prom-client';
import {
  DECISION_RPCS,
  type DecisionMetrics,
  type DecisionRpc,
} from '../gateway/reads/decision-meter.ts';
import type { ConditionProblem } from '../model/condition-admission.ts';
import { MISSING_PARTS, type MissingPart } from '../model/unknown-relation.ts';
import { createMessageRefusals } from '../observability/body-metrics.ts';
import { registerBuildInfo, type BuildLabels } from '../observability/build-info.ts';
import {
  createCredentialMetrics,
  type CredentialMetrics,
} from '../observability/credential-report.ts';
import { MetricStore, type HotCounter, type HotHistogram } from '../observability/metric-store.ts';
import { registerProcessMetrics } from '../observability/process-metrics.ts';
import type { FsckStats, WorkerStats } from '../protocol/messages.ts';
import type { BulkMetrics } from '../services/bulk/bulk-ports.ts';
import type { WatchMetrics } from '../services/watch/tuple-watch.ts';
import { systemClock } from '../shared/clock.ts';
import { READ_BOUNDS } from '../workers/jobs/read-counts.ts';
import { QUEUE_BOUNDS, type QueueBound } from '../workers/slot/queue-bound.ts';
import { createBulkMetrics } from './bulk-metrics.ts';
import { type CallerMetrics, createCallerMetrics } from './caller-metrics.ts';
import { type ClockMetrics, createClockMetrics } from './clock-metrics.ts';
import { DecisionCounts } from './decision-counts.ts';
import { createFeedMetrics, type FeedMetrics } from './feed-metrics.ts';
import { createIndexMetrics, type IndexMetrics } from './index-metrics.ts';
import { MembershipMetrics } from './membership-metrics.ts';
import { createModelMetrics, type ModelMetrics } from './model-metrics.ts';
import { createProjectMetrics, type ProjectMetrics } from './project-metrics.ts';
import { createThreadReplicaMetrics, type ThreadReplicaMetrics } from './thread-replica-metrics.ts';
import { createStalledStreams, createWatchMetrics } from './watch-metrics.ts';

/** Connect's code names: values of the label `reason` of failed decisions. */
const CONNECT_CODES = [
  'canceled',
  'unknown',
  'invalid_argument',
  'deadline_exceeded',
  'not_found',
  'already_exists',
  'permission_denied',
  'resource_exhausted',
  'failed_precondition',
  'aborted',
  'out_of_range',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
  'unauthenticated',
] as const;

export const BACKSTOP_REASONS = ['depth', 'cycle', 'budget'] as const;
export type BackstopReason = (typeof BACKSTOP_REASONS)[number];

/** 50 µs to 10 s: a decision from memory lies at the low end, one that waits for a load at the high. */
const DURATION_BOUNDS_SECONDS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
  5, 10,
];
const ITEM_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/** What a worker counted since its last report, and how it stands now, but for what a caller must name. */
export type WorkerFigures = Omit<WorkerStats, 'errors' | 'batchItems'>;

type PartMetrics = DecisionMetrics & CredentialMetrics & ClockMetrics & FeedMetrics & ModelMetrics;

/** Every metric of the authorization service, ready to count. */
export type Metrics = PartMetrics & {
  /** For families that are there only at times. */
  readonly store: MetricStore;
  /** The text of /metrics. Send it as METRICS_CONTENT_TYPE. */
  readonly render: () => Promise<string>;
  /** Runs before each scrape: set gauges from figures that nobody pushes. It may throw. */
  readonly onCollect: (collector: () => void) => void;
  readonly decisions: DecisionCounts;
  /** Of these, those about what a typed model does not have. */
  readonly unknownRelations: Readonly<Record<MissingPart, HotCounter>>;
  readonly backstops: Readonly<Record<BackstopReason, HotCounter>>;
  /** The budget of projects without one of their own, in reads. */
  readonly readBudget: Gauge;
  /** What the indexes of all workers may take. */
  readonly indexLimit: Gauge;
  readonly projects: ProjectMetrics;
  readonly regionRefused: Counter;
  /** Tuples written outside of models with conditions of their own, whose condition nothing can decide. */
  readonly undecidableTuples: Readonly<Record<ConditionProblem['field'], HotCounter>>;
  readonly queueRefusals: Readonly<Record<QueueBound, HotCounter>>;
  /**
   * Adopts a worker's report: adds its counts, replaces its standing figures. Its errors are for
   * the caller, who knows the Connect code of a reason.
   */
  readonly workerReport: (slot: number, figures: WorkerFigures) => void;
  readonly workerRestarts: Counter;
  readonly recordedQueries: Gauge;
  /** What has become of queries for the file, since the start. */
  readonly showQueryFile: (counts: { readonly written: number; readonly dropped: number }) => void;
  readonly recordedBytes: Gauge;
  readonly replicatedShards: Gauge;
  /** Of replicas on the gateway's thread. */
  readonly threadReplicas: ThreadReplicaMetrics;
  /** Answers whose readers stood still. */
  readonly stalledAnswers: Counter;
  /** By reason. */
  readonly messagesRefused: Counter;
  /** Answers that nobody read, and their bytes. */
  readonly unreadAnswers: Counter;
  readonly unreadBytes: Counter;
  readonly poolConnections: Gauge;
  readonly poolIdle: Gauge;
  readonly poolWaiting: Gauge;
  readonly writeQueueDepth: Gauge;
  /** Seconds. `refused`: not committed, or not known to be. */
  readonly writeDuration: Readonly<Record<'committed' | 'refused', HotHistogram>>;
  readonly commits: Counter;
  readonly feedReconnects: Counter;
  /** 1 or 0. */
  readonly feedConnected: Gauge;
  readonly membership: MembershipMetrics;
  /** Of work that one instance at a time does. */
  readonly upkeepRuns: Counter<'work' | 'outcome'>;
  readonly readIndex: IndexMetrics;
  readonly bulk: BulkMetrics;
  readonly watch: WatchMetrics;
  /** Streams whose readers took nothing for too long. */
  readonly stalledStreams: Counter<'method'>;
  readonly callers: CallerMetrics;
  /** 1 or 0. */
  readonly ready: Gauge;
  /** How long the start loaded shards before it was ready. */
  readonly warmUpSeconds: Gauge;
  readonly warmUpShards: Gauge;
};

/** The metrics of one process. Series exist from the first scrape on. */
export function createMetrics(build: BuildLabels): Metrics {
  const store = new MetricStore();
  const metrics = {
    ...decisionMetrics(store),
    ...instanceMetrics(store),
    ...upkeepMetrics(store),
    ...queryFileMetrics(store),
    ...createCredentialMetrics(store, 'gatehouse'),
    ...createClockMetrics(store),
    ...createFeedMetrics(store),
    bulk: createBulkMetrics(store),
    watch: createWatchMetrics(store),
    stalledStreams: createStalledStreams(store),
    callers: createCallerMetrics(store),
    ...createModelMetrics(store),
    readIndex: createIndexMetrics(store),
    threadReplicas: createThreadReplicaMetrics(store),
    projects: createProjectMetrics(store, systemClock),
    workerRestarts: store.counter({
      name: 'gatehouse_worker_restarts_total',
      help: 'Decision workers that ended and were started again.',
    }),
  };
  const workerReport = workerMetrics(store, metrics);
  registerBuildInfo(store, 'gatehouse', build);
  registerProcessMetrics(store);
  return {
    ...metrics,
    workerReport,
    store,
    render: () => store.render(),
    onCollect: (collector) => store.onCollect(collector),
  };
}

function recordOf<K extends string, V>(keys: readonly K[], create: (key: K) => V): Record<K, V> {
  // Object.fromEntries loses the keys; every one of them is present.
  return Object.fromEntries(keys.map((key) => [key, create(key)])) as Record<K, V>;
}

function decisionMetrics(store: MetricStore) {
  const batchCheckItems = store
    .histograms(
      { name: 'authz_batchcheck_items', help: 'Items per BatchCheck request.' },
      ITEM_BOUNDS,
    )
    .cell({});
  const unknown = store.counters({
    name: 'gatehouse_unknown_relations_total',
    help: 'Decisions about a namespace or relation that the typed model of the project does not have.',
  });
  const decisions = new DecisionCounts(
    store.counters({
      name: 'authz_check_decisions_total',
      help: 'Check, CheckSet and BatchCheck decisions by namespace, relation and outcome.',
    }),
  );
  const durations = store.histograms(
    { name: 'authz_check_duration_seconds', help: 'Latency of decision RPCs in seconds.' },
    DURATION_BOUNDS_SECONDS,
  );
  const checkDuration = recordOf(DECISION_RPCS, (rpc) => durations.cell({ rpc }));
  const errors = store.counters({
    name: 'authz_decision_errors_total',
    help: 'Failed decision calls and failed BatchCheck items by RPC and Connect code.',
  });
  const errorCells = recordOf(DECISION_RPCS, (rpc) =>
    recordOf(CONNECT_CODES, (reason) => errors.cell({ rpc, reason })),
  );
  const refusals = store.counters({
    name: 'gatehouse_queue_refusals_total',
    help: 'Requests refused before they waited for a decision worker, by the bound that was reached.',
  });
  const fired = store.counters({
    name: 'authz_eval_backstop_total',
    help: 'Safety backstops fired: depth and cycle deny, budget is ResourceExhausted.',
  });
  const undecidable = store.counters({
    name: 'gatehouse_undecidable_tuples_total',
    help: 'Tuples written whose condition is not known or lacks what it needs: they grant nothing.',
  });
  return {
    batchCheckItems,
    decisions,
    unknownRelations: recordOf(MISSING_PARTS, (missing) => unknown.cell({ missing })),
    checkDuration,
    decisionError: (rpc: DecisionRpc, code: string, count = 1): void => {
      const cells: Readonly<Record<string, HotCounter>> = errorCells[rpc];
      (cells[code] ?? errorCells[rpc].unknown).add(count);
    },
    queueRefusals: recordOf(QUEUE_BOUNDS, (bound) => refusals.cell({ bound })),
    backstops: recordOf(BACKSTOP_REASONS, (reason) => fired.cell({ reason })),
    readBudget: store.gauge({
      name: 'gatehouse_eval_read_budget',
      help: 'Reads that one evaluation may take where the project says nothing else.',
    }),
    regionRefused: store.counter({
      name: 'authz_region_refused_total',
      help: "Requests refused because the project's pinned region differs from the instance's.",
    }),
    undecidableTuples: recordOf(['condition_name', 'condition_params'], (field) =>
      undecidable.cell({ field }),
    ),
  };
}

/** Of the file that recorded queries are written to. */
function queryFileMetrics(store: MetricStore): Pick<Metrics, 'showQueryFile'> {
  const queries = store.counter<'outcome'>({
    name: 'gatehouse_recorded_file_questions_total',
    help: 'Questions for the file of GATEWAY_RECORD_FILE, by outcome.',
    labelNames: ['outcome'],
  });
  const seen = { written: 0, dropped: 0 };
  for (const outcome of ['written', 'dropped'] as const) queries.inc({ outcome }, 0);
  return {
    showQueryFile: (counts) => {
      for (const outcome of ['written', 'dropped'] as const) {
        queries.inc({ outcome }, counts[outcome] - seen[outcome]);
        seen[outcome] = counts[outcome];
      }
    },
  };
}

/** With every series there from the start, so that one that does not move can be seen. */
function upkeepMetrics(store: MetricStore): Pick<Metrics, 'upkeepRuns'> {
  const upkeepRuns = store.counter<'work' | 'outcome'>({
    name: 'gatehouse_upkeep_runs_total',
    help: 'Runs of work that one instance at a time does for all, by outcome.',
    labelNames: ['work', 'outcome'],
  });
  for (const work of ['purge', 'retention', 'bulk']) {
    for (const outcome of ['done', 'elsewhere', 'failed']) upkeepRuns.inc({ work, outcome }, 0);
  }
  return { upkeepRuns };
}

function instanceMetrics(store: MetricStore) {
  const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
  const counter = (name: string, help: string): Counter => store.counter({ name, help });
  const durations = store.histograms(
    {
      name: 'gatehouse_write_duration_seconds',
      help: 'Writes from their arrival until they were answered, by outcome.',
    },
    DURATION_BOUNDS_SECONDS,
  );
  return {
    stalledAnswers: counter(
      'gatehouse_stalled_answers_total',
      'Answers that were given up, since their readers took nothing for too long.',
    ),
    messagesRefused: createMessageRefusals(store, 'gatehouse'),
    unreadAnswers: counter(
      'gatehouse_http2_unread_answers_total',
      'Answers that were given up, since nobody read them and they were too many.',
    ),
    unreadBytes: counter('gatehouse_http2_unread_bytes_total', 'What those answers took.'),
    replicatedShards: gauge('gatehouse_spread_shards', 'Shards that several workers answer for.'),
    poolConnections: gauge('gatehouse_pg_pool_connections', 'Connections open to PostgreSQL.'),
    recordedQueries: gauge(
      'gatehouse_recorded_questions',
      'Questions remembered to preview models with.',
    ),
    recordedBytes: gauge('gatehouse_recorded_questions_bytes', 'What remembered questions take.'),
    poolIdle: gauge('gatehouse_pg_pool_idle_connections', 'Connections that nobody uses.'),
    poolWaiting: gauge('gatehouse_pg_pool_waiting_requests', 'Callers waiting for a connection.'),
    indexLimit: gauge('gatehouse_index_limit_bytes', 'What all indexes together may take.'),
    writeQueueDepth: gauge('gatehouse_write_queue_requests', 'Writes that wait or are under way.'),
    writeDuration: recordOf(['committed', 'refused'], (outcome) => durations.cell({ outcome })),
    commits: counter('gatehouse_commits_total', 'Write transactions committed.'),
    membership: new MembershipMetrics(store),
    feedReconnects: counter(
      'gatehouse_feed_reconnects_total',
      'Times that the connection of the change feed was lost.',
    ),
    feedConnected: gauge('gatehouse_feed_connected', '1 while the change feed listens, else 0.'),
    ready: gauge('gatehouse_ready', '1 while /readyz answers 200, else 0.'),
    warmUpSeconds: gauge(
      'gatehouse_warm_up_seconds',
      'How long the start loaded shards before it reported ready.',
    ),
    warmUpShards: gauge('gatehouse_warm_up_shards', 'Shards that the start loaded meanwhile.'),
  };
}

type StandingFigures = Pick<
  WorkerFigures,
  'indexBytes' | 'shardsLoaded' | 'tuples' | 'watermarkLagMax' | 'queueDepth' | 'fsck'
>;

/** Figures of the workers, all together: a label by worker would say nothing about the service. */
function workerMetrics(
  store: MetricStore,
  metrics: Pick<Metrics, 'decisions' | 'unknownRelations' | 'backstops' | 'projects'>,
): Metrics['workerReport'] {
  const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
  const counter = (name: string, help: string): Counter => store.counter({ name, help });
  const indexBytes = gauge('gatehouse_index_bytes', 'Memory of the loaded tuple indexes.');
  const shards = gauge('gatehouse_index_shards', 'Shards loaded.');
  const tuples = gauge('gatehouse_index_tuples', 'Tuples in loaded shards.');
  const lag = gauge(
    'gatehouse_watermark_lag',
    'Commits that the shard furthest behind has to apply.',
  );
  const queue = gauge('gatehouse_worker_queue_requests', 'Requests waiting for workers.');
  const loads = counter('gatehouse_shard_loads_total', 'Shards loaded from a snapshot.');
  const failures = counter('gatehouse_shard_load_failures_total', 'Loads that failed.');
  const evictions = counter('gatehouse_shard_evictions_total', 'Shards dropped for memory.');
  const catchUps = counter('gatehouse_catch_ups_total', 'Catch-ups read from the change log.');

  const mismatches = counter(
    'gatehouse_scope_mismatches_total',
    'Requests that a worker decoded to another scope than was read before. None is answered.',
  );
  const fsck = fsckMetrics(store);
  const reads = store.histograms(
    {
      name: 'gatehouse_eval_reads',
      help: 'Reads that one evaluation took (an item of a BatchCheck is one), of its read budget.',
    },
    READ_BOUNDS,
  );
  const readsOf = recordOf(DECISION_RPCS, (rpc) => reads.cell({ rpc }));

  const standing = new Map<number, StandingFigures>();
  store.onCollect(() => {
    const all = [...standing.values()];
    const sum = (of: (figures: StandingFigures) => number): number =>
      all.reduce((total, figures) => total + of(figures), 0);
    indexBytes.set(sum((figures) => figures.indexBytes));
    shards.set(sum((figures) => figures.shardsLoaded));
    tuples.set(sum((figures) => figures.tuples));
    queue.set(sum((figures) => figures.queueDepth));
    fsck.age(all.reduce((most, figures) => Math.max(most, figures.fsck.ageMs), 0));
    lag.set(all.reduce((largest, figures) => Math.max(largest, figures.watermarkLagMax), 0));
  });
  return (slot, figures) => {
    standing.set(slot, figures);
    for (const { namespace, relation, outcome, count } of figures.decisions) {
      metrics.decisions.add(namespace, relation, outcome, count);
    }
    for (const missing of MISSING_PARTS) {
      metrics.unknownRelations[missing].add(figures.unknown.counts[missing]);
    }
    for (const reason of BACKSTOP_REASONS) metrics.backstops[reason].add(figures.backstops[reason]);
    for (const rpc of DECISION_RPCS) {
      const { counts, sum } = figures.evalReads[rpc];
      readsOf[rpc].merge(counts, sum);
    }
    metrics.projects.add(figures.projects);
    loads.inc(figures.shardLoads);
    failures.inc(figures.shardLoadFailures);
    evictions.inc(figures.shardEvictions);
    catchUps.inc(figures.catchUps);
    mismatches.inc(figures.scopeMismatches);
    fsck.add(figures.fsck);
  };
}

/** Comparisons of the indexes with what is stored. */
function fsckMetrics(store: MetricStore) {
  const counter = (name: string, help: string): Counter => store.counter({ name, help });
  const shards = counter('gatehouse_fsck_shards_total', 'Loaded shards compared with the store.');
  const rows = counter('gatehouse_fsck_rows_total', 'Stored tuples compared with indexes.');
  const differences = counter(
    'gatehouse_fsck_differences_total',
    'Indexes that differed from what is stored, and were loaded again.',
  );
  const unfinished = counter(
    'gatehouse_fsck_unfinished_total',
    'Comparisons of an index that were given up.',
  );
  const age = store.gauge({
    name: 'gatehouse_fsck_age_seconds',
    help: 'How long ago the index was loaded or compared that waits longest.',
  });
  return {
    add: (counts: FsckStats): void => {
      shards.inc(counts.shards);
      rows.inc(counts.rows);
      differences.inc(counts.differences);
      unfinished.inc(counts.unfinished);
    },
    age: (ms: number): void => age.set(ms / 1_000),
  };
}
