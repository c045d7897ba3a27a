import type { StoredListener } from '../model/notification-store.ts';
import type { UserKey } from '../model/notification.ts';

type WaitingHint = { readonly user: UserKey; readonly sequence: number; readonly reads: number };

/**
 * Holds hints of stored notifications and of marks back for a moment: the process that stored one delivers it from
 * memory, and its own hint, which may overtake the answer of the database, is then old news instead of
 * a reason to read the store.
 */
export class DelayedHints {
  readonly #delayMs: number;
  readonly #onHint: StoredListener;
  readonly #waiting = new Map<string, WaitingHint>();
  #isAnyMissed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number, onHint: StoredListener) {
    this.#delayMs = delayMs;
    this.#onHint = onHint;
  }

  /** As NotificationStore.onStored says it. */
  add(user: UserKey | null, sequence: number, reads: number): void {
    if (user === null) {
      this.#isAnyMissed = true;
    } else {
      const key = `${user.tenantId} ${user.userId}`;
      const before = this.#waiting.get(key);
      this.#waiting.set(key, {
        user,
        sequence: Math.max(sequence, before?.sequence ?? 0),
        reads: Math.max(reads, before?.reads ?? 0),
      });
    }
    this.#timer ??= setTimeout(() => this.#notify(), this.#delayMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #notify(): void {
    this.#timer = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    const isAnyMissed = this.#isAnyMissed;
    this.#isAnyMissed = false;
    for (const { user, sequence, reads } of waiting) this.#onHint(user, sequence, reads);
    if (isAnyMissed) this.#onHint(null, 0, 0);
  }
}
