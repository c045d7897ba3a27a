import type { Config } from '../config/options.ts';
import { TokenCodec } from '../model/consistency-token.ts';
import type { BackgroundLoops } from '../observability/background-loops.ts';
import type { EventLog } from '../observability/logger.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import type { ModelsOfWrites } from '../services/bulk/version-admission.ts';
import { OpenFgaStores } from '../services/openfga/openfga-stores.ts';
import type { AuditSink, ChangeHints } from '../services/ports.ts';
import type { SettingsSource } from '../services/projects/settings-source.ts';
import { HeadRevisions } from '../services/reads/head-revisions.ts';
import { ReadIndex } from '../services/reads/read-index.ts';
import { ReadPositions } from '../services/reads/read-positions.ts';
import { ExpiredTuplePurge } from '../services/tuples/expired-tuple-purge.ts';
import { TupleService } from '../services/tuples/tuple-service.ts';
import { TupleWatch, type TupleWatchOptions } from '../services/watch/tuple-watch.ts';
import { WatchCursors } from '../services/watch/watch-cursor.ts';
import { WatchHub } from '../services/watch/watch-hub.ts';
import { ChangeNotifier } from '../services/writes/change-notifier.ts';
import { TupleWriter, type TupleWriterOptions } from '../services/writes/tuple-writer.ts';
import type { TupleWrites } from '../services/writes/tuple-writes.ts';
import { SettingsRules, type WriteRules } from '../services/writes/write-rules.ts';
import { IdSource } from '../shared/ids.ts';
import type { Clock } from '../shared/time/clock.ts';
import { SharedWork } from '../store/postgres/shared-work.ts';
import { type Bulk, createBulk } from './bulk.ts';
import type { Database } from './database/database.ts';
import { startIndexLinks } from './database/index-links.ts';
import { createManagement, type Management } from './management.ts';
import { MeasuredWriter } from './metrics/measured-writer.ts';
import type { Metrics } from './metrics/metrics.ts';
import { createProjectServices, type ProjectServices } from './project-services.ts';

/** Followers of changes, and the hub that wakes them. */
type Watch = {
  /** Notified of changes, for those who follow them. */
  readonly hub: WatchHub;
  readonly tupleWatch: TupleWatch;
};

/** Wires it. `tokenKey` is the deployment's. */
function createWatch(
  hub: WatchHub,
  parts: Omit<TupleWatchOptions, 'hub' | 'cursors'> & { readonly tokenKey: Uint8Array },
): Watch {
  const cursors = new WatchCursors(parts.tokenKey);
  return { hub, tupleWatch: new TupleWatch({ ...parts, hub, cursors }) };
}

/** Hints for other instances that also wake who follows here. */
function hintsTo(others: ChangeHints, hub: WatchHub): ChangeHints {
  return {
    hint: (shard, revision) => {
      others.hint(shard, revision);
      hub.changed(shard);
    },
  };
}

const READ_TUPLES_MAX = 10_000;
const EXPORT_GRANTS_MAX = 100_000;
/** The most that a change row and a step of a worker hold well. */
const DELETES_PER_REVISION_MAX = 2_000;
const HEAD_REVISIONS_MAX = 200_000;
const HEAD_REVISIONS_MIN = 10_000;
/** Head revisions are beside the indexes: a fifth of what these may take, at some 200 bytes each, or less. */
const INDEX_BYTES_PER_HEAD_REVISION = 1_024;
const TOKENS_REMEMBERED_MAX = 50_000;
const PURGE_INTERVAL_MS = 60_000;
/** Groups that commit at once: more only split the groups smaller (bench/writes.ts). */
const WRITE_LANES = 2;
/** Writes of more updates have a lane of their own, where the pool has a connection for it. */
const LARGE_WRITE_UPDATES = 1_000;
const LARGE_WRITE_POOL_MIN = WRITE_LANES + 2;
/** Commits within this time share notifications, with one revision for each shard. */
const NOTIFY_INTERVAL_MS = 20;
/** Beyond this the rest is left to the poll: a hint may be lost. Twenty notifications at once. */
const NOTIFY_SHARDS_MAX = 4_096;

