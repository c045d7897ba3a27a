type Lane<T> = { readonly items: T[]; first: number };

/** What waits, by key: taken from the keys in turn, and from each in the order in which it came. All operations are O(1) an item. */
export class RoundRobinQueue<T> {
  /** In the order of their turns. */
  readonly #lanes = new Map<string, Lane<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    const lane = this.#lanes.get(key);
    return lane === undefined ? 0 : lane.items.length - lane.first;
  }

  add(key: string, item: T): void {
    this.#size += 1;
    const lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, { items: [item], first: 0 });
    else lane.items.push(item);
  }

  take(max: number): readonly T[] {
    const taken: T[] = [];
    // A lane that goes to the end is met again by the same loop.
    for (const [key, lane] of this.#lanes) {
      if (taken.length === max) break;
      taken.push(lane.items[lane.first] as T);
      // What was taken is not kept for as long as its lane lives.
      lane.items[lane.first] = undefined as T;
      lane.first += 1;
      this.#lanes.delete(key);
      if (lane.first === lane.items.length) continue;
      this.#lanes.set(key, lane.first > lane.items.length / 2 ? compacted(lane) : lane);
    }
    this.#size -= taken.length;
    return taken;
  }
}

/** Paid for by as many takes. */
function compacted<T>(lane: Lane<T>): Lane<T> {
  return { items: lane.items.slice(lane.first), first: 0 };
}

/** Lets so much work run at once; what waits has its turn by key, so that one that asks for much does not hold up the others. */
export class FairGate {
  readonly #max: number;
  readonly #waiting = new RoundRobinQueue<() => void>();
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** What `work` returns or throws. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max) {
      await new Promise<void>((resolve) => this.#waiting.add(key, resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const [next] = this.#waiting.take(1);
      // The place goes over to whoever is next.
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
