import type { CallCounts } from '../../gateway/callers/caller.ts';
import { codeNameOfReason } from '../../gateway/connect/connect-error.ts';
import { DECISION_RPCS, type DecisionRpc } from '../../gateway/reads/decision-meter.ts';
import { MISSING_PARTS } from '../../model/namespace/unknown-relation.ts';
import type { HotCounter, MetricStore } from '../../observability/metric-store.ts';
import { BatchTimes, createBatchTimesMemory } from '../../protocol/batch-times.ts';
import type { WorkerStats } from '../../protocol/messages.ts';
import { entriesOf, recordOf } from '../../shared/record.ts';
import {
  BATCH_STAGES,
  CALL_STAGES,
  CARRIERS,
  type StageSum,
  StageTimes,
} from '../../shared/time/stage-times.ts';
import { READ_BOUNDS } from '../../workers/counts/read-counts.ts';
import { QUEUE_BOUNDS } from '../../workers/queues/queue-bound.ts';
import { DecisionCounts } from './decision-counts.ts';

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

/** 50 µs to 10 s: a decision from memory is at the low end, one that waits for a load at the high. */
export const DURATION_BOUNDS_SECONDS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
  5, 10,
];
const ITEM_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/** Series of decisions: how many, how long they took, what they read, and why they failed. */
export function createDecisionMetrics(store: MetricStore) {
  const items = { name: 'authz_batchcheck_items', help: 'Items per BatchCheck request.' };
  const batchCheckItems = store.histograms(items, ITEM_BOUNDS).cell({});
  const unknown = store.counters({
    name: 'gatehouse_unknown_relations_total',
    help: 'Decisions about a namespace or relation that the typed model of the project does not have.',
  });
  const unknownRelations = recordOf(MISSING_PARTS, (missing) => unknown.cell({ missing }));
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
  const reads = store.histograms(
    {
      name: 'gatehouse_eval_reads',
      help: 'Reads that one evaluation took (an item of a BatchCheck is one), of its read budget.',
    },
    READ_BOUNDS,
  );
  const readsOf = recordOf(DECISION_RPCS, (rpc) => reads.cell({ rpc }));
  const fired = store.counters({
    name: 'authz_eval_backstop_total',
    help: 'Safety backstops fired: depth and cycle deny, budget is ResourceExhausted.',
  });
  const backstops = recordOf(['depth', 'cycle', 'budget'], (reason) => fired.cell({ reason }));
  const decisionError = decisionErrors(store);
  return {
    batchCheckItems,
    decisions,
    checkDuration: recordOf(DECISION_RPCS, (rpc) => durations.cell({ rpc })),
    decisionError,
    /** Adds what a worker counted. */
    addDecisions: (stats: WorkerStats): void => {
      for (const { namespace, relation, outcome, count } of stats.decisions) {
        decisions.add(namespace, relation, outcome, count);
      }
      for (const [part, cell] of entriesOf(unknownRelations)) cell.add(stats.unknown.counts[part]);
      for (const [reason, cell] of entriesOf(backstops)) cell.add(stats.backstops[reason]);
      for (const [rpc, cell] of entriesOf(readsOf)) {
        cell.merge(stats.evalReads[rpc].counts, stats.evalReads[rpc].sum);
      }
      for (const count of stats.batchItems) batchCheckItems.observe(count);
      for (const { rpc, reason, count } of stats.errors) {
        if (isDecisionRpc(rpc)) decisionError(rpc, codeNameOfReason(reason), count);
      }
    },
  };
}

function decisionErrors(store: MetricStore) {
  const errors = store.counters({
    name: 'authz_decision_errors_total',
    help: 'Failed decision calls and failed BatchCheck items by RPC and Connect code.',
  });
  const cells = recordOf(DECISION_RPCS, (rpc) =>
    recordOf(CONNECT_CODES, (reason) => errors.cell({ rpc, reason })),
  );
  return (rpc: DecisionRpc, code: string, count = 1): void => {
    const ofRpc: Readonly<Record<string, HotCounter>> = cells[rpc];
    (ofRpc[code] ?? cells[rpc].unknown).add(count);
  };
}

function isDecisionRpc(rpc: string): rpc is DecisionRpc {
  return (DECISION_RPCS as readonly string[]).includes(rpc);
}