/** The use cases of this instance. */
export type Services = Management &
  Bulk &
  Watch &
  ProjectServices & {
    readonly headRevisions: HeadRevisions;
    readonly index: ReadIndex;
    readonly positions: ReadPositions;
    readonly writer: TupleWriter;
    readonly notifier: ChangeNotifier;
    readonly tuples: TupleService;
    readonly purge: ExpiredTuplePurge;
    /** Stores of OpenFGA's API. */
    readonly openFgaStores: OpenFgaStores;
    /** Rules that tuples of projects must fit. */
    readonly rules: WriteRules;
    /** Lock of work that one instance at a time does. */
    readonly shared: SharedWork;
    /** Whether no other instance can have written meanwhile. */
    isAlone(): boolean;
    /** Fails the reads that wait for the read index, and closes its connections. Idempotent. */
    stopIndex(): Promise<void>;
  };

export type ServicesOptions = {
  readonly config: Config;
  readonly database: Database;
  /** By which expiry is decided: the database's time. */
  readonly clock: Clock;
  readonly shards: ShardClient;
  readonly metrics: Metrics;
  readonly audit: AuditSink | undefined;
  readonly log: EventLog;
  readonly loops: BackgroundLoops;
  /** Tests only: false has every read ask the read index, though no other instance is there. */
  readonly isAlone?: (() => boolean) | undefined;
};

/** Wires the services to the database and the workers. */
export function createServices(options: ServicesOptions): Services {
  const { config, database, clock, metrics, audit } = options;
  const { pool } = database;
  const ids = new IdSource(clock);
  const codec = new TokenCodec({
    key: database.deployment.tokenKey,
    rememberMax: TOKENS_REMEMBERED_MAX,
  });
  const isAlone = options.isAlone ?? ((): boolean => database.membership.lease.isAlone());
  const headRevisions = new HeadRevisions({ entriesMax: headRevisionsMax(config.indexBytes) });
  const shared = new SharedWork({
    target: database.target,
    onRun: (work, outcome) => metrics.upkeepRuns.inc({ work, outcome }),
    log: options.log,
  });
  const ofProjects = createProjectServices(options, isAlone, shared);
  const { projects, settingsSource } = ofProjects;
  const { index, stopIndex } = createIndex(options, { clock, headRevisions, settingsSource });
  const positions = new ReadPositions({ codec, headRevisions, index });
  const notifier = createNotifier(options);
  const rules = new SettingsRules(settingsSource);
  const hub = new WatchHub();
  const hints = hintsTo(notifier, hub);
  const writer = createWriter(options, { clock, ids, headRevisions, hints, settingsSource, rules });
  const writes = new MeasuredWriter(writer, metrics.writeDuration);
  const tuples = new TupleService({
    pool,
    clock,
    settingsSource,
    codec,
    headRevisions,
    positions,
    writer: writes,
    rules,
    onUndecidable: (field) => metrics.undecidableTuples[field].add(1),
    updatesMax: config.maxWriteUpdates,
    readTuplesMax: READ_TUPLES_MAX,
    deletesPerRevisionMax: DELETES_PER_REVISION_MAX,
    exportGrantsMax: EXPORT_GRANTS_MAX,
  });
  const purge = createPurge(options, writes, ids, shared);
  const parts = { pool, clock, ids, settingsSource, headRevisions, index, isAlone, writer: writes };
  const management = createManagement(config, parts);
  const reads = { headRevisions, index, positions, rules, isAlone, stopIndex };
  const bulk = createBulk(config, {
    ...parts,
    codec,
    positions,
    rules,
    shared,
    audit,
    onUndecidable: (field) => metrics.undecidableTuples[field].add(1),
    tokenKey: database.deployment.tokenKey,
    metrics: metrics.bulk,
    log: options.log,
    loops: options.loops,
    modelsOfWrites: modelsOfWrites(ofProjects),
  });
  const watch = createWatch(hub, {
    ...parts,
    codec,
    positions,
    tokenKey: database.deployment.tokenKey,
    streamsMax: config.watchStreams,
    metrics: metrics.watch,
  });
  const openFgaStores = createOpenFgaStores(options, { projects, settingsSource });
  const writing = { writer, notifier, tuples, purge, shared, openFgaStores };
  return { ...reads, ...ofProjects, ...writing, ...management, ...bulk, ...watch };
}

