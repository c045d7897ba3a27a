// Yields nanoseconds per duration observed and per decision counted, and per series of a scrape.
// Run: npm run bench -- metrics-observe metrics-decision metrics-scrape
import { createMetrics } from '../../src/authz/metrics.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;
const SERIES = 600;

export const metricsObserve: MicroBench = {
  name: 'metrics-observe',
  yields: 'ns per duration observed in a histogram',
  operations: OPERATIONS,
  prepare() {
    const { checkDuration } = createMetrics({ version: 'bench', commit: 'bench' });
    const durations = listOf(OPERATIONS, (i) => ((i * 7919) % OPERATIONS) * 2e-6);
    return () => {
      for (const seconds of durations) checkDuration.Check.observe(seconds);
    };
  },
};

export const metricsDecision: MicroBench = {
  name: 'metrics-decision',
  yields: 'ns per decision counted by namespace, relation and outcome',
  operations: OPERATIONS,
  prepare() {
    const { decisions } = createMetrics({ version: 'bench', commit: 'bench' });
    const namespaces = listOf(OPERATIONS, (i) => `namespace${i % 8}`);
    return () => {
      for (const namespace of namespaces) decisions.add(namespace, 'viewer', 'allowed');
    };
  },
};

export const metricsScrape: MicroBench = {
  name: 'metrics-scrape',
  yields: 'ns per series of a scrape of 600 decision series',
  operations: SERIES,
  prepare() {
    const metrics = createMetrics({ version: 'bench', commit: 'bench' });
    for (let i = 0; i < SERIES / 3; i++) metrics.decisions.add(`namespace${i}`, 'viewer', 'denied');
    return async () => mustHold((await metrics.render()).length > SERIES, 'a scrape has text');
  },
};
