/** What is due by when; a binary heap: `add` and `take` are O(log n). */
export class TimeHeap<T> {
  readonly #entries: { readonly atMs: number; readonly value: T }[] = [];

  /** Undefined when there is none. */
  get nextMs(): number | undefined {
    return this.#entries[0]?.atMs;
  }

  add(atMs: number, value: T): void {
    const entries = this.#entries;
    let at = entries.length;
    const entry = { atMs, value };
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = entries[parent] as (typeof entries)[number];
      if (above.atMs <= atMs) break;
      entries[at] = above;
      at = parent;
    }
    entries[at] = entry;
  }

  /** The earliest, if it is due at `nowMs`. */
  takeDue(nowMs: number): T | undefined {
    const entries = this.#entries;
    const first = entries[0];
    if (first === undefined || first.atMs > nowMs) return undefined;
    const last = entries.pop() as (typeof entries)[number];
    if (entries.length > 0) this.#sink(last);
    return first.value;
  }

  #sink(entry: { readonly atMs: number; readonly value: T }): void {
    const entries = this.#entries;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const left = entries[child];
      if (left === undefined) break;
      const right = entries[child + 1];
      if (right !== undefined && right.atMs < left.atMs) child += 1;
      const lower = entries[child] as (typeof entries)[number];
      if (lower.atMs >= entry.atMs) break;
      entries[at] = lower;
      at = child;
    }
    entries[at] = entry;
  }
}
