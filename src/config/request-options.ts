import { bodyMemoryOption } from './common-options.ts';
import { integerOption, type OptionTable } from './option.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Bounds of requests and streams. */
export const REQUEST_OPTIONS = {
  watchStreams: integerOption({
    env: 'GATEWAY_WATCH_STREAMS',
    description:
      'Streams that may follow tuple changes at once (Watch and GET /v1/watch). 0 refuses all.',
    fallback: 0,
    min: 0,
    max: 10_000,
    unit: 'streams',
  }),
  streamStallSeconds: integerOption({
    env: 'GATEWAY_STREAM_STALL_SECONDS',
    description:
      'How long a reader of an answer or stream may take nothing. It is dropped after that, at the latest after half of it more. GET /v1/watch and GET /v1/tuples end with an error.',
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
      'Deadline of a request that states none, and the longest that a request may state.',
    fallback: 30_000,
    min: 10,
    max: 3_600_000,
    unit: 'milliseconds',
  }),
} as const satisfies OptionTable;