/** Series of calls of all kinds: when they are taken, refused or given up, and which are remembered. */
export function createCallMetrics(store: MetricStore) {
  const gauge = (name: string, help: string) => store.gauge({ name, help });
  const counter = (name: string, help: string) => store.counter({ name, help });
  const refusals = store.counters({
    name: 'gatehouse_queue_refusals_total',
    help: 'Requests refused before they waited for a decision worker, by the bound that was reached.',
  });
  const queries = store.counters({
    name: 'gatehouse_recorded_file_questions_total',
    help: 'Questions for the file of GATEWAY_RECORD_FILE, by outcome.',
  });
  const inFile = recordOf(['written', 'dropped'], (outcome) => queries.cell({ outcome }));
  return {
    ready: gauge('gatehouse_ready', '1 while /readyz answers 200, else 0.'),
    warmUpSeconds: gauge(
      'gatehouse_warm_up_seconds',
      'How long the start loaded shards before it reported ready.',
    ),
    warmUpShards: gauge('gatehouse_warm_up_shards', 'Shards that the start loaded meanwhile.'),
    queueRefusals: recordOf(QUEUE_BOUNDS, (bound) => refusals.cell({ bound })),
    regionRefused: counter(
      'authz_region_refused_total',
      "Requests refused because the project's pinned region differs from the instance's.",
    ),
    stalledAnswers: counter(
      'gatehouse_stalled_answers_total',
      'Answers that were given up, since their readers took nothing for too long.',
    ),
    unreadAnswers: counter(
      'gatehouse_http2_unread_answers_total',
      'Answers that were given up, since nobody read them and they were too many.',
    ),
    unreadBytes: counter('gatehouse_http2_unread_bytes_total', 'What those answers took.'),
    recordedQueries: gauge(
      'gatehouse_recorded_questions',
      'Questions remembered to preview models with.',
    ),
    recordedBytes: gauge('gatehouse_recorded_questions_bytes', 'What remembered questions take.'),
    /** Shows how many queries for the file were written and dropped since the start. */
    showQueryFile: (counts: { readonly written: number; readonly dropped: number }): void => {
      for (const [outcome, cell] of entriesOf(inFile)) cell.raiseTo(counts[outcome]);
    },
  };
}

/** Times of stages: on the gateway's thread, and in memory shared with each worker, by slot. */
export type MeasuredStages = ReturnType<typeof measureStages>;

/** Begins to measure stages, and adds their series to `store`. Only where that was requested. */
export function measureStages(store: MetricStore, workerCount: number) {
  const seconds = store.counters({
    name: 'gatehouse_stage_seconds_total',
    help: 'Time of decision calls by stage; stages of batches are those of every carrier.',
  });
  const goes = store.counters({
    name: 'gatehouse_stage_calls_total',
    help: 'What gatehouse_stage_seconds_total was added up over: calls, for waiting and hops batches.',
  });
  const times = new StageTimes();
  const memories = Array.from({ length: workerCount }, createBatchTimesMemory);
  const bySlot = memories.map((memory) => new BatchTimes(memory));
  type Sum = Pick<StageSum, 'ms' | 'count'>;
  const show = (carrier: string, stage: string, sums: () => readonly Sum[]): void => {
    const labels = { carrier, stage };
    const cells = { seconds: seconds.cell(labels), goes: goes.cell(labels) };
    store.onCollect(() => {
      // The clocks of two threads may differ by less than a hop takes, in either direction: a counter never falls.
      const all = sums();
      cells.seconds.raiseTo(all.reduce((total, { ms }) => total + ms, 0) / 1_000);
      cells.goes.raiseTo(all.reduce((total, { count }) => total + count, 0));
    });
  };
  for (const carrier of CARRIERS) {
    for (const stage of CALL_STAGES) show(carrier, stage, () => [times.calls[carrier].sums[stage]]);
  }
  for (const stage of BATCH_STAGES) show('any', stage, () => [times.batches.sums[stage]]);
  for (const stage of ['hop_out', 'evaluation', 'hop_back'] as const) {
    show('any', stage, () => bySlot.map(({ sums }) => sums[stage]));
  }
  return { times, memories };
}

/** Series by the names of callers, of which there are a hundred at most, and `other`. */
export function createCallerMetrics(store: MetricStore) {
  let counted: ReadonlyMap<string, CallCounts> = new Map();
  store.values(
    {
      name: 'gatehouse_caller_calls_total',
      help: 'Calls within the rate of their caller, by its name.',
    },
    'counter',
    () => [...counted].map(([caller, { accepted }]) => ({ labels: { caller }, value: accepted })),
  );
  store.values(
    {
      name: 'gatehouse_caller_refusals_total',
      help: 'Calls refused for who made them, by the name of the caller: beyond its rate or its scopes.',
    },
    'counter',
    () =>
      [...counted].flatMap(([caller, { rateLimited, outOfScope }]) => [
        { labels: { caller, reason: 'rate' }, value: rateLimited },
        { labels: { caller, reason: 'scope' }, value: outOfScope },
      ]),
  );
  return {
    keysFailing: store.gauge({
      name: 'gatehouse_jwks_failing',
      help: '1 while the keys of an issuer of JWTs cannot be fetched and those that were still count, else 0.',
      labelNames: ['issuer'],
    }),
    /** Shows the counts of calls; no caller ever leaves them. */
    show: (counts: ReadonlyMap<string, CallCounts>): void => {
      counted = counts;
    },
  };
}
