import { createManagement, type Management } from '../../src/authz/management.ts';
import { TokenCodec } from '../../src/model/consistency-token.ts';
import type { CommittedChange } from '../../src/model/packed-changes.ts';
import { ActivationJob } from '../../src/services/models/activation-job.ts';
import { StagedModels } from '../../src/services/models/staged-models.ts';
import type { AdminAudit, TupleAudit } from '../../src/services/ports.ts';
import { ProjectService } from '../../src/services/projects/project-service.ts';
import { SettingsSource } from '../../src/services/projects/settings-source.ts';
import type { HeadRevisions } from '../../src/services/reads/head-revisions.ts';
import type { ReadIndex } from '../../src/services/reads/read-index.ts';
import { ReadPositions } from '../../src/services/reads/read-positions.ts';
import { TupleService } from '../../src/services/tuples/tuple-service.ts';
import { TupleWriter, type TupleWriterOptions } from '../../src/services/writes/tuple-writer.ts';
import { SettingsRules } from '../../src/services/writes/write-rules.ts';
import { IdSource } from '../../src/shared/ids.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { SharedWork } from '../../src/store/postgres/shared-work.ts';
import type { TestDatabase } from './postgres.ts';
import { indexOverPool } from './read-index.ts';
import { NO_INSTANCES } from './write-admission.ts';

/** The services on one database, as the composition root wires them, with what left them recorded. */
export type TestServices = Management & {
  readonly committed: CommittedChange[];
  readonly audited: TupleAudit[];
  readonly changed: AdminAudit[];
  readonly models: [projectId: string, version: number, json: string][];
  readonly regionRefusals: { count: number };
  readonly unsound: [projectId: string, path: string][];
  readonly ended: string[];
  /** Fields of tuples that were written although nothing can decide their condition. */
  readonly undecidable: string[];
  readonly activationErrors: unknown[];
  readonly staged: StagedModels;
  readonly activations: ActivationJob;
  readonly codec: TokenCodec;
  readonly headRevisions: HeadRevisions;
  readonly index: ReadIndex;
  readonly positions: ReadPositions;
  readonly projects: ProjectService;
  readonly settingsSource: SettingsSource;
  readonly writer: TupleWriter;
  readonly tuples: TupleService;
  close(): Promise<void>;
};

/** Wires the services; `overrides` are for the limits that a test reaches. */
export async function createTestServices(
  database: TestDatabase,
  overrides: Partial<TupleWriterOptions> & {
    readonly invitationTtlHours?: number;
    readonly activationWaitMs?: number;
  } = {},
): Promise<TestServices> {
  const { pool } = database;
  await pool.query(
    `insert into deployment (system_identifier, timeline, token_key, epoch)
     values ('test', 1, '\\x01', 1) on conflict do nothing`,
  );
  const committed: CommittedChange[] = [];
  const audited: TupleAudit[] = [];
  const changed: AdminAudit[] = [];
  const models: TestServices['models'] = [];
  const regionRefusals = { count: 0 };
  const clock = systemClock;
  const codec = new TokenCodec({ key: Buffer.alloc(32, 7), rememberMax: 100 });
  const { headRevisions, index } = indexOverPool(pool);
  const audit = {
    tuplesChanged: (entries: readonly TupleAudit[]) => void audited.push(...entries),
    projectChanged: (entry: AdminAudit) => void changed.push(entry),
  };
  const positions = new ReadPositions({ codec, headRevisions, index });
  const unsound: TestServices['unsound'] = [];
  const undecidable: string[] = [];
  const ended: TestServices['ended'] = [];
  const activationErrors: unknown[] = [];
  const settingsSource = new SettingsSource({
    pool,
    admission: NO_INSTANCES,
    clock,
    region: 'eu',
    defaultProjectId: 'default',
    readBudgetDefault: 10_000,
    ttlMs: 30_000,
    cacheMax: 100,
    distributor: {
      setModel: async (projectId, version, json) => {
        await Promise.resolve();
        models.push([projectId, version, json]);
      },
    },
    onUnsoundModel: (projectId, { path }) => void unsound.push([projectId, path]),
    onRegionRefused: () => (regionRefusals.count += 1),
    onOld: () => undefined,
    isAlone: () => true,
  });
  const staged = new StagedModels({
    pool,
    settingsSource,
    projects: () => projects,
    onPending: () => activations.kick(),
    waitMaxMs: overrides.activationWaitMs ?? 10_000,
  });
  const projects = new ProjectService({
    pool,
    admission: NO_INSTANCES,
    clock,
    defaultProjectId: 'default',
    readBudgetMin: 100,
    listMax: 1_000,
    models: staged,
    settingsSource,
    audit,
  });
  const shared = new SharedWork({ target: database.target });
  const activations = new ActivationJob({
    pool,
    shared,
    projects,
    region: 'eu',
    intervalMs: 3_600_000,
    rowsMax: 10,
    metrics: { scanned: () => undefined, ended: (outcome) => void ended.push(outcome) },
    report: { succeeded: () => undefined, failed: (error) => void activationErrors.push(error) },
  });
  const rules = new SettingsRules(settingsSource);
  const ids = new IdSource(clock);
  const writer = new TupleWriter({
    pool,
    admission: NO_INSTANCES,
    rules,
    clock,
    headRevisions,
    audit,
    ids,
    committed: { onCommitted: (changes) => void committed.push(...changes) },
    lanes: 2,
    queuedWritesMax: 1_000,
    queuedUpdatesMax: 10_000,
    groupWritesMax: 64,
    groupUpdatesMax: 2_000,
    writeTimeoutMs: 10_000,
    answerTimeoutMs: 15_000,
    attemptsMax: 5,
    retryDelayMs: 5,
    ...overrides,
  });
  const tuples = new TupleService({
    pool,
    clock,
    settingsSource,
    codec,
    headRevisions,
    positions,
    writer,
    rules,
    onUndecidable: (field) => void undecidable.push(field),
    updatesMax: 1_000,
    readTuplesMax: 600,
    deletesPerRevisionMax: 3,
    exportGrantsMax: 1_000,
  });
  const parts = {
    pool,
    clock,
    ids,
    settingsSource,
    headRevisions,
    index,
    isAlone: () => true,
    writer,
  };
  await projects.provisionDefault();
  return {
    committed,
    audited,
    changed,
    undecidable,
    models,
    regionRefusals,
    unsound,
    ended,
    activationErrors,
    staged,
    activations,
    codec,
    headRevisions,
    index,
    positions,
    projects,
    settingsSource,
    writer,
    tuples,
    ...createManagement({ invitationTtlHours: overrides.invitationTtlHours ?? 168 }, parts),
    close: async () => {
      await activations.stop();
      await writer.close(5_000);
    },
  };
}
