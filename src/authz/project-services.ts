import type { Config } from '../config/options.ts';
import { secretFingerprint } from '../config/secret-file.ts';
import type { BackgroundLoops } from '../observability/background-loops.ts';
import type { EventLog } from '../observability/logger.ts';
import { ActivationJob } from '../services/models/activation-job.ts';
import { ModelHistory } from '../services/models/model-history.ts';
import { NamedVersions } from '../services/models/named-versions.ts';
import { ACTIVATION_ROWS, StagedModels } from '../services/models/staged-models.ts';
import type { AuditSink, ModelDistributor } from '../services/ports.ts';
import { ProjectService } from '../services/projects/project-service.ts';
import { SettingsSource } from '../services/projects/settings-source.ts';
import type { Clock } from '../shared/time/clock.ts';
import type { SharedWork } from '../store/postgres/shared-work.ts';
import type { Database } from './database/database.ts';
import type { Metrics } from './metrics/metrics.ts';

/** GATEWAY_MAX_CHECK_READS must not go below it, for a project either. */
/** The lowest read budget of a project. */
export const READ_BUDGET_MIN = 100;
/** How often it is asked whether a model is pending that nobody brings into force. */
/** Bytes of the texts of versions that queries name: a share of what is left around the indexes (index-share.ts). */
const NAMED_BYTES_MAX = 16 * 1024 * 1024;
const NAMED_BYTES_SHARE = 1 / 32;
const ACTIVATION_INTERVAL_MS = 5_000;
/** So long a call that writes a model waits for it to come into force. */
const ACTIVATION_WAIT_MS = 10_000;
const PROJECTS_MAX = 10_000;

/** Projects, and how their models come into force. */
export type ProjectServices = {
  readonly projects: ProjectService;
  /** The settings of projects, by which calls are answered. */
  readonly settingsSource: SettingsSource;
  readonly models: StagedModels;
  /** The versions of projects' models. */
  readonly modelHistory: ModelHistory;
  readonly namedVersions: NamedVersions;
  /** The text of a model version that this instance distributed, while it is remembered. */
  modelOf(projectId: string, modelVersion: number): string | undefined;
  readonly activations: ActivationJob;
  /** Name of an operator secret's holder, for versions and audit records. */
  readonly operatorName: (secret: string) => string;
};

/** Wires projects to the database, and to the workers that decide by their models. */
export function createProjectServices(
  options: {
    readonly config: Config;
    readonly database: Database;
    readonly clock: Clock;
    readonly shards: ModelDistributor;
    readonly metrics: Metrics;
    readonly audit: AuditSink | undefined;
    readonly log: EventLog;
    readonly loops: BackgroundLoops;
  },
  isAlone: () => boolean,
  shared: SharedWork,
): ProjectServices {
  const { config, database, clock, shards, metrics, audit, log, loops } = options;
  const { pool } = database;
  const settingsSource = new SettingsSource({
    pool,
    admission: database.membership,
    clock,
    region: config.region,
    defaultProjectId: config.defaultProjectId,
    readBudgetDefault: config.maxCheckReads,
    ttlMs: config.projectTtlSeconds * 1000,
    cacheMax: PROJECTS_MAX,
    distributor: shards,
    onUnsoundModel: (projectId, { path, message }) => {
      metrics.models.unsound.add();
      log('warn', 'stored_model_unsound', { project_id: projectId, path, problem: message });
    },
    onRegionRefused: () => metrics.regionRefused.inc(),
    onOld: () => metrics.readIndex.settingsReloaded(),
    isAlone,
  });
  const models = new StagedModels({
    pool,
    settingsSource,
    projects: () => projects,
    onPending: () => activations.kick(),
    waitMaxMs: ACTIVATION_WAIT_MS,
  });
  const projects = new ProjectService({
    pool,
    admission: database.membership,
    clock,
    defaultProjectId: config.defaultProjectId,
    readBudgetMin: READ_BUDGET_MIN,
    listMax: PROJECTS_MAX,
    models,
    settingsSource,
    audit,
  });
  const activations = new ActivationJob({
    pool,
    shared,
    projects,
    region: config.region,
    intervalMs: ACTIVATION_INTERVAL_MS,
    rowsMax: ACTIVATION_ROWS,
    metrics: metrics.models,
    report: loops.loop('activation'),
  });
  const modelHistory = new ModelHistory({ pool, projects, settingsSource, models });
  const operatorName = (secret: string): string => operatorNameOf(database, secret);
  const namedVersions = createNamedVersions(options);
  const modelOf = (projectId: string, version: number): string | undefined =>
    settingsSource.modelOf(projectId, version) ?? namedVersions.modelOf(projectId, version);
  const history = { modelHistory, namedVersions, modelOf };
  return { projects, settingsSource, models, ...history, activations, operatorName };
}

function createNamedVersions({
  config,
  database,
  shards,
}: Parameters<typeof createProjectServices>[0]): NamedVersions {
  const bytesMax = Math.min(NAMED_BYTES_MAX, Math.floor(config.indexBytes * NAMED_BYTES_SHARE));
  return new NamedVersions({ pool: database.pool, distributor: shards, bytesMax });
}

/** The fingerprint is that of the metric, where one secret is in force; keyed, so that it betrays nothing of it. */
function operatorNameOf({ deployment }: Database, secret: string): string {
  return `operator:${secretFingerprint(deployment.tokenKey, 'admin_secret', [secret])}`;
}
