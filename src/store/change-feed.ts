import { Socket } from 'node:net';
import type { Pool } from 'pg';
import pgListen, { type Subscriber } from 'pg-listen';
import type { ShardKey } from '../model/relation-tuple.ts';
import { type PostgresTarget, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

/** NOTIFY channel; the payload is the JSON text of [project id, tenant id, seq]. */
export const CHANGE_CHANNEL = 'gatehouse_change';

export type ChangeFeedOptions = {
  readonly target: PostgresTarget;
  /** A shard has reached `seq`; null: any shard may have changed. A hint: may repeat, or be old. */
  readonly onHint: (shard: ShardKey | null, seq: number) => void;
  /** How often onHint(null, 0) is said without any notification: the backstop for lost ones. */
  readonly pollIntervalMs: number;
  /** Called with false when the LISTEN connection is lost, with true when it is there (again). */
  readonly onConnected?: ((isConnected: boolean) => void) | undefined;
  readonly log?: StoreLog | undefined;
};

export interface ChangeFeed {
  /** Resolves after the first LISTEN. */
  readonly started: Promise<void>;
  stop(): Promise<void>;
}

const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 2_000;
/** A connection that died without a word is noticed by the query that is due this often. */
const PROBE_INTERVAL_MS = 10_000;
const QUERY_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 500;

/**
 * Hears of committed changes. Notifications are hints: a lost one costs the time to the next poll,
 * never correctness, since the truth is read from `tuple_change` by watermark. After every connect
 * loss is assumed and all shards are hinted.
 *
 * A subscriber of pg-listen serves one connection: its own reconnect leaves a connection lost while
 * it listens again unreplaced, and cannot be stopped. So it is given no attempts, each 'error' ends
 * it, and the loop here starts a fresh one.
 */
export function startChangeFeed(options: ChangeFeedOptions): ChangeFeed {
  const listener = new Listener(options);
  const timer = setInterval(() => options.onHint(null, 0), options.pollIntervalMs).unref();
  return {
    started: listener.started,
    stop: async () => {
      clearInterval(timer);
      await listener.stop();
    },
  };
}

class Listener {
  readonly started: Promise<void>;
  readonly #options: ChangeFeedOptions;
  readonly #log: StoreLog;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #onStarted: () => void = () => undefined;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.started = new Promise((resolve) => (this.#onStarted = resolve));
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  /** One subscriber after the other, until stopped. */
  async #run(): Promise<void> {
    let retryMs = RETRY_MS_MIN;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#listen(() => (retryMs = RETRY_MS_MIN));
      } catch (error) {
        this.#log('warn', 'change_feed_lost', { error: String(error) });
      }
      this.#options.onConnected?.(false);
      await pause(retryMs, this.#stop.signal);
      retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
    }
    this.#onStarted();
  }

  /** Ends when stopped; throws when the connection is lost. */
  async #listen(onListening: () => void): Promise<void> {
    // The socket is ours, so that no state of subscriber or server can keep it open.
    const socket = new Socket();
    const subscriber = pgListen.default<{ [CHANGE_CHANNEL]: string | undefined }>(
      {
        ...clientConfig(this.#options.target, {
          applicationName: 'gatehouse-listen',
          statementTimeoutMs: QUERY_TIMEOUT_MS,
          idleInTransactionTimeoutMs: 0,
        }),
        query_timeout: QUERY_TIMEOUT_MS,
        stream: () => socket,
      },
      {
        // Counted from 1: no attempt at all, 'error' is emitted in the tick of the loss.
        retryLimit: 1,
        paranoidChecking: PROBE_INTERVAL_MS,
        parse: (payload: string) => payload,
      },
    );
    const lost = new Promise<never>((_, reject) => {
      subscriber.events.on('error', (error) => {
        socket.destroy();
        reject(error);
      });
    });
    lost.catch(() => undefined);
    const stopped = whenAborted(this.#stop.signal);
    subscriber.notifications.on(CHANGE_CHANNEL, (payload) => this.#onNotification(payload));
    try {
      const listening = subscriber.connect().then(() => subscriber.listenTo(CHANGE_CHANNEL));
      listening.catch(() => undefined);
      await Promise.race([listening, lost, stopped.promise]);
      if (this.#stop.signal.aborted) return;
      this.#options.onHint(null, 0);
      this.#options.onConnected?.(true);
      this.#onStarted();
      onListening();
      await Promise.race([lost, stopped.promise]);
    } finally {
      stopped.forget();
      subscriber.notifications.removeAllListeners(CHANGE_CHANNEL);
      await closeWithin(subscriber, CLOSE_TIMEOUT_MS);
      socket.destroy();
    }
  }

  #onNotification(payload: string | undefined): void {
    const parsed = parseHint(payload ?? '');
    if (parsed === undefined) {
      this.#log('warn', 'change_feed_payload_unknown', {});
      this.#options.onHint(null, 0);
    } else {
      this.#options.onHint(parsed.shard, parsed.seq);
    }
  }
}

/** A server that does not answer must not hold up the next connection, or the end of the process. */
async function closeWithin(subscriber: Pick<Subscriber, 'close'>, ms: number): Promise<void> {
  const bound = new AbortController();
  const closed = subscriber.close().catch(() => undefined);
  await Promise.race([closed, pause(ms, bound.signal)]);
  bound.abort();
}

/** `promise` resolves when the signal aborts; `forget` takes the listener off again. */
function whenAborted(signal: AbortSignal): { promise: Promise<void>; forget: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onAbort = (): void => resolve();
  if (signal.aborted) resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  return { promise, forget: () => signal.removeEventListener('abort', onAbort) };
}

/** Where a shard stands; one that was never written stands at seq 0. */
export type HeadRow = ShardKey & {
  readonly epoch: number;
  readonly seq: number;
  readonly stamp: string;
};

/** Heads of the given shards, in any order. Cost: one index lookup each. */
export async function readHeads(
  pool: Pool,
  shards: readonly ShardKey[],
): Promise<readonly HeadRow[]> {
  const { rows } = await pool.query<{
    project_id: string;
    tenant_id: string;
    epoch: string;
    seq: string;
    stamp: string;
  }>({
    name: 'read-heads',
    text: `
      select k.project_id, k.tenant_id, coalesce(s.epoch, deployment_epoch()) as epoch,
        coalesce(s.seq, 0) as seq, coalesce(s.stamp, 0) as stamp
      from unnest($1::text[], $2::text[]) as k (project_id, tenant_id)
        left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id`,
    values: [shards.map((shard) => shard.projectId), shards.map((shard) => shard.tenantId)],
  });
  return rows.map((row) => ({
    projectId: row.project_id,
    tenantId: row.tenant_id,
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    stamp: row.stamp,
  }));
}

/** Shard and seq of a payload; undefined when it is something else. */
export function parseHint(payload: string): { shard: ShardKey; seq: number } | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return undefined; // Anybody may notify on the channel.
  }
  if (!Array.isArray(parsed)) return undefined;
  const [projectId, tenantId, seq] = parsed as readonly unknown[];
  if (typeof projectId !== 'string' || typeof tenantId !== 'string') return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  return { shard: { projectId, tenantId }, seq };
}

/** Resolves after `ms`, or at once when the signal aborts. Does not keep the process alive. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    timer.unref();
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
