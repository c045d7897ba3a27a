import type { Config } from '../config/options.ts';
import type { BackgroundLoops } from '../observability/background-loops.ts';
import type { EventLog } from '../observability/logger.ts';
import { ChangeRetention } from '../store/feed/retention.ts';
import type { Database } from './database/database.ts';
import type { Services } from './services.ts';

const UPKEEP_MS = 60_000;
const CHANGES_PER_SHARD_MAX = 100_000;
/** Writers that lost their connection search for their commit among changes of this age. */
const CHANGE_AGE_MIN_MS = 60_000;

/** Starts the upkeep of the database: of the change log, expired tuples, bulk operations and activations of models. */
export function startUpkeep(
  config: Config,
  database: Database,
  services: Services,
  loops: BackgroundLoops,
  log: EventLog,
): ChangeRetention {
  const retention = new ChangeRetention({
    pool: database.pool,
    shared: services.shared,
    rule: {
      ageMaxMs: config.changeRetentionSeconds * 1000,
      countMax: CHANGES_PER_SHARD_MAX,
      ageMinMs: CHANGE_AGE_MIN_MS,
    },
    intervalMs: Math.min(UPKEEP_MS, config.changeRetentionSeconds * 1000),
    report: loops.loop('retention'),
    log,
  });
  retention.start();
  services.purge.start();
  services.bulkUpkeep.start();
  services.activations.start();
  return retention;
}
