import type { Config } from '../config/options.ts';
import { type BudgetOptions, createBudgetService } from '../gateway/budgets/budget-service.ts';
import type { CallOptions } from '../gateway/call-handlers.ts';
import type { FsckReport, FsckRuns } from '../gateway/fsck-routes.ts';
import { createModelService } from '../gateway/models/model-service.ts';
import { createQueryService } from '../gateway/queries/query-service.ts';
import { DecisionMeter } from '../gateway/reads/decision-meter.ts';
import { ReadScopes } from '../gateway/reads/read-scopes.ts';
import { createAdminService } from '../gateway/rpc/admin-service.ts';
import { createAuthzService } from '../gateway/rpc/authz-service.ts';
import { createGroupService } from '../gateway/rpc/group-service.ts';
import { createSeatService } from '../gateway/rpc/seat-service.ts';
import { createWorkspaceService } from '../gateway/rpc/workspace-service.ts';
import { createTupleHandlers } from '../gateway/tuples/tuple-handlers.ts';
import type { EventLog } from '../observability/logger.ts';
import type { WorkerPool } from '../workers/pool/worker-pool.ts';
import type { Metrics } from './metrics/metrics.ts';
import { createRecorder, modelOptions } from './model-parts.ts';
import { READ_BUDGET_MIN } from './project-services.ts';
import type { ReadAccounting } from './read-accounting.ts';
import { requestLimits } from './request-limits.ts';
import type { Services } from './services.ts';

const NOTHING = { shards: 0, rows: 0, differences: 0, unfinished: 0, seconds: 0 };

/** Comparisons that an operator asks for, over the indexes of all workers. */
export function createFsckRuns(workers: Pick<WorkerPool, 'checkIndexes'>, log: EventLog): FsckRuns {
  let report: FsckReport = { run: 0, state: 'none', ...NOTHING };
  const run = async (): Promise<void> => {
    const startedMs = performance.now();
    const totals = await workers.checkIndexes();
    const seconds = Math.round(performance.now() - startedMs) / 1_000;
    report = { run: report.run, state: 'done', ...totals, seconds };
    log(totals.differences > 0 ? 'error' : 'info', 'fsck_done', { ...totals, seconds });
  };
  return {
    start: () => {
      if (report.state !== 'running') {
        report = { run: report.run + 1, state: 'running', ...NOTHING };
        run().catch((error: unknown) => {
          report = { ...report, state: 'done', unfinished: 1 };
          log('error', 'fsck_failed', { error: String(error) });
        });
      }
      return report;
    },
    get report() {
      return report;
    },
  };
}

/** Parts that answer calls. */
export type CallParts = {
  readonly workers: WorkerPool;
  readonly services: Services;
} & Pick<CallOptions, 'credentials'> &
  Pick<ReadAccounting, 'ledger'>;

/** Makes the handlers of calls over a database, workers and services. */
export function createCalls(
  config: Config,
  log: EventLog,
  metrics: Metrics,
  parts: CallParts,
): CallOptions {
  const { workers: shards, services, credentials, ledger } = parts;
  const { projects, settingsSource, positions, index, tuples } = services;
  const isAlone = (): boolean => services.isAlone();
  const scopes = new ReadScopes({ settingsSource, positions, index, isAlone });
  const meter = new DecisionMeter(metrics);
  const timeoutMsMax = config.requestTimeoutMs;
  const batchItemsMax = config.maxBatchItems;
  const recorder = createRecorder(config, metrics, log);
  return {
    credentials,
    bodyBytesMax: config.maxBodyBytes,
    decodeLimits: requestLimits(config),
    onMessageRefused: (reason) => metrics.messagesRefused.inc({ reason }),
    timeoutMsMax,
    authz: createAuthzService({
      tuples,
      shards,
      scopes,
      meter,
      timeoutMsMax,
      batchItemsMax,
      recorder,
    }),
    admin: createAdminService(projects, (secret) => services.operatorName(secret)),
    workspace: createWorkspaceService({ ...services, timeoutMsMax }),
    group: createGroupService({ ...services, timeoutMsMax }),
    seat: createSeatService({ ...services, timeoutMsMax }),
    model: createModelService(modelOptions(config, { services, shards, scopes, recorder })),
    recorder,
    query: createQueryService({
      shards,
      scopes,
      meter,
      timeoutMsMax,
      batchItemsMax,
      updatesMax: config.maxWriteUpdates,
      rules: services.rules,
      versions: services.namedVersions,
    }),
    budget: createBudgets(config, { ledger, projects, settingsSource, shards, scopes }),
    tuple: createTupleHandlers({ ...services, timeoutMsMax }),
    tupleRoutes: {
      ...services,
      bodyBytesMax: config.maxBodyBytes,
      stallMs: config.streamStallSeconds * 1_000,
      onStalled: (method) => metrics.stalledStreams.inc({ method }),
    },
    writes: tuples,
    shards,
    scopes,
    versions: services.namedVersions,
    meter,
    fsck: createFsckRuns(shards, log),
    openFgaStores: config.isOpenFgaServed ? services.openFgaStores : undefined,
    report: (failure) => reportFailure(log, failure),
  };
}

function reportFailure(
  log: EventLog,
  { requestId, rpc, caller, error }: Parameters<CallOptions['report']>[0],
): void {
  const fields = {
    request_id: requestId,
    rpc,
    caller,
    error: String(error),
    stack: stackOf(error),
  };
  log('error', 'call_failed', fields);
}

function createBudgets(
  config: Config,
  parts: Pick<BudgetOptions, 'ledger' | 'projects' | 'settingsSource' | 'shards' | 'scopes'>,
): CallOptions['budget'] {
  return createBudgetService({
    ...parts,
    timeoutMsMax: config.requestTimeoutMs,
    readBudgetDefault: config.maxCheckReads,
    readBudgetMin: READ_BUDGET_MIN,
  });
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
