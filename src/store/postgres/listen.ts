import { Socket } from 'node:net';
import pgListen, { type Subscriber } from 'pg-listen';
import { type LoopReport, silentReport } from '../../shared/loop-report.ts';
import { type PostgresTarget, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

export type ListenOptions = {
  readonly target: PostgresTarget;
  /** The channel of LISTEN. */
  readonly channel: string;
  readonly onPayload: (payload: string) => void;
  /** Called after each connect, before onConnected(true): notifications of the time before are lost. */
  readonly onMayHaveMissed: () => void;
  /**
   * Called with true when the LISTEN connection is there (again), with false once when it is lost: not for
   * attempts to make it again, nor where it never was there.
   */
  readonly onConnected?: ((isConnected: boolean) => void) | undefined;
  /** Hears of attempts to listen, and of the loss of a connection that did. */
  readonly report?: LoopReport | undefined;
  readonly log?: StoreLog | undefined;
};

export interface Listening {
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
 * Listens on one channel of Postgres, on a connection of its own that is remade when it is lost.
 *
 * A subscriber of pg-listen serves one connection: its own reconnect leaves a connection lost while
 * it listens again unreplaced, and cannot be stopped. So it is given no attempts, each 'error' ends
 * it, and the loop here starts a fresh one.
 */
export function startListening(options: ListenOptions): Listening {
  const listener = new Listener(options);
  return { started: listener.started, stop: () => listener.stop() };
}

class Listener {
  readonly started: Promise<void>;
  readonly #options: ListenOptions;
  readonly #log: StoreLog;
  readonly #report: LoopReport;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #onStarted: () => void = () => undefined;
  #isListening = false;
  /** Since it was lost, or could not be made: the loss, and every attempt, counts as one. */
  #away: { readonly sinceMs: number; attempts: number } | null = null;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#report = options.report ?? silentReport;
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
        await this.#listen(() => {
          retryMs = RETRY_MS_MIN;
          this.#came();
        });
      } catch (error) {
        this.#went(error);
      }
      await pause(retryMs, this.#stop.signal);
      retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
    }
    this.#onStarted();
  }

  #came(): void {
    this.#report.succeeded();
    const away = this.#away;
    this.#away = null;
    this.#isListening = true;
    if (away === null) return;
    const awayMs = Math.round(performance.now() - away.sinceMs);
    const fields = { channel: this.#options.channel, away_ms: awayMs, attempts: away.attempts };
    // Logged at the level of the loss, so that a filter shows both or neither.
    this.#log('warn', 'listen_connection_back', fields);
  }

  /** It was lost, or could not be made: a line for the first time, none for the attempts that follow. */
  #went(error: unknown): void {
    this.#report.failed(error);
    const wasListening = this.#isListening;
    this.#isListening = false;
    this.#away ??= { sinceMs: performance.now(), attempts: 0 };
    this.#away.attempts += 1;
    if (this.#away.attempts === 1) {
      const event = wasListening ? 'listen_connection_lost' : 'listen_connection_failed';
      this.#log('warn', event, { channel: this.#options.channel, error: String(error) });
    }
    if (wasListening) this.#options.onConnected?.(false);
  }

  /** Ends when stopped; throws when the connection is lost. */
  async #listen(onListening: () => void): Promise<void> {
    // The socket is ours, so that no state of subscriber or server can keep it open.
    const { channel } = this.#options;
    const socket = new Socket();
    const subscriber = pgListen.default<Record<string, string | undefined>>(
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
    subscriber.notifications.on(channel, (payload) => this.#options.onPayload(payload ?? ''));
    try {
      const listening = subscriber.connect().then(() => subscriber.listenTo(channel));
      listening.catch(() => undefined);
      await Promise.race([listening, lost, stopped.promise]);
      if (this.#stop.signal.aborted) return;
      onListening();
      this.#options.onMayHaveMissed();
      this.#options.onConnected?.(true);
      this.#onStarted();
      await Promise.race([lost, stopped.promise]);
    } finally {
      stopped.forget();
      subscriber.notifications.removeAllListeners(channel);
      await closeWithin(subscriber, CLOSE_TIMEOUT_MS);
      socket.destroy();
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
