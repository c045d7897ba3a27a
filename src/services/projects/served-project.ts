/** So often a stream asks whether its project is still served. */
const GUARD_MS = 1_000;

/** Guard of a stream: its project may be suspended or deleted while it runs. */
export class ServedProject {
  readonly #nowMs: () => number;
  readonly #open: () => Promise<unknown>;
  #guardedMs: number;

  /**
   * From now on; who makes it knows that the project is served. `nowMs` is a clock that only goes forward. `open` fails if the
   * project is no longer served.
   */
  constructor(nowMs: () => number, open: () => Promise<unknown>) {
    this.#nowMs = nowMs;
    this.#open = open;
    this.#guardedMs = nowMs();
  }

  /** Asks if the last time is a second ago. Errors: those of `open`. */
  async refresh(): Promise<void> {
    const now = this.#nowMs();
    if (now - this.#guardedMs < GUARD_MS) return;
    await this.#open();
    this.#guardedMs = now;
  }
}
