import { decimalOption, integerOption, optionalIntegerOption, type OptionTable } from './option.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Workers, their indexes, and their queues. */
export const INDEX_OPTIONS = {
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
      'Workers that may answer for one busy tenant. Each holds an index of it within its share of GATEWAY_INDEX_BYTES. 1 leaves a tenant to its owner, so that a flood of one tenant keeps off the other workers.',
    fallback: 1,
    min: 1,
    max: 256,
  }),
  indexBytes: integerOption({
    env: 'GATEWAY_INDEX_BYTES',
    description:
      'Memory of tuple indexes and of what grows with them, all workers together. Beyond it the least recently used shards are dropped. Half of it, at most 32 MiB, is kept for the process around the indexes.',
    fallback: {
      // The other half is for the heaps of the threads, buffers, and copies made during loads.
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
      "Share of GATEWAY_INDEX_BYTES for second indexes on the gateway's thread. They answer single Checks of busy tenants without a worker. At most an eighth of what indexes may take beyond 16 MiB is used. 0 leaves every Check to the workers.",
    fallback: 64 * MIB,
    min: 0,
    max: 16 * GIB,
    unit: 'bytes',
  }),
  threadChecksPerSecond: integerOption({
    env: 'GATEWAY_THREAD_CHECKS_PER_SECOND',
    description:
      "Rate of single Checks, held for 0.3 seconds, that gives a tenant an index on the gateway's thread. The index goes after ten seconds below a quarter of this rate. Below some hundreds the load of the index costs more than it saves.",
    fallback: 250,
    min: 10,
    max: 1_000_000,
  }),
  loadTimeoutSeconds: integerOption({
    env: 'GATEWAY_LOAD_TIMEOUT_SECONDS',
    description:
      'How long the load of one shard may take before it fails. Raise it for very large shards: one that takes longer is never answered.',
    fallback: 60,
    min: 1,
    max: 3600,
    unit: 'seconds',
  }),
  warmUpSeconds: decimalOption({
    env: 'GATEWAY_WARM_UP_SECONDS',
    description:
      'How long a start may load the shards that were used last before it reports ready. 0 loads none.',
    fallback: 20,
    min: 0,
    max: 3600,
    unit: 'seconds',
  }),
  warmUpBytes: optionalIntegerOption({
    env: 'GATEWAY_WARM_UP_BYTES',
    description:
      'Bytes of indexes that a start loads before it reports ready, by their last recorded size. Unset: GATEWAY_INDEX_BYTES.',
    min: 0,
    max: 16_384 * GIB,
    unit: 'bytes',
  }),
  workerQueueMax: integerOption({
    env: 'GATEWAY_WORKER_QUEUE_MAX',
    description: 'Requests that may wait for one worker. More are refused (resource_exhausted).',
    fallback: 20_000,
    min: 1,
    max: 10_000_000,
    unit: 'requests',
  }),
  shardQueueMax: integerOption({
    env: 'GATEWAY_SHARD_QUEUE_MAX',
    description:
      'Requests that may wait for one shard at each worker that answers for it. More are refused (resource_exhausted).',
    fallback: 10_000,
    min: 1,
    max: 10_000_000,
    unit: 'requests',
  }),
  writeQueueMax: integerOption({
    env: 'GATEWAY_WRITE_QUEUE_MAX',
    description: 'Writes that may wait for one shard. More are refused (resource_exhausted).',
    fallback: 1000,
    min: 1,
    max: 1_000_000,
    unit: 'writes',
  }),
} as const satisfies OptionTable;
