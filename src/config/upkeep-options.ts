import { commitOption, logLevelOption } from './common-options.ts';
import { booleanOption, integerOption, type OptionTable } from './option.ts';

/** Settings of background work: retention, audit, shutdown, logs. */
export const UPKEEP_OPTIONS = {
  changeRetentionSeconds: integerOption({
    env: 'GATEWAY_CHANGE_RETENTION_SECONDS',
    description: 'How long committed changes are kept. A worker further behind reloads its shard.',
    fallback: 3600,
    min: 1,
    max: 31_536_000,
    unit: 'seconds',
  }),
  expiredGraceSeconds: integerOption({
    env: 'GATEWAY_EXPIRED_GRACE_SECONDS',
    description: 'How long expired tuples stay stored and readable before they are purged.',
    fallback: 86_400,
    min: 0,
    max: 31_536_000,
    unit: 'seconds',
  }),
  pollIntervalMs: integerOption({
    env: 'GATEWAY_POLL_INTERVAL_MS',
    description: 'Interval of the poll that finds changes whose notification was lost.',
    fallback: 2000,
    min: 10,
    max: 3_600_000,
    unit: 'milliseconds',
  }),
  clockUncertaintyMaxMs: integerOption({
    env: 'GATEWAY_CLOCK_UNCERTAINTY_MAX_MS',
    description:
      "How far the clock that decides expiry may be from the database's. An instance that is less certain is not ready.",
    fallback: 500,
    min: 1,
    max: 60_000,
    unit: 'milliseconds',
  }),
  fsckRowsPerSecond: integerOption({
    env: 'GATEWAY_FSCK_ROWS_PER_SECOND',
    description:
      'Stored tuples that are read in the background and compared with the loaded indexes, all workers of this process together. 0 compares only on demand (gatehouse fsck).',
    fallback: 2_000,
    min: 0,
    max: 10_000_000,
    unit: 'tuples per second',
  }),
  fsckIntervalSeconds: integerOption({
    env: 'GATEWAY_FSCK_INTERVAL_SECONDS',
    description:
      'Age at which a loaded index is compared with the store again. It takes longer where the rate does not suffice.',
    fallback: 3600,
    min: 1,
    max: 31_536_000,
    unit: 'seconds',
  }),
  drainMs: integerOption({
    env: 'GATEWAY_DRAIN_MS',
    description: 'How long the ports go on accepting after SIGTERM, while readiness fails.',
    fallback: 1000,
    min: 0,
    max: 600_000,
    unit: 'milliseconds',
  }),
  shutdownTimeoutMs: integerOption({
    env: 'GATEWAY_SHUTDOWN_TIMEOUT_MS',
    description: 'How long requests in flight may take to end after draining.',
    fallback: 10_000,
    min: 0,
    max: 600_000,
    unit: 'milliseconds',
  }),
  stageTimes: booleanOption({
    env: 'GATEWAY_STAGE_TIMES',
    description:
      'Measures the time of decision calls by stage (gatehouse_stage_seconds_total). It costs some hundred nanoseconds a call.',
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
