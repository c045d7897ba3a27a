import type { CancelKind } from '../model/execution.ts';

/** `run`: the whole run, which `if: always()` resists. `sibling`: fail-fast. `group`: concurrency. */
export type CancelCause = 'run' | 'sibling' | 'group';
type Kind = Exclude<CancelKind, 'timeout'>;
type CancelListener = (kind: Kind, cause: CancelCause) => void;

/**
 * A point of the tree run > called workflow > job that can be cancelled. Cancelling goes down the
 * tree, to those that join later, too; it only grows (cancel, then force).
 */
export class Cancellation {
  readonly #listeners = new Set<CancelListener>();
  #kind: Kind | undefined;
  #cause: CancelCause = 'run';

  get kind(): Kind | undefined {
    return this.#kind;
  }

  get isCancelled(): boolean {
    return this.#kind !== undefined;
  }

  /** Listeners are called in the order they joined. A second `cancel` of the same kind does nothing. */
  cancel(kind: Kind, cause: CancelCause): void {
    if (this.#kind === 'force' || this.#kind === kind) return;
    this.#kind = kind;
    this.#cause = cause;
    for (const listener of this.#listeners.values().toArray()) listener(kind, cause);
  }

  /** Calls `listener` now when it is cancelled already, and with each cancel to come. Answers how to leave. */
  onCancel(listener: CancelListener): () => void {
    this.#listeners.add(listener);
    if (this.#kind !== undefined) listener(this.#kind, this.#cause);
    return () => this.#listeners.delete(listener);
  }
}
