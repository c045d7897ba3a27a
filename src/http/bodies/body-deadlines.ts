/** A request whose body is still arriving and that can be cut off. */
export interface SlowBody {
  cut(): void;
}

const SWEEP_MS = 250;

/**
 * Cuts bodies that have not arrived whole in time. All deadlines are equally long, so insertion
 * order is deadline order, and one timer serves all. Cost: O(1) to add and remove; a sweep visits
 * only what is overdue.
 */
export class BodyDeadlines {
  readonly #timeoutMs: number;
  readonly #deadlines = new Map<SlowBody, number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  add(body: SlowBody): void {
    this.#deadlines.set(body, performance.now() + this.#timeoutMs);
    if (this.#timer === null) this.#schedule();
  }

  remove(body: SlowBody): void {
    this.#deadlines.delete(body);
  }

  get count(): number {
    return this.#deadlines.size;
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#sweep(), Math.min(SWEEP_MS, this.#timeoutMs));
    this.#timer.unref();
  }

  #sweep(): void {
    this.#timer = null;
    const nowMs = performance.now();
    for (const [body, deadlineMs] of this.#deadlines) {
      if (deadlineMs > nowMs) break;
      this.#deadlines.delete(body);
      body.cut();
    }
    if (this.#deadlines.size > 0) this.#schedule();
  }
}
