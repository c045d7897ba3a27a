import {
  allowedHostsOption,
  behindProxyOption,
  bodyMemoryOption,
  commitOption,
  databaseUrlOption,
  directoryOption,
  hostOption,
  http1IdleOption,
  portOption,
} from '../../config/common-options.ts';
import { http1ParserOption } from '../../config/http1-parser-option.ts';
import { loadOptions, redactedOptions, type Environment } from '../../config/load-options.ts';
import {
  booleanOption,
  choiceOption,
  integerOption,
  listOption,
  secretListOption,
  textOption,
  type Machine,
  type OptionTable,
  type OptionValues,
} from '../../config/option.ts';
import { assert } from '../../shared/assert.ts';
import { type ChannelRegistry, CHANNELS } from '../channels/registry.ts';

const SECRET_KEY_LENGTH_MIN = 16;

/** The settings of the service that belong to no channel. */
export const SERVICE_OPTIONS = {
  internalPort: portOption(
    'NOTIFY_INTERNAL_PORT',
    'Port on which backends call notify.v1.NotifyService. 0 takes a free one.',
    9200,
  ),
  clientPort: portOption(
    'NOTIFY_CLIENT_PORT',
    "Port on which users' devices open their live streams. 0 takes a free one.",
    9100,
  ),
  metricsPort: portOption(
    'NOTIFY_METRICS_PORT',
    'Port of /metrics, /healthz, /health, /readyz and /livez. 0 takes a free one.',
    9090,
  ),
  http1Parser: http1ParserOption('NOTIFY_HTTP1'),
  httpIdleMs: http1IdleOption('NOTIFY_HTTP_IDLE_MS'),
  serviceAuthTokens: secretListOption({
    env: 'NOTIFY_SERVICE_AUTH_TOKENS',
    description:
      'Service tokens that backends may present as `Authorization: Bearer` on the internal listener. Empty: every caller is trusted, and a warning is logged at start. Their file is read again whenever it changes.',
  }),
  host: hostOption('NOTIFY_HOST', 'all listeners'),
  isBehindProxy: behindProxyOption('NOTIFY_BEHIND_PROXY', 'NOTIFY_HOST'),
  allowedHosts: allowedHostsOption(
    'NOTIFY_ALLOWED_HOSTS',
    'Without service tokens: names that requests may be addressed to (Host) on every port, beside localhost, *.localhost, loopback addresses and, once NOTIFY_HOST is none of these, every IP address. Others are refused with permission_denied. With service tokens every name will do.',
  ),
  streamSecret: textOption({
    env: 'NOTIFY_STREAM_SECRET',
    description:
      'Key of stream tokens, the same on every instance. Unset: a random one, so that tokens end with the process.',
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^[\x21-\x7e]{16,}$/,
    rule: 'at least 16 characters of printable ASCII without spaces',
    secret: true,
  }),
  allowedOrigins: listOption({
    env: 'NOTIFY_ALLOWED_ORIGINS',
    description:
      'Origins of pages that may open streams; `*` for any, since a stream token is needed in any case.',
    fallback: ['*'],
    pattern: /^(?:\*|https?:\/\/[^\s/]+)$/,
    rule: '* or origins such as https://app.example',
  }),
  storeDriver: choiceOption({
    env: 'NOTIFY_STORE_DRIVER',
    description:
      'Store of notifications. PostgreSQL is the only one: `memory`, which forgot all at a restart, is refused.',
    fallback: 'postgres',
    values: ['postgres'],
  }),
  databaseUrl: databaseUrlOption(
    'PostgreSQL to use, in schema `notify`; it may be the one of the authorization service. Unset: the service starts an embedded server under NOTIFY_DATA_DIR.',
  ),
  dataDir: directoryOption(
    'NOTIFY_DATA_DIR',
    'Where the embedded server keeps its data.',
    '.data/notify',
  ),
  pgPoolSize: integerOption({
    env: 'NOTIFY_PG_POOL_SIZE',
    description: 'Connections to PostgreSQL, beside one that listens.',
    fallback: 8,
    min: 1,
    max: 200,
  }),
  logLevel: textOption({
    env: 'NOTIFY_LOG_LEVEL',
    description:
      'debug, info, warn or error. Anything else counts as info and is told with a warning. At debug each call is logged.',
    fallback: 'info',
    fallbackText: 'info',
    pattern: /^.*$/s,
    rule: 'debug, info, warn, error',
  }),
  liveConnections: booleanOption({
    env: 'NOTIFY_LIVE_CONNECTIONS',
    description: 'Whether devices may open live streams; false: the client listener answers 503.',
    fallback: true,
  }),
  connectionsMax: integerOption({
    env: 'NOTIFY_MAX_CONNECTIONS',
    description: 'Live streams open at once; further ones are answered 429.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  connectionsPerUserMax: integerOption({
    env: 'NOTIFY_MAX_CONNECTIONS_PER_USER',
    description: 'Live streams of one user open at once; further ones are answered 429.',
    fallback: 20,
    min: 1,
    max: 10_000,
  }),
  bodyMemoryBytes: bodyMemoryOption('NOTIFY_BODY_MEMORY_BYTES', () => 0),
  bufferEventsMax: integerOption({
    env: 'NOTIFY_CONNECTION_BUFFER_EVENTS',
    description:
      'Events that may wait for a stream whose client reads slowly; beyond that the oldest is dropped.',
    fallback: 256,
    min: 1,
    max: 100_000,
  }),
  heartbeatMs: integerOption({
    env: 'NOTIFY_HEARTBEAT_MS',
    description: 'How often a comment is sent on each stream.',
    fallback: 15_000,
    min: 100,
    max: 600_000,
    unit: 'ms',
  }),
  writeQueueMax: integerOption({
    env: 'NOTIFY_WRITE_QUEUE_MAX',
    description: 'Notify calls that may wait for the store; further ones are refused.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  sendsPerTenantMax: integerOption({
    env: 'NOTIFY_SENDS_PER_TENANT_MAX',
    description:
      'Attempts of one tenant in progress at once, of each channel; never more than half of its places, nor more than are free.',
    fallback: 32,
    min: 1,
    max: 1_000,
  }),
  sendsPerEndpointMax: integerOption({
    env: 'NOTIFY_SENDS_PER_ENDPOINT_MAX',
    description:
      'Attempts to one endpoint in progress at once; never more than a quarter of the places of its channel.',
    fallback: 8,
    min: 1,
    max: 1_000,
  }),
  sendTimeoutMs: integerOption({
    env: 'NOTIFY_SEND_TIMEOUT_MS',
    description: 'How long one attempt to deliver may take.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
    unit: 'ms',
  }),
  attemptsMax: integerOption({
    env: 'NOTIFY_SEND_ATTEMPTS',
    description:
      'Attempts to deliver before a delivery is dead. By default these take 24 to 48 hours, depending on the jitter: twelve within 70 minutes, then one every 30 to 60 minutes.',
    fallback: 60,
    min: 1,
    max: 100,
  }),
  retryBaseMs: integerOption({
    env: 'NOTIFY_RETRY_BASE_MS',
    description:
      'Wait before the second attempt; doubles with each further one. Each wait is between half and the whole of it, by chance.',
    fallback: 1_000,
    min: 1,
    max: 3_600_000,
    unit: 'ms',
  }),
  retryMaxMs: integerOption({
    env: 'NOTIFY_RETRY_MAX_MS',
    description:
      'Longest wait between two attempts, unless a receiver asks for more by `Retry-After`, up to a day.',
    fallback: 3_600_000,
    min: 1,
    max: 86_400_000,
    unit: 'ms',
  }),
  endpointFailingSeconds: integerOption({
    env: 'NOTIFY_ENDPOINT_FAILING_SECONDS',
    description:
      'An endpoint to which nothing has arrived for so long is disabled at its next failure, until EnableEndpoint. 0: never.',
    fallback: 432_000,
    min: 0,
    max: 31_536_000,
    unit: 's',
  }),
  secretKeys: secretListOption({
    env: 'NOTIFY_SECRET_KEYS',
    description:
      'Keys under which signing secrets are kept in the database, each at least 16 characters: the first seals, all open; after a start everything is sealed with the first. Unset: they are kept as they are, and a warning is logged.',
  }),
  retentionHours: integerOption({
    env: 'NOTIFY_RETENTION_HOURS',
    description: 'How long notifications and their deliveries are kept.',
    fallback: 720,
    min: 1,
    max: 87_600,
    unit: 'hours',
  }),
  deadLetterHours: integerOption({
    env: 'NOTIFY_DEAD_LETTER_HOURS',
    description:
      'How long deliveries are kept that were given up, from then on; at most as long as their notification. 0: as long as that.',
    fallback: 0,
    min: 0,
    max: 87_600,
    unit: 'hours',
  }),
  drainMs: integerOption({
    env: 'NOTIFY_DRAIN_MS',
    description:
      'How long everything goes on being served after shutdown has begun, while /healthz answers 503.',
    fallback: 1_000,
    min: 0,
    max: 600_000,
    unit: 'ms',
  }),
  shutdownTimeoutMs: integerOption({
    env: 'NOTIFY_SHUTDOWN_TIMEOUT_MS',
    description: 'How long calls and deliveries in progress may take to end after that.',
    fallback: 10_000,
    min: 0,
    max: 600_000,
    unit: 'ms',
  }),
  commit: commitOption('NOTIFY_COMMIT', 'the log and notify_build_info'),
} as const satisfies OptionTable;

