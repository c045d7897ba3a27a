import type { ShardKey } from '../../model/relation-tuple.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { StoredHeadRevision } from '../../store/feed/changes.ts';
import { FORECAST_AFTER_MS, LoadForecast } from './load-forecast.ts';
import type { IndexUser, LoadPace, ShardIndex, ShardSource } from './ports.ts';

/** The worker around a load, as that sees it. */
export interface LoadHost {
  readonly clock: Clock;
  readonly source: ShardSource;
  readonly loadTimeoutMs: number;
  createIndex(user: IndexUser): ShardIndex;
  /** How loads leave time to others; absent: as in a worker, whose thread does nothing else. */
  readonly pace?: LoadPace | undefined;
  /** Runs `load` when one of the few load slots is free. */
  withLoadSlot<T>(load: () => Promise<T>): Promise<T>;
}

/** One load of a shard into an index of its own, and how long it will still take. */
export class ShardLoad {
  readonly #key: ShardKey;
  readonly #host: LoadHost;
  readonly #user: IndexUser;
  #underWay: { readonly forecast: LoadForecast; readonly index: ShardIndex } | null = null;

  constructor(key: ShardKey, host: LoadHost, user: IndexUser) {
    this.#key = key;
    this.#host = host;
    this.#user = user;
  }

  /** ms; undefined: it is not under way, or nobody knows. */
  get leftMs(): number | undefined {
    if (this.#underWay === null) return undefined;
    const { forecast, index } = this.#underWay;
    return forecast.leftMs(index.tupleCount, this.#host.clock.monotonicMs());
  }

  /** Errors: those of the source, after which nothing of it is left. */
  run(): Promise<{ readonly index: ShardIndex; readonly headRevision: StoredHeadRevision }> {
    const host = this.#host;
    return host.withLoadSlot(async () => {
      const index = host.createIndex(this.#user);
      const forecast = new LoadForecast(host.clock.monotonicMs());
      this.#underWay = { forecast, index };
      const asking = setTimeout(() => this.#askForecast(forecast), FORECAST_AFTER_MS).unref();
      const sink = {
        begin: () => index.begin?.(),
        row: (bytes: Uint8Array, bounds: Int32Array) => index.insertRow(bytes, bounds),
        ...(index.insertRows === undefined ? {} : { rows: index.insertRows.bind(index) }),
        ...host.pace,
      };
      try {
        const headRevision = await withTimeout(host.loadTimeoutMs, (signal) =>
          host.source.loadSnapshot(this.#key, sink, signal),
        );
        index.loaded?.();
        return { index, headRevision };
      } catch (error) {
        index.drop?.();
        throw error;
      } finally {
        clearTimeout(asking);
        this.#underWay = null;
      }
    });
  }

  /** Asks only for a load that takes its time. */
  #askForecast(forecast: LoadForecast): void {
    this.#host.source.estimateRows?.(this.#key).then(
      (rows) => forecast.expect(rows),
      // Then callers wait as long as they can.
      () => undefined,
    );
  }
}

/**
 * Runs `work` with a signal that aborts after `ms`. AbortSignal.timeout would keep its timer, and what listens, until
 * then, however soon the work has ended: thousands of loads a second.
 */
export async function withTimeout<T>(
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new DOMException('the time was up', 'TimeoutError'));
  }, ms);
  timer.unref();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}