function modelsOfWrites({ models, namedVersions }: ProjectServices): ModelsOfWrites {
  return {
    model: (...version) => namedVersions.model(...version),
    ignoreMisfits: (...project) => models.ignoreMisfits(...project),
  };
}

function createOpenFgaStores(
  { database, clock }: ServicesOptions,
  parts: Pick<ProjectServices, 'projects' | 'settingsSource'>,
): OpenFgaStores {
  const { pool, membership: admission, deployment } = database;
  return new OpenFgaStores({ pool, admission, clock, ...parts, tokenKey: deployment.tokenKey });
}

function createIndex(
  { config, database, shards, metrics, log }: ServicesOptions,
  parts: {
    readonly clock: Clock;
    readonly headRevisions: HeadRevisions;
    readonly settingsSource: SettingsSource;
  },
): Pick<Services, 'index' | 'stopIndex'> {
  const { clock, headRevisions, settingsSource } = parts;
  const links = startIndexLinks(
    database.target,
    database.history.check,
    { connected: () => index.connected(), disconnected: () => index.disconnected() },
    log,
  );
  const index = new ReadIndex({
    clock,
    headRevisions,
    connections: links.connections,
    settingsVersionOf: (projectId) => settingsSource.versionOf(projectId),
    carry: (carried) => shards.applyCarried(carried),
    // The workers together accept as many requests.
    waitersMax: config.workers * config.workerQueueMax,
    metrics: {
      ...metrics.readIndex,
      historyLost: () => {
        metrics.readIndex.historyLost();
        database.history.lost(database.pool).catch((error: unknown) => {
          log('warn', 'deployment_epoch_not_started', { error: String(error) });
        });
      },
    },
  });
  const stopIndex = async (): Promise<void> => {
    index.stop();
    await links.stop();
  };
  return { index, stopIndex };
}

function createWriter(
  { config, database, shards, metrics, audit }: ServicesOptions,
  {
    settingsSource,
    ...parts
  }: Pick<TupleWriterOptions, 'clock' | 'ids' | 'headRevisions' | 'hints' | 'rules'> & {
    readonly settingsSource: SettingsSource;
  },
): TupleWriter {
  return new TupleWriter({
    ...parts,
    pool: database.pool,
    admission: database.membership,
    committed: {
      onCommitted(changes) {
        metrics.commits.inc(changes.length);
        // Committed under newer settings than are known here: they count from now on.
        for (const change of changes) {
          settingsSource.mustBeAtLeast(change.projectId, change.settingsVersion);
        }
        database.history.committed(changes);
        shards.applyCommitted(changes);
      },
    },
    audit,
    lanes: WRITE_LANES,
    ...(config.pgPoolSize < LARGE_WRITE_POOL_MIN ? {} : { largeUpdatesMin: LARGE_WRITE_UPDATES }),
    queuedWritesMax: config.writeQueueMax,
    queuedUpdatesMax: Math.max(100_000, config.maxWriteUpdates),
    groupWritesMax: 256,
    groupUpdatesMax: 2_000,
    writeTimeoutMs: config.requestTimeoutMs,
    answerTimeoutMs: 45_000,
    attemptsMax: 5,
    retryDelayMs: 20,
    onStoreError: database.refusals.note,
  });
}

function createNotifier({ database: { pool }, loops }: ServicesOptions): ChangeNotifier {
  return new ChangeNotifier({
    pool,
    intervalMs: NOTIFY_INTERVAL_MS,
    shardsMax: NOTIFY_SHARDS_MAX,
    report: loops.loop('change_hints'),
  });
}

function createPurge(
  { config, database, clock, loops }: ServicesOptions,
  writer: TupleWrites,
  ids: IdSource,
  shared: SharedWork,
): ExpiredTuplePurge {
  return new ExpiredTuplePurge({
    pool: database.pool,
    shared,
    clock,
    writer,
    graceMs: config.expiredGraceSeconds * 1000,
    intervalMs: PURGE_INTERVAL_MS,
    shardsMax: 1_000,
    tuplesMax: 1_000,
    requestId: () => ids.uuid(),
    report: loops.loop('purge'),
  });
}

function headRevisionsMax(indexBytes: number): number {
  return Math.min(
    HEAD_REVISIONS_MAX,
    Math.max(HEAD_REVISIONS_MIN, Math.floor(indexBytes / INDEX_BYTES_PER_HEAD_REVISION)),
  );
}