/** The settings of the service, and beside them those of the channels, for these to read. */
export type NotifySettings = OptionValues<typeof SERVICE_OPTIONS> &
  Readonly<Record<string, unknown>>;

/** Every setting of a service with these channels. */
export function notifyOptions(channels: ChannelRegistry): typeof SERVICE_OPTIONS & OptionTable {
  const table = { ...channels.options, ...SERVICE_OPTIONS };
  const count = Object.keys(channels.options).length + Object.keys(SERVICE_OPTIONS).length;
  assert(Object.keys(table).length === count, 'no channel has an option of the service');
  return table;
}

/** Every setting of the notification service. */
export const NOTIFY_OPTIONS = notifyOptions(CHANNELS);

/** NOTIFY_SOCKET is systemd's: every service of `Type=notify` has it. */
const RULES = { prefix: 'NOTIFY_', foreign: /^NOTIFY_SOCKET$/, contradictions };

/** Errors: one CONFIG_INVALID with every problem. */
export function loadNotifySettings(
  env: Environment,
  machine?: Machine,
  channels: ChannelRegistry = CHANNELS,
): NotifySettings {
  return loadOptions(notifyOptions(channels), RULES, env, machine);
}

/** For people: by environment variable, secrets replaced. */
export function redactedNotifySettings(settings: NotifySettings): Record<string, unknown> {
  return redactedOptions(NOTIFY_OPTIONS, settings);
}

function contradictions(settings: NotifySettings): readonly string[] {
  const problems: string[] = [];
  const ports = [settings.internalPort, settings.clientPort, settings.metricsPort];
  const fixed = ports.filter((port) => port !== 0);
  if (new Set(fixed).size !== fixed.length) {
    problems.push('NOTIFY_INTERNAL_PORT, NOTIFY_CLIENT_PORT, NOTIFY_METRICS_PORT: must differ');
  }
  if (settings.secretKeys.some((key) => key.length < SECRET_KEY_LENGTH_MIN)) {
    problems.push(
      `NOTIFY_SECRET_KEYS: each must have at least ${SECRET_KEY_LENGTH_MIN} characters`,
    );
  }
  if (settings.deadLetterHours > settings.retentionHours) {
    problems.push('NOTIFY_DEAD_LETTER_HOURS: must not be above NOTIFY_RETENTION_HOURS');
  }
  if (settings.retryMaxMs < settings.retryBaseMs) {
    problems.push('NOTIFY_RETRY_MAX_MS: must not be below NOTIFY_RETRY_BASE_MS');
  }
  return problems;
}
