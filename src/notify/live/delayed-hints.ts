import type { UserKey } from '../model/notification.ts';

/**
 * Holds hints of stored notifications back for a moment: the process that stored one delivers it from
 * memory, and its own hint, which may overtake the answer of the database, is then old news instead of
 * a reason to read the store.
 */
export class DelayedHints {
  readonly #delayMs: number;
  readonly #onHint: (user: UserKey | null, sequence: number) => void;
  readonly #waiting = new Map<string, { readonly user: UserKey; readonly sequence: number }>();
  #isAnyMissed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number, onHint: (user: UserKey | null, sequence: number) => void) {
    this.#delayMs = delayMs;
    this.#onHint = onHint;
  }

  /** As NotificationStore.onStored says it. */
  add(user: UserKey | null, sequence: number): void {
    if (user === null) {
      this.#isAnyMissed = true;
    } else {
      const key = `${user.tenantId} ${user.userId}`;
      const before = this.#waiting.get(key)?.sequence ?? 0;
      if (sequence > before) this.#waiting.set(key, { user, sequence });
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
    for (const { user, sequence } of waiting) this.#onHint(user, sequence);
    if (isAnyMissed) this.#onHint(null, 0);
  }
}
