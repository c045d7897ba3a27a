import { createMessageRefusals } from '../../observability/body-metrics.ts';
import { type BuildLabels, registerBuildInfo } from '../../observability/build-info.ts';
import { createCredentialMetrics } from '../../observability/credential-report.ts';
import { MetricStore } from '../../observability/metric-store.ts';
import { registerProcessMetrics } from '../../observability/process-metrics.ts';
import type { WorkerStats } from '../../protocol/messages.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { createDatabaseMetrics } from './database-metrics.ts';
import {
  createCallerMetrics,
  createCallMetrics,
  createDecisionMetrics,
} from './decision-metrics.ts';
import { createIndexMetrics } from './index-metrics.ts';
import { createProjectMetrics } from './project-metrics.ts';
import { createTupleMetrics } from './tuple-metrics.ts';

/** Every metric of the authorization service, ready to count. */
export type Metrics = ReturnType<typeof createMetrics>;

/** The metrics of one process. Series exist from the first scrape on; `projectsMax` projects have some of their own. */
export function createMetrics(build: BuildLabels, projectsMax?: number) {
  const store = new MetricStore();
  const { addDecisions, ...decisions } = createDecisionMetrics(store);
  const { addIndexes, ...indexes } = createIndexMetrics(store);
  const projects = createProjectMetrics(store, systemClock, projectsMax);
  registerBuildInfo(store, 'gatehouse', build);
  registerProcessMetrics(store);
  return {
    ...decisions,
    ...indexes,
    ...createCallMetrics(store),
    ...createDatabaseMetrics(store),
    ...createTupleMetrics(store),
    ...createCredentialMetrics(store, 'gatehouse'),
    /** By reason. */
    messagesRefused: createMessageRefusals(store, 'gatehouse'),
    /** The budget of projects without one of their own, in reads. */
    readBudget: store.gauge({
      name: 'gatehouse_eval_read_budget',
      help: 'Reads that one evaluation may take where the project says nothing else.',
    }),
    callers: createCallerMetrics(store),
    /** Adopts a worker's report: adds its counts, replaces its standing figures. */
    workerReport: (slot: number, stats: WorkerStats): void => {
      addDecisions(stats);
      addIndexes(slot, stats);
      projects.add(stats.projects);
    },
    /** Store of families that exist only at times. */
    store,
    /** The text of /metrics. Send it as METRICS_CONTENT_TYPE. */
    render: (): Promise<string> => store.render(),
    /** Runs before each scrape: set gauges from figures that nobody pushes. It may throw. */
    onCollect: (collector: () => void): void => store.onCollect(collector),
  };
}
