import type { Pool } from 'pg';
import type { ShardKey } from '../model/relation-tuple.ts';
import { notifyChanges } from '../store/sql/notify-changes.ts';
import type { ChangeHints } from './ports.ts';

export type ChangeNotifierOptions = {
  readonly pool: Pool;
  /** At most one notification per shard in this time. */
  readonly intervalMs: number;
  /** Shards that wait at most; a hint beyond is dropped, the poll makes up for it. */
  readonly shardsMax: number;
  /** Told of hints that were lost. */
  readonly onError: (error: unknown) => void;
};

/**
 * Tells other instances of commits by NOTIFY, off the commit path: a notification inside the writing
 * transaction would serialize all commits of the server. Only the newest seq of a shard is sent.
 */
export class ChangeNotifier implements ChangeHints {
  readonly #options: ChangeNotifierOptions;
  #waiting = new Map<string, ShardKey & { seq: number }>();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: ChangeNotifierOptions) {
    this.#options = options;
  }

  hint(shard: ShardKey, seq: number): void {
    const key = `${shard.projectId}\u0000${shard.tenantId}`;
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) waiting.seq = Math.max(waiting.seq, seq);
    else if (this.#waiting.size < this.#options.shardsMax) {
      this.#waiting.set(key, { projectId: shard.projectId, tenantId: shard.tenantId, seq });
    }
    this.#timer ??= setTimeout(() => this.#send(), this.#options.intervalMs).unref();
  }

  /** Sends what waits and resolves when it was sent or lost. */
  async close(): Promise<void> {
    this.#send();
    await this.#sending;
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.size === 0) return;
    const changes = [...this.#waiting.values()];
    this.#waiting = new Map();
    // One after the other, so that a slow server does not take up the pool.
    this.#sending = this.#sending
      .then(() => notifyChanges(this.#options.pool, changes))
      .catch((error: unknown) => this.#options.onError(error));
  }
}
