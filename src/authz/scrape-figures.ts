import type { Readiness } from '../gateway/readiness.ts';
import type { DatabaseTime } from '../shared/time/database-clock.ts';
import type { ChangeFeed } from '../store/feed/change-feed.ts';
import type { WorkerPool } from '../workers/pool/worker-pool.ts';
import type { Database } from './database/database.ts';
import type { LiveCredentials } from './live-credentials.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Services } from './services.ts';

type FigureSources = {
  readonly database: Database;
  readonly services: Services;
  readonly readiness: Readiness;
  readonly live: LiveCredentials;
  readonly workers: WorkerPool;
  readonly feed: ChangeFeed;
};

/**
 * Shows the figures that each scrape reads; a part that fails does not keep the others from being
 * shown.
 */
export function showFigures(parts: FigureSources, metrics: Metrics, time: DatabaseTime): void {
  const { database, services, readiness, live, workers, feed } = parts;
  metrics.onCollect(() => collect(metrics, database, services, readiness, time));
  metrics.onCollect(() => metrics.replicatedShards.set(workers.replicatedCount));
  metrics.onCollect(() => metrics.threadReplicas.show(workers.localReplicas));
  metrics.onCollect(() => metrics.callers.show(live.callers.counts));
  metrics.onCollect(() => metrics.feed.show(feed.counts, services.notifier.counts));
}

function collect(
  metrics: Metrics,
  database: Database,
  services: Services,
  readiness: Readiness,
  time: DatabaseTime,
): void {
  const { pool } = database;
  metrics.poolConnections.set(pool.totalCount);
  metrics.poolIdle.set(pool.idleCount);
  metrics.poolWaiting.set(pool.waitingCount);
  metrics.writeQueueDepth.set(services.writer.depth);
  metrics.membership.show(database.membership.lease, database.refusals);
  metrics.readIndex.waiting.set(services.index.waitingCount);
  metrics.ready.set(readiness.isReady ? 1 : 0);
  metrics.clock.show(time);
}
