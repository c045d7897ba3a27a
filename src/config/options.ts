import {
  PATH,
  PRINTABLE,
  allowedHostsOption,
  behindProxyOption,
  bodyMemoryOption,
  commitOption,
  databaseUrlOption,
  directoryOption,
  hostOption,
  http1IdleOption,
  logLevelOption,
  portOption,
} from './common-options.ts';
import {
  booleanOption,
  choiceOption,
  decimalOption,
  integerOption,
  listOption,
  optionalIntegerOption,
  secretJsonOption,
  secretLinesOption,
  secretListOption,
  textOption,
  type OptionTable,
  type OptionValues,
} from './option.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/**
 * Every setting of the authorization service: the one place that knows names, defaults, units and
 * bounds. The typed configuration, its validation and docs/configuration.md all follow from it.
 * A computed default may look only at options that stand above its own.
 */
export const OPTIONS = {
  connectPort: portOption(
    'GATEWAY_CONNECT_PORT',
    'Port of the RPC listener. 0 takes a free one.',
    8080,
  ),
  metricsPort: portOption(
    'GATEWAY_METRICS_PORT',
    'Port of /metrics, /healthz and /readyz. 0 takes a free one.',
    9090,
  ),
  listenFds: listOption({
    env: 'GATEWAY_LISTEN_FDS',
    description:
      'Set by `npm start -- --instances N`: descriptors of sockets that listen already, instead of GATEWAY_HOST and GATEWAY_CONNECT_PORT; the first is accepted from at once, those of neighbours where they leave connections waiting.',
    fallback: [],
    pattern: /^\d{1,5}$/,
    rule: 'a descriptor',
  }),
  metricsListenFd: optionalIntegerOption({
    env: 'GATEWAY_METRICS_LISTEN_FD',
    description: 'The same for GATEWAY_METRICS_PORT. Both are set, or neither.',
    min: 3,
    max: 65_535,
  }),
  http2Framing: choiceOption({
    env: 'GATEWAY_HTTP2',
    description:
      "What cuts and writes the frames of HTTP/2: the service's own framing, or that of Node.js, which costs more of a processor and is the way back where a client does not get on with ours.",
    fallback: 'own',
    values: ['own', 'node'],
  }),
  httpIdleMs: http1IdleOption('GATEWAY_HTTP_IDLE_MS'),
  instanceName: textOption({
    env: 'GATEWAY_INSTANCE_NAME',
    description: 'In each log line as `process`, where several instances write to one log.',
    fallback: undefined,
    fallbackText: 'unset',
    ...PRINTABLE,
  }),
  serviceAuthTokens: secretListOption({
    env: 'GATEWAY_SERVICE_AUTH_TOKENS',
    description:
      'Service tokens that callers may present as `Authorization: Bearer`, and which reach everything. Empty, and no GATEWAY_CALLERS: every caller is trusted, and a warning is logged at start. Their file is read again whenever it changes.',
  }),
  callers: secretJsonOption({
    env: 'GATEWAY_CALLERS',
    description:
      'Callers by name, each with its tokens, its scopes and a rate, as a JSON document: docs/operations.md, "Callers". Their file is read again whenever it changes.',
  }),
  openServices: listOption({
    env: 'GATEWAY_OPEN_SERVICES',
    description:
      'What answers over gRPC without a credential: `health`, `reflection`, both, or `none`. /healthz and /readyz always do.',
    fallback: ['health'],
    pattern: /^(health|reflection|none)$/,
    rule: '`health`, `reflection` or `none`',
  }),
  adminApiSecrets: secretLinesOption({
    env: 'GATEWAY_ADMIN_API_SECRET',
    description:
      'Operator secret that AdminService expects in `X-Admin-Secret`; while it is rotated, several. Empty: AdminService is disabled. Its file is read again whenever it changes.',
  }),
  host: hostOption('GATEWAY_HOST', 'both listeners'),
  isBehindProxy: behindProxyOption('GATEWAY_BEHIND_PROXY', 'GATEWAY_HOST'),
  allowedHosts: allowedHostsOption(
    'GATEWAY_ALLOWED_HOSTS',
    'Without service tokens: names that requests may be addressed to (Host, :authority) on both ports, beside localhost, *.localhost, loopback addresses and, once GATEWAY_HOST is none of these, every IP address. Others are refused with permission_denied. With service tokens every name will do.',
  ),
  databaseUrl: databaseUrlOption(
    'PostgreSQL to use, directly or through a pooler in session mode. One address, which leads to the primary: see docs/operations.md, "A PostgreSQL of your own" and "Failover". Unset: an embedded server starts under GATEWAY_DATA_DIR.',
  ),
  dataDir: directoryOption('GATEWAY_DATA_DIR', 'Directory of the embedded PostgreSQL.', '.data'),
  instances: optionalIntegerOption({
    env: 'GATEWAY_INSTANCES',
    description:
      'Instances that are meant to run on this database. Their connections, and those of one more during a rollout, must fit into what the server grants, or none starts. Unset: those that run are counted.',
    min: 1,
    max: 1000,
  }),
  pgPoolSize: integerOption({
    env: 'GATEWAY_PG_POOL_SIZE',
    description: 'Connections that the gateway thread keeps to PostgreSQL.',
    fallback: 10,
    min: 2,
    max: 200,
  }),
  defaultProjectId: textOption({
    env: 'GATEWAY_DEFAULT_PROJECT_ID',
    description: 'Project that an empty project_id names; provisioned at the first start.',
    fallback: 'default',
    fallbackText: 'default',
    pattern: /^[a-z0-9][a-z0-9_-]{0,62}$/,
    rule: '1-63 characters of a-z, 0-9, `_` and `-`, not beginning with `_` or `-`',
  }),
  region: textOption({
    env: 'GATEWAY_REGION',
    description: 'Region of this instance. Projects pinned to another region are refused.',
    fallback: '',
    fallbackText: 'empty: serves unpinned projects only',
    pattern: /^[a-z0-9-]{1,63}$/,
    rule: '1-63 characters of a-z, 0-9 and `-`',
  }),
  projectTtlSeconds: decimalOption({
    env: 'GATEWAY_PROJECT_TTL_SECONDS',
    description: 'How long project settings are cached; bounds how late other instances follow.',
    fallback: 30,
    min: 0,
    max: 3600,
    unit: 'seconds',
  }),
  invitationTtlHours: decimalOption({
    env: 'GATEWAY_INVITATION_TTL_HOURS',
    description: 'How long an invitation can be accepted.',
    fallback: 168,
    min: 0.000001,
    max: 87_600,
    unit: 'hours',
  }),
  maxCheckReads: integerOption({
    env: 'GATEWAY_MAX_CHECK_READS',
    description:
      'Read budget of one evaluation: one adjacency list looked up, plus one per 64 further entries. Projects may override it.',
    fallback: 10_000,
    min: 100,
    max: 1_000_000_000,
    unit: 'reads',
  }),
  metricsProjects: integerOption({
    env: 'GATEWAY_METRICS_PROJECTS',
    description:
      'Projects with metric series of their own: those that read most, and those that are refused most; all others are counted together as `other`.',
    fallback: 20,
    min: 0,
    max: 200,
    unit: 'projects',
  }),
  maxCheckDepth: integerOption({
    env: 'GATEWAY_MAX_CHECK_DEPTH',
    description: 'Nodes on one path of an evaluation; a deeper path denies.',
    fallback: 256,
    min: 1,
    max: 2048,
    unit: 'nodes',
  }),
  recordQuestionsEvery: integerOption({
    env: 'GATEWAY_RECORD_QUESTIONS_EVERY',
    description:
      'One of so many Check and BatchCheck calls is remembered, at random, to preview models with: namespace, object, relation, user and context, in memory alone. 0 remembers none.',
    fallback: 0,
    min: 0,
    max: 1_000_000_000,
    unit: 'calls',
  }),
  recordQuestionsBytes: integerOption({
    env: 'GATEWAY_RECORD_QUESTIONS_BYTES',
    description: 'What remembered questions take at most; the oldest are forgotten first.',
    fallback: 16 * MIB,
    min: 64 * 1024,
    max: GIB,
    unit: 'bytes',
  }),
  recordFile: textOption({
    env: 'GATEWAY_RECORD_FILE',
    description:
      'File that the questions of GATEWAY_RECORD_QUESTIONS_EVERY are appended to with their times, for load tests to ask again: project, tenant, namespace, object, relation and user; no token and no context. Readable by its owner alone. With GATEWAY_INSTANCE_NAME its name ends with that.',
    fallback: undefined,
    fallbackText: 'unset: none',
    ...PATH,
  }),
  recordFileBytes: integerOption({
    env: 'GATEWAY_RECORD_FILE_BYTES',
    description:
      'What that file and the one before it (`.1`) take at most; each has half of it, and the older one goes.',
    fallback: 64 * MIB,
    min: 64 * 1024,
    max: 64 * GIB,
    unit: 'bytes',
  }),
  watchStreams: integerOption({
    env: 'GATEWAY_WATCH_STREAMS',
    description:
      'Streams that may follow changes of tuples at once (Watch and GET /v1/watch). 0 lets nobody follow.',
    fallback: 0,
    min: 0,
    max: 10_000,
    unit: 'streams',
  }),
  streamStallSeconds: integerOption({
    env: 'GATEWAY_STREAM_STALL_SECONDS',
    description:
      'A reader of any answer or stream who takes nothing for this long, and at most half of it longer, is let go; of GET /v1/watch and GET /v1/tuples with an error.',
    fallback: 60,
    min: 1,
    max: 3_600,
    unit: 'seconds',
  }),
  maxBodyBytes: integerOption({
    env: 'GATEWAY_MAX_BODY_BYTES',
    description: 'Largest request body, after decompression.',
    fallback: 8 * MIB,
    min: 1024,
    max: GIB,
    unit: 'bytes',
  }),
  bodyMemoryBytes: bodyMemoryOption('GATEWAY_BODY_MEMORY_BYTES', ({ maxBodyBytes }) =>
    Number(maxBodyBytes ?? 0),
  ),
  maxWriteUpdates: integerOption({
    env: 'GATEWAY_MAX_WRITE_UPDATES',
    description: 'Updates in one WriteRelationTuples.',
    fallback: 1000,
    min: 1,
    max: 100_000,
    unit: 'updates',
  }),
  maxBatchItems: integerOption({
    env: 'GATEWAY_MAX_BATCH_ITEMS',
    description: 'Items in one BatchCheck.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
    unit: 'items',
  }),
  requestTimeoutMs: integerOption({
    env: 'GATEWAY_REQUEST_TIMEOUT_MS',
    description:
      'Deadline of a request whose caller states none, and the longest that one may state.',
    fallback: 30_000,
    min: 10,
    max: 3_600_000,
    unit: 'milliseconds',
  }),
  workers: integerOption({
    env: 'GATEWAY_WORKERS',
    description: 'Decision worker threads. Each shard has one owner among them.',
    fallback: {
      of: (machine) => Math.min(Math.max(machine.cpuCount - 1, 1), 256),
      text: 'processors less one, at least 1',
    },
    min: 1,
    max: 256,
  }),
  shardWorkers: integerOption({
    env: 'GATEWAY_SHARD_WORKERS',
    description:
      'Workers that may answer for one tenant that keeps its owner busy, each with an index of it within its share of GATEWAY_INDEX_BYTES. 1: the owner alone, so that a flood of one tenant leaves the other workers to other tenants.',
    fallback: 1,
    min: 1,
    max: 256,
  }),
  indexBytes: integerOption({
    env: 'GATEWAY_INDEX_BYTES',
    description:
      'Memory for tuple indexes and what grows with them, all workers together; least recently used shards are dropped beyond it. Half, 32 MiB at most, is left to the process around the indexes.',
    fallback: {
      // Half: the rest is for the heaps of the threads, buffers, and copies made while loading.
      of: (machine) => Math.max(Math.floor(machine.memoryBytes / 2), 16 * MIB),
      text: "half of the container's memory limit (of the machine's memory without one)",
    },
    min: 16 * MIB,
    max: 16_384 * GIB,
    unit: 'bytes',
  }),
  threadIndexBytes: integerOption({
    env: 'GATEWAY_THREAD_INDEX_BYTES',
    description:
      "Of GATEWAY_INDEX_BYTES, what second indexes of tenants with many single Checks may take on the gateway's own thread, which then answers these Checks without a worker; at most an eighth of what indexes may take beyond 16 MiB. 0: none, so that workers answer everything.",
    fallback: 64 * MIB,
    min: 0,
    max: 16 * GIB,
    unit: 'bytes',
  }),
  threadChecksPerSecond: integerOption({
    env: 'GATEWAY_THREAD_CHECKS_PER_SECOND',
    description:
      "How many single Checks of a tenant a second, for 0.3 seconds in a row, give it an index on the gateway's own thread; with a quarter of that for ten seconds it loses it. Below some hundreds what is won is less than what the load of the index costs.",
    fallback: 250,
    min: 10,
    max: 1_000_000,
  }),
  loadTimeoutSeconds: integerOption({
    env: 'GATEWAY_LOAD_TIMEOUT_SECONDS',
    description:
      'How long the load of one shard may take before it fails. A shard that takes longer than this is never answered: raise it for very large ones.',
    fallback: 60,
    min: 1,
    max: 3600,
    unit: 'seconds',
  }),
  warmUpSeconds: decimalOption({
    env: 'GATEWAY_WARM_UP_SECONDS',
    description:
      'How long a start may load the shards that were asked last before it reports ready. 0: it does not.',
    fallback: 20,
    min: 0,
    max: 3600,
    unit: 'seconds',
  }),
  warmUpBytes: optionalIntegerOption({
    env: 'GATEWAY_WARM_UP_BYTES',
    description:
      'How many bytes of indexes a start loads before it reports ready, as they were when last written down. Unset: GATEWAY_INDEX_BYTES.',
    min: 0,
    max: 16_384 * GIB,
    unit: 'bytes',
  }),
  workerQueueMax: integerOption({
    env: 'GATEWAY_WORKER_QUEUE_MAX',
    description: 'Requests waiting for one worker before more are refused (resource_exhausted).',
    fallback: 20_000,
    min: 1,
    max: 10_000_000,
    unit: 'requests',
  }),
  shardQueueMax: integerOption({
    env: 'GATEWAY_SHARD_QUEUE_MAX',
    description:
      'Requests waiting for one shard, of each worker that answers for it, before more are refused (resource_exhausted).',
    fallback: 10_000,
    min: 1,
    max: 10_000_000,
    unit: 'requests',
  }),
  writeQueueMax: integerOption({
    env: 'GATEWAY_WRITE_QUEUE_MAX',
    description: 'Writes waiting for one shard before more are refused (resource_exhausted).',
    fallback: 1000,
    min: 1,
    max: 1_000_000,
    unit: 'writes',
  }),
  changeRetentionSeconds: integerOption({
    env: 'GATEWAY_CHANGE_RETENTION_SECONDS',
    description: 'How long committed changes are kept; a worker further behind reloads its shard.',
    fallback: 3600,
    min: 1,
    max: 31_536_000,
    unit: 'seconds',
  }),
  expiredGraceSeconds: integerOption({
    env: 'GATEWAY_EXPIRED_GRACE_SECONDS',
    description: 'How long expired tuples stay stored (and readable) before they are purged.',
    fallback: 86_400,
    min: 0,
    max: 31_536_000,
    unit: 'seconds',
  }),
  pollIntervalMs: integerOption({
    env: 'GATEWAY_POLL_INTERVAL_MS',
    description: 'Backstop poll for changes whose notification was lost.',
    fallback: 2000,
    min: 10,
    max: 3_600_000,
    unit: 'milliseconds',
  }),
  clockUncertaintyMaxMs: integerOption({
    env: 'GATEWAY_CLOCK_UNCERTAINTY_MAX_MS',
    description:
      "How far the time by which expiry is decided may be from the database's; an instance that is less certain is not ready.",
    fallback: 500,
    min: 1,
    max: 60_000,
    unit: 'milliseconds',
  }),
  fsckRowsPerSecond: integerOption({
    env: 'GATEWAY_FSCK_ROWS_PER_SECOND',
    description:
      'Stored tuples read in the background and compared with the loaded indexes, all workers of this process together; 0: only when asked to (npm run fsck).',
    fallback: 2_000,
    min: 0,
    max: 10_000_000,
    unit: 'tuples per second',
  }),
  fsckIntervalSeconds: integerOption({
    env: 'GATEWAY_FSCK_INTERVAL_SECONDS',
    description:
      'How long after it was loaded or compared an index is compared with what is stored; longer where the rate does not suffice.',
    fallback: 3600,
    min: 1,
    max: 31_536_000,
    unit: 'seconds',
  }),
  drainMs: integerOption({
    env: 'GATEWAY_DRAIN_MS',
    description: 'After SIGTERM, how long the ports go on accepting while readiness fails.',
    fallback: 1000,
    min: 0,
    max: 600_000,
    unit: 'milliseconds',
  }),
  shutdownTimeoutMs: integerOption({
    env: 'GATEWAY_SHUTDOWN_TIMEOUT_MS',
    description: 'After draining, how long requests in flight may take to end.',
    fallback: 10_000,
    min: 0,
    max: 600_000,
    unit: 'milliseconds',
  }),
  stageTimes: booleanOption({
    env: 'GATEWAY_STAGE_TIMES',
    description:
      'Measures where the time of decision calls goes, by stage (gatehouse_stage_seconds_total). Costs some hundred nanoseconds a call while it is on.',
    fallback: false,
  }),
  auditLog: booleanOption({
    env: 'GATEWAY_AUDIT_LOG',
    description: 'Writes every tuple change and admin mutation to the log as an audit record.',
    fallback: false,
  }),
  logLevel: logLevelOption('GATEWAY_LOG_LEVEL'),
  commit: commitOption('GATEWAY_COMMIT', 'gatehouse_build_info'),
} as const satisfies OptionTable;

/** The validated configuration. Passed explicitly; nothing else reads the environment. */
export type Config = OptionValues<typeof OPTIONS>;
