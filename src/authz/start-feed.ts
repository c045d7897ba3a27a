import type { BackgroundLoops } from '../observability/background-loops.ts';
import type { EventLog } from '../observability/logger.ts';
import type { HeldBySlots } from '../protocol/held-shards.ts';
import { type ChangeFeed, startChangeFeed } from '../store/feed/change-feed.ts';
import type { WorkerPool } from '../workers/pool/worker-pool.ts';
import type { Database } from './database/database.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Services } from './services.ts';

/** Starts to hear of the commits of all instances: workers and watches of the shard are hinted at each. */
export function startFeed({
  database,
  workers,
  services,
  held,
  metrics,
  loops,
  log,
}: {
  readonly database: Database;
  readonly workers: WorkerPool;
  readonly services: Services;
  readonly held: HeldBySlots;
  readonly metrics: Metrics;
  readonly loops: BackgroundLoops;
  readonly log: EventLog;
}): ChangeFeed {
  return startChangeFeed({
    target: database.target,
    sender: services.notifier.sender,
    isHeld: (shard) => held.mayHold(shard) || services.hub.follows(shard),
    onHint: (shard, revision) => {
      workers.hint(shard, revision);
      services.hub.changed(shard);
    },
    onConnected: (isConnected) => metrics.feed.connected(isConnected),
    report: loops.loop('change_feed'),
    log,
  });
}
