import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { METRICS_CONTENT_TYPE } from '../../observability/metric-store.ts';
import type { WorkerStats } from '../../protocol/messages.ts';
import { ReadCounts } from '../../workers/counts/read-counts.ts';
import { DECISION_PAIRS_MAX } from './decision-counts.ts';
import { createMetrics, type Metrics } from './metrics.ts';

/** Value of one series by its exact text, or undefined. */
function seriesValue(text: string, series: string): number | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const BUILD = { version: '1.2.3', commit: 'abc' };
const NO_READS = { counts: [], sum: 0 };
const FIGURES: WorkerStats = {
  batchItems: [],
  errors: [],
  projects: [],
  evalReads: {
    Check: NO_READS,
    CheckSet: NO_READS,
    BatchCheck: NO_READS,
    Expand: NO_READS,
    ListObjects: NO_READS,
    QueryCheck: NO_READS,
    QueryBatchCheck: NO_READS,
    WhatIf: NO_READS,
    Explain: NO_READS,
    ListSubjects: NO_READS,
    ListRelations: NO_READS,
    FilterObjects: NO_READS,
    QueryListObjects: NO_READS,
    StreamObjects: NO_READS,
    PreviewModel: NO_READS,
  },
  decisions: [],
  scopeMismatches: 0,
  unknown: { counts: { namespace: 0, relation: 0 }, names: [] },
  backstops: { depth: 0, cycle: 0, budget: 0 },
  indexBytes: 10,
  shardsLoaded: 1,
  tuples: 5,
  watermarkLagMax: 2,
  queueDepth: 3,
  shardLoads: 1,
  shardLoadFailures: 0,
  shardEvictions: 0,
  catchUps: 0,
  fsck: { shards: 2, rows: 70, differences: 1, unfinished: 0, ageMs: 4_000 },
};

/** One observation of everything, so that every kind of line is in the text. */
function exercised(): Metrics {
  const metrics = createMetrics(BUILD);
  metrics.batchCheckItems.observe(7);
  metrics.checkDuration.Check.observe(0.0003);
  metrics.decisions.add('doc', 'viewer', 'allowed');
  metrics.decisionError('Check', 'unavailable');
  metrics.workerReport(0, FIGURES);
  return metrics;
}

