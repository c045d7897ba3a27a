import type { RecentShard, WorkerStats } from '../../protocol/messages.ts';
import type { DecisionStats } from '../counts/decision-stats.ts';
import type { IndexBudget } from '../indexes/index-budget.ts';
import type { IndexFsck } from '../indexes/index-fsck.ts';
import type { ShardActors } from './shard-actors.ts';

/** Reports between two lists of recent shards: one every two seconds, and every second report after loads. */
const RECENT_EVERY = 8;
const RECENT_EVERY_AFTER_LOADS = 2;
const RECENT_SHARDS_MAX = 1_000;

export type HostStatisticsOptions = {
  readonly decisions: DecisionStats;
  readonly actors: ShardActors;
  readonly budget: IndexBudget;
  readonly fsck: IndexFsck;
};

/** Statistics of a worker, each report since the one before. */
export class HostStatistics {
  readonly #options: HostStatisticsOptions;
  readonly #counts = { load: 0, loadFailure: 0, catchUp: 0 };
  #reportCount = 0;
  #hasNewLoads = false;

  constructor(options: HostStatisticsOptions) {
    this.#options = options;
  }

  count(what: 'load' | 'loadFailure' | 'catchUp'): void {
    this.#counts[what] += 1;
  }

  /** The next report. O(shards). */
  drain(): WorkerStats {
    const { decisions, actors, budget, fsck } = this.#options;
    let shardsLoaded = 0;
    let tuples = 0;
    let watermarkLagMax = 0;
    let queueDepth = 0;
    for (const actor of actors.all()) {
      if (actor.isLoaded) shardsLoaded += 1;
      tuples += actor.tupleCount;
      watermarkLagMax = Math.max(watermarkLagMax, actor.lag);
      queueDepth += actor.depth;
    }
    const { load, loadFailure, catchUp } = this.#counts;
    this.#hasNewLoads ||= load > 0;
    const every = this.#hasNewLoads ? RECENT_EVERY_AFTER_LOADS : RECENT_EVERY;
    const isRecentDue = this.#reportCount++ % every === 0;
    if (isRecentDue) this.#hasNewLoads = false;
    this.#counts.load = 0;
    this.#counts.loadFailure = 0;
    this.#counts.catchUp = 0;
    return {
      ...decisions.drain(),
      indexBytes: budget.bytes,
      shardsLoaded,
      tuples,
      watermarkLagMax,
      queueDepth,
      shardLoads: load,
      shardLoadFailures: loadFailure,
      shardEvictions: budget.takeEvictions(),
      catchUps: catchUp,
      fsck: fsck.takeStats(),
      ...(isRecentDue ? { recentShards: recentShards(budget) } : {}),
    };
  }
}

function recentShards(budget: IndexBudget): readonly RecentShard[] {
  return budget.recent(RECENT_SHARDS_MAX).map(({ key, indexBytes }) => ({ ...key, indexBytes }));
}
