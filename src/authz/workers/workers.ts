import type { Pool } from 'pg';
import type { Config } from '../../config/options.ts';
import type { EventLog } from '../../observability/logger.ts';
import type { HeldBySlots } from '../../protocol/held-shards.ts';
import type { RecentShard, WorkerStats } from '../../protocol/messages.ts';
import type { DatabaseTime } from '../../shared/time/database-clock.ts';
import type { PostgresTarget } from '../../store/postgres/pool.ts';
import { WORKER_DEFAULTS } from '../../workers/host/worker-settings.ts';
import { LocalReplicaTransport } from '../../workers/pool/local-replica-transport.ts';
import type { WorkerPoolEvent, WorkerPoolOptions } from '../../workers/pool/worker-pool-options.ts';
import { createWorkerPool, type WorkerPool } from '../../workers/pool/worker-pool.ts';
import { createPiscinaTransport } from '../../workers/slot/piscina-transport.ts';
import { PacedShardSource } from '../../workers/source/paced-source.ts';
import { WORKER_CONNECTIONS } from '../database/database.ts';
import { createUnknownLog } from '../logs/refusal-log.ts';
import type { MeasuredStages } from '../metrics/decision-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { indexShare, threadIndexShare } from './index-share.ts';

/** Bodies that wait for one worker, together; beyond it requests are refused. */
const QUEUE_BYTES_MAX = 256 * 1_048_576;

export type WorkersOptions = {
  readonly config: Config;
  /** Never rejects: while there is no database, the workers wait for it. */
  readonly target: PostgresTarget | Promise<PostgresTarget>;
  /** The gateway's own connections, once there are some. */
  readonly pool: Promise<Pool>;
  readonly metrics: Metrics;
  readonly log: EventLog;
  readonly onFatal: (cause: unknown) => void;
  /** Receives the shards that were last requested from a worker. */
  readonly onRecentShards?: ((slot: number, shards: readonly RecentShard[]) => void) | undefined;
  /** Some evaluations that ran out of their budget, and who asked. */
  readonly onBudgetRefused?: WorkerPoolOptions['onBudgetRefused'];
  /** Callback for the counts of single projects. */
  readonly onProjects?: ((figures: WorkerStats['projects']) => void) | undefined;
  readonly time: DatabaseTime;
  /** Memory in which each worker lists the shards that it holds. */
  readonly held?: HeldBySlots | undefined;
  /** Absent where stages are not measured. */
  readonly stages?: MeasuredStages | undefined;
  /** A model that the pool forgot; see WorkerPoolOptions. */
  readonly findModel?:
    | ((projectId: string, modelVersion: number) => string | undefined)
    | undefined;
  /** Replaces the workers' module; for tests. */
  readonly filename?: string | undefined;
};

/** The decision workers of this instance, not yet started. */
export function createWorkers(options: WorkersOptions): WorkerPool {
  const { config, target, metrics, log, time } = options;
  const threadBytes = threadIndexShare(config);
  const indexBytesMax = Math.floor((indexShare(config.indexBytes) - threadBytes) / config.workers);
  const settings = {
    ...WORKER_DEFAULTS,
    poolMax: WORKER_CONNECTIONS,
    depthMax: config.maxCheckDepth,
    batchItemsMax: config.maxBatchItems,
    pollMs: config.pollIntervalMs,
    loadTimeoutMs: config.loadTimeoutSeconds * 1_000,
    fsckRowsPerSecond: config.fsckRowsPerSecond / config.workers,
    fsckIntervalMs: config.fsckIntervalSeconds * 1_000,
  };
  const reportUnknown = createUnknownLog(log, time.clock);
  return createWorkerPool({
    workerCount: config.workers,
    createTransport: createPiscinaTransport({
      filename: options.filename,
      settings: async (slot) => ({
        ...settings,
        slot,
        database: await target,
        indexBytesMax,
        clockMemory: time.memory,
        heldMemory: options.held?.memories[slot],
        timesMemory: options.stages?.memories[slot],
      }),
    }),
    ...(threadBytes === 0
      ? {}
      : {
          createLocalReplicas: (onOverload) =>
            new LocalReplicaTransport({
              settings: { ...settings, indexBytesMax: threadBytes },
              clock: time.clock,
              source: new PacedShardSource(options.pool),
              onOverload,
            }),
        }),
    replication: {
      workersMax: config.shardWorkers,
      indexBytesMax,
      localReplicas:
        threadBytes === 0
          ? undefined
          : { indexBytesMax: threadBytes, checksPerSecondMin: config.threadChecksPerSecond },
    },
    queueDepthMax: config.workerQueueMax,
    shardQueueDepthMax: config.shardQueueMax,
    queueBytesMax: QUEUE_BYTES_MAX,
    onRefused: (bound) => metrics.queueRefusals[bound].add(1),
    onBudgetRefused: options.onBudgetRefused,
    onFatal: options.onFatal,
    stages: options.stages?.times.batches,
    findModel: options.findModel,
    onStats: (slot, stats) => {
      metrics.workerReport(slot, stats);
      reportUnknown(stats.unknown.names);
      options.onProjects?.(stats.projects);
      if (stats.recentShards !== undefined) options.onRecentShards?.(slot, stats.recentShards);
    },
    onEvent: (event) => logEvent(event, metrics, log),
  });
}

function logEvent(event: WorkerPoolEvent, metrics: Metrics, log: EventLog): void {
  const { slot } = event;
  switch (event.kind) {
    case 'workerReady':
      return log('info', 'worker_ready', { slot });
    case 'shardSpread': {
      const { event: what, shardHash, slots, isLocalReplica } = event.replicated;
      const names = isLocalReplica ? [...slots.slice(0, -1), 'gateway'] : slots;
      const fields = { shard: shardHash.toString(16).padStart(8, '0'), slots: names.join(',') };
      if (what === 'shard_spread') return log('info', 'shard_spread', fields);
      return log('info', 'shard_gathered', fields);
    }
    case 'workerReport':
      return log(isWrong(event.report.event) ? 'error' : 'warn', event.report.event, {
        slot,
        shard: event.report.shardHash,
        error: event.report.error,
      });
    case 'workerLost':
      metrics.workerRestarts.inc();
      return log('error', 'worker_lost', {
        slot,
        request_remembered: event.requestRemembered,
        error: String(event.cause),
      });
  }
}

/** Whether answers may have been wrong; the index was dropped. */
function isWrong(event: string): boolean {
  return event === 'index_differs' || event === 'shard_index_damaged';
}
