/** `interrupt`: the polite ladder. `kill`: now. A kill may follow an interrupt, never the reverse. */
export type StopKind = 'interrupt' | 'kill';

/**
 * Tells whatever runs right now to stop. Unlike an AbortSignal it can be asked twice: first politely,
 * then for good.
 */
export class StopSignal {
  #kind: StopKind | undefined;
  readonly #listeners = new Set<(kind: StopKind) => void>();

  /** What was asked for so far. */
  get kind(): StopKind | undefined {
    return this.#kind;
  }

  request(kind: StopKind): void {
    if (this.#kind === kind || this.#kind === 'kill') return;
    this.#kind = kind;
    for (const listener of this.#listeners) listener(kind);
  }

  /** Calls `listener` with each request, at once if there was one. Returns how to stop that. */
  onRequest(listener: (kind: StopKind) => void): () => void {
    this.#listeners.add(listener);
    if (this.#kind !== undefined) listener(this.#kind);
    return () => this.#listeners.delete(listener);
  }
}
