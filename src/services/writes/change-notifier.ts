import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { LoopReport } from '../../shared/loop-report.ts';
import { type ChangeHint, payloadsOf } from '../../store/feed/change-hints.ts';
import { notifyChanges } from '../../store/sql/writes/notify-changes.ts';
import type { ChangeHints } from '../ports.ts';

export type ChangeNotifierOptions = {
  readonly pool: Pool;
  /** Notifications are sent at least this far apart. */
  readonly intervalMs: number;
  /** Shards that wait at most; a hint beyond is dropped, the poll makes up for it. */
  readonly shardsMax: number;
  /** A failed one has lost its hints. */
  readonly report: LoopReport;
};

/** Length of a name: short in each payload, and unique to an instance. */
const SENDER_BYTES = 8;

/** Counts of a notifier since its start. */
export type NotifierCounts = {
  /** Hints that were sent: newest revisions of shards. */
  readonly hints: number;
  /** Notifications that carried them. */
  readonly notifications: number;
  /** Hints that were not sent, since too many waited or the server did not take them. */
  readonly lost: number;
};

/**
 * Notifies other instances of commits by NOTIFY, off the commit path: a notification inside the
 * writing transaction would serialize all commits of the server. All shards of a tick share few
 * payloads, each with its newest revision; the first commit after a pause is sent at once. At most
 * one statement is under way, and later hints wait together, however long a server takes.
 */
export class ChangeNotifier implements ChangeHints {
  /** Names this process in what it sends, so that it need not listen to itself. */
  readonly sender = randomBytes(SENDER_BYTES).toString('hex');
  readonly #options: ChangeNotifierOptions;
  readonly #counts = { hints: 0, notifications: 0, lost: 0 };
  #waiting = new Map<string, { readonly shard: ShardKey; revision: number }>();
  #timer: NodeJS.Timeout | undefined;
  #sentMs = -Infinity;
  #sending: Promise<void> | undefined;

  constructor(options: ChangeNotifierOptions) {
    this.#options = options;
  }

  get counts(): NotifierCounts {
    return this.#counts;
  }

  hint(shard: ShardKey, revision: number): void {
    const { projectId, tenantId } = shard;
    const key = `${projectId}\u0000${tenantId}`;
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) waiting.revision = Math.max(waiting.revision, revision);
    else if (this.#waiting.size < this.#options.shardsMax) {
      this.#waiting.set(key, { shard: { projectId, tenantId }, revision });
    } else this.#counts.lost += 1;
    this.#schedule();
  }

  /** Sends what waits and resolves when it was sent or lost. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#sending;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#send();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#sending !== undefined) return;
    const dueMs = this.#sentMs + this.#options.intervalMs - performance.now();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#sending = this.#send().finally(() => {
          this.#sending = undefined;
          if (this.#waiting.size > 0) this.#schedule();
        });
      },
      Math.max(0, dueMs),
    );
    this.#timer.unref();
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const hints: ChangeHint[] = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#sentMs = performance.now();
    const payloads = payloadsOf(this.sender, hints);
    try {
      await notifyChanges(this.#options.pool, payloads);
      this.#counts.hints += hints.length;
      this.#counts.notifications += payloads.length;
      this.#options.report.succeeded();
    } catch (error) {
      this.#counts.lost += hints.length;
      this.#options.report.failed(error);
    }
  }
}