test('the six metrics of the contract are there from the first scrape', async () => {
  const text = await createMetrics(BUILD).render();
  for (const line of [
    'authz_batchcheck_items_count 0',
    'authz_check_decisions_total{namespace="other",relation="other",outcome="denied"} 0',
    'authz_check_duration_seconds_count{rpc="CheckSet"} 0',
    'authz_decision_errors_total{rpc="ListObjects",reason="resource_exhausted"} 0',
    'authz_eval_backstop_total{reason="cycle"} 0',
    'authz_region_refused_total 0',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(METRICS_CONTENT_TYPE).toBe('text/plain; version=0.0.4');
});

test('histogram buckets are cumulative and their bounds inclusive', async () => {
  const metrics = createMetrics(BUILD);
  for (const items of [1, 2, 3, 20_000]) metrics.batchCheckItems.observe(items);
  const text = await metrics.render();
  expect(seriesValue(text, 'authz_batchcheck_items_bucket{le="1"}')).toBe(1);
  expect(seriesValue(text, 'authz_batchcheck_items_bucket{le="2"}')).toBe(2);
  expect(seriesValue(text, 'authz_batchcheck_items_bucket{le="10000"}')).toBe(3);
  expect(seriesValue(text, 'authz_batchcheck_items_bucket{le="+Inf"}')).toBe(4);
  expect(seriesValue(text, 'authz_batchcheck_items_count')).toBe(4);
  expect(seriesValue(text, 'authz_batchcheck_items_sum')).toBe(20_006);
});

test('pairs beyond the bound count as other, known pairs go on', async () => {
  const metrics = createMetrics(BUILD);
  for (let pair = 0; pair < DECISION_PAIRS_MAX + 5; pair++) {
    metrics.decisions.add(`ns${pair}`, 'viewer', 'allowed');
  }
  metrics.decisions.add('ns0', 'viewer', 'allowed');
  const text = await metrics.render();
  const series = (namespace: string, relation: string): string =>
    `authz_check_decisions_total{namespace="${namespace}",relation="${relation}",outcome="allowed"}`;
  expect(seriesValue(text, series('ns0', 'viewer'))).toBe(2);
  expect(seriesValue(text, series(`ns${DECISION_PAIRS_MAX}`, 'viewer'))).toBeUndefined();
  expect(seriesValue(text, series('other', 'other'))).toBe(5);
});

test('worker reports add counts and replace standing figures', async () => {
  const metrics = createMetrics(BUILD);
  const figures: WorkerStats = {
    ...FIGURES,
    decisions: [{ namespace: 'doc', relation: 'viewer', outcome: 'denied', count: 4 }],
    backstops: { depth: 1, cycle: 2, budget: 3 },
  };
  metrics.workerReport(0, figures);
  metrics.workerReport(0, figures);
  metrics.workerReport(1, FIGURES);
  const reads = new ReadCounts();
  for (const count of [0, 1, 2, 3, 4, 5, 10_001, 1_048_576, 1_048_577]) reads.add(count);
  metrics.workerReport(2, {
    ...FIGURES,
    evalReads: { ...FIGURES.evalReads, Check: reads.drain() },
  });
  const text = await metrics.render();
  const decisions =
    'authz_check_decisions_total{namespace="doc",relation="viewer",outcome="denied"}';
  expect(seriesValue(text, decisions)).toBe(8);
  expect(seriesValue(text, 'authz_eval_backstop_total{reason="budget"}')).toBe(6);
  expect(seriesValue(text, 'gatehouse_index_bytes')).toBe(30);
  expect(seriesValue(text, 'gatehouse_shard_loads_total')).toBe(4);
  const bucket = (le: string): number | undefined =>
    seriesValue(text, `gatehouse_eval_reads_bucket{rpc="Check",le="${le}"}`);
  expect(['1', '2', '4', '8', '8192', '16384', '1048576', '+Inf'].map(bucket)).toEqual([
    2, 3, 5, 6, 6, 7, 8, 9,
  ]);
  expect(seriesValue(text, 'gatehouse_eval_reads_sum{rpc="Check"}')).toBe(2_107_169);
  expect(reads.drain()).toEqual({ counts: Array.from({ length: 22 }, () => 0), sum: 0 });
});

test('failed decisions count by RPC and code, unforeseen codes as unknown', async () => {
  const metrics = createMetrics(BUILD);
  metrics.decisionError('BatchCheck', 'resource_exhausted', 6);
  metrics.decisionError('Check', 'no such code');
  const text = await metrics.render();
  const series = (rpc: string, reason: string): string =>
    `authz_decision_errors_total{rpc="${rpc}",reason="${reason}"}`;
  expect(seriesValue(text, series('BatchCheck', 'resource_exhausted'))).toBe(6);
  expect(seriesValue(text, series('Check', 'unknown'))).toBe(1);
});

test('a collector that throws spoils nothing and is counted', async () => {
  const metrics = createMetrics(BUILD);
  metrics.onCollect(() => {
    throw new Error('no figures');
  });
  const text = await metrics.render();
  expect(seriesValue(text, 'gatehouse_scrape_errors_total')).toBe(1);
  expect(seriesValue(text, 'authz_region_refused_total')).toBe(0);
});

test('label values are escaped', async () => {
  const metrics = createMetrics({ ...BUILD, version: 'a"b\\c\nd' });
  expect(await metrics.render()).toContain('version="a\\"b\\\\c\\nd"');
});

const promtool = spawnSync('promtool', ['--version']);

describe.skipIf(promtool.error !== undefined)('promtool (Debian package prometheus)', () => {
  test('check metrics finds nothing', async () => {
    const result = spawnSync('promtool', ['check', 'metrics'], {
      input: await exercised().render(),
      encoding: 'utf8',
    });
    expect(result.stderr + result.stdout).toBe('');
    expect(result.status).toBe(0);
  });
});
