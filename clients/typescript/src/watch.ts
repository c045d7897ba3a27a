import type { Client } from '@connectrpc/connect';
import type {
  TupleService,
  WatchResponse,
} from '../../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { errorFrom } from './errors.ts';
import type { ShardOptions } from './questions.ts';
import { isPassing } from './retry.ts';
import type { ShardName } from './session.ts';
import { shardHeader } from './transport.ts';

export type WatchOptions = ShardOptions & {
  /** Goes on behind this cursor or consistency token; left out = from now on. */
  readonly startAfter?: string;
  /** Every tenant of the project. */
  readonly allTenants?: boolean;
  /** Seconds between signs of life, 1 to 60. A connection without three of them is made anew. Default 15. */
  readonly heartbeatSeconds?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
};

/** A message of Watch that is no heartbeat. Keep its `cursor` to go on behind it after a restart. */
export type WatchEvent = {
  readonly kind: Exclude<WatchResponse['kind'], { case: 'heartbeat' } | { case: undefined }>;
  readonly cursor: string;
};

const HEARTBEAT_SECONDS_DEFAULT = 15;
const PAUSE_MS_MAX = 5_000;

/**
 * Events from a point on, each once and in order for a shard, over connections that break. Ends with `signal`, without
 * an error. Errors: GatehouseError where going on would leave a gap or is refused (`WATCH_TOO_OLD`, `WATCH_OFF`, …).
 */
export async function* follow(
  tuples: Client<typeof TupleService>,
  shard: ShardName,
  options: WatchOptions,
): AsyncGenerator<WatchEvent, void, undefined> {
  const { signal, allTenants = false, heartbeatSeconds = HEARTBEAT_SECONDS_DEFAULT } = options;
  let cursor = options.startAfter ?? '';
  let failures = 0;
  const isOver = (): boolean => signal?.aborted === true;
  while (!isOver()) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), heartbeatSeconds * 3_000);
    try {
      const stream = tuples.watch(
        {
          projectId: shard.project,
          tenantId: allTenants ? '' : shard.tenant,
          allTenants,
          startAfter: cursor,
          heartbeatSeconds,
        },
        {
          signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
          headers: shardHeader(shard),
        },
      );
      for await (const { kind, cursor: next } of stream) {
        failures = 0;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), heartbeatSeconds * 3_000);
        // Of a heartbeat too: a connection that broke before the first event goes on from where it began.
        if (kind.case !== 'heartbeat' && kind.case !== undefined) yield { kind, cursor: next };
        cursor = next;
      }
    } catch (thrown) {
      if (isOver()) return;
      const error = errorFrom(thrown);
      if (!silence.signal.aborted && !isPassing(error)) throw error;
      failures += 1;
    } finally {
      clearTimeout(timer);
    }
    await pause(Math.random() * Math.min(PAUSE_MS_MAX, 50 * 2 ** failures), signal);
  }
}

/** Waits, or until the signal. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener('abort', end, { once: true });
  });
}
