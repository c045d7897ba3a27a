/**
 * Whether a concurrent history could have happened one operation at a time.
 *
 * The search is that of Wing and Gong (Testing and verifying concurrent objects, 1993) in the
 * just-in-time order of Lowe (Testing for linearizability, 2017): events are taken in the order in
 * which they happened, an operation takes effect only when the return of one demands it, and of
 * configurations that agree in everything one is kept. Histories are partitioned before they come here.
 *
 * A read changes nothing, so one that can have its answer now loses nothing by having it now; what is
 * left to search is the order of mutations. An operation that never returned may take effect at any
 * time after its call, or never.
 */

/** A state that the object was in, with those before it. */
export type Moment<State> = {
  readonly state: State;
  /** Position of the event at which the search came here; -1 is the beginning. */
  readonly at: number;
  /** Mostly one; several where two histories lead to the same state. */
  readonly before: Moment<State>[];
};

/** What the object is. `State` must not be changed once it was returned. */
export interface Spec<State, Operation> {
  readonly initial: State;
  /** Equal for states that no later operation can tell apart. */
  keyOf(state: State): string;
  isMutation(operation: Operation): boolean;
  /**
   * The states that a mutation can lead to: mostly one, none where it cannot have had its result in
   * `moment`, or has no effect there and need not have had any.
   */
  step(moment: Moment<State>, timed: Timed<Operation>): readonly State[];
  /** Whether a read can have had its answer, now that `moment` is reached. */
  answers(moment: Moment<State>, timed: Timed<Operation>): boolean;
  /**
   * Whether `mutation` may have to take effect in `state` before `wanted` can. False only where it commutes with all that
   * `wanted` needs, so that nothing is lost if it takes effect later.
   */
  mayMatter(state: State, mutation: Operation, wanted: Operation): boolean;
  /**
   * Equal for mutations without a known outcome that do the same wherever they take effect; undefined: it is like no other.
   * Of these the one that was called first is taken first, since it could be wherever a later one is.
   */
  twinKey(mutation: Operation): string | undefined;
}

/** An operation with the positions of its events in the order of all events. */
export type Timed<Operation> = {
  readonly operation: Operation;
  readonly called: number;
  /** Null: its outcome was never known. */
  readonly returned: number | null;
  /**
   * Of one whose outcome was never known: where it cannot take effect any more, whatever it did before. The spec must then
   * allow it in no state that the search can be in.
   */
  readonly over?: number | undefined;
};

export type Verdict<State, Operation> =
  | { readonly kind: 'linearizable'; readonly steps: number; readonly widest: number }
  /** No order explains the result of `operation`. */
  | {
      readonly kind: 'violation';
      readonly operation: Timed<Operation>;
      /** Where the object can have been before it, some of them. */
      readonly candidates: readonly State[];
      /** Mutations that were under way. */
      readonly pending: readonly Timed<Operation>[];
    }
  /** The bound was reached: nothing is known. */
  | { readonly kind: 'undecided'; readonly operation: Timed<Operation>; readonly reason: string };

export type SearchBounds = {
  /** Configurations kept at once. */
  readonly configurationsMax: number;
  /** Mutations tried, in all. */
  readonly stepsMax: number;
};

export const SEARCH_BOUNDS: SearchBounds = { configurationsMax: 20_000, stepsMax: 3_000_000 };

type Slot<Operation> = { readonly bit: bigint; readonly timed: Timed<Operation> };
/** Where the object may be, and which of the operations under way have taken effect there. */
type Configuration<State> = { readonly moment: Moment<State>; readonly done: bigint };

const CANDIDATES_SHOWN = 8;

/**
 * Decides whether `history` (in any order) is linearizable. Cost: linear in events where the order of
 * mutations is known from their results, exponential in concurrent mutations in the worst case, hence the bounds.
 */
export function linearize<State, Operation>(
  spec: Spec<State, Operation>,
  history: readonly Timed<Operation>[],
  bounds: SearchBounds = SEARCH_BOUNDS,
): Verdict<State, Operation> {
  return new Search(spec, bounds).run(history);
}

class Search<State, Operation> {
  readonly #spec: Spec<State, Operation>;
  readonly #bounds: SearchBounds;
  readonly #reads = new Map<bigint, Timed<Operation>>();
  readonly #mutations = new Map<bigint, Timed<Operation>>();
  readonly #freeBits: bigint[] = [];
  #bitCount = 0n;
  #at = -1;
  #steps = 0;
  #widest = 1;
  #configurations: Configuration<State>[];

  constructor(spec: Spec<State, Operation>, bounds: SearchBounds) {
    this.#spec = spec;
    this.#bounds = bounds;
    this.#configurations = [{ moment: { state: spec.initial, at: -1, before: [] }, done: 0n }];
  }

  run(history: readonly Timed<Operation>[]): Verdict<State, Operation> {
    const slots = new Map<Timed<Operation>, Slot<Operation>>();
    for (const { at, timed, kind } of eventsOf(history)) {
      this.#at = at;
      if (kind === 'call') {
        const slot = { bit: this.#takeBit(), timed };
        slots.set(timed, slot);
        this.#called(slot);
        continue;
      }
      const slot = slots.get(timed) as Slot<Operation>;
      slots.delete(timed);
      if (kind === 'over') {
        this.#over(slot);
        continue;
      }
      const failure = this.#returned(slot);
      if (failure !== undefined) return failure;
    }
    return { kind: 'linearizable', steps: this.#steps, widest: this.#widest };
  }

  #called({ bit, timed }: Slot<Operation>): void {
    if (this.#spec.isMutation(timed.operation)) {
      this.#mutations.set(bit, timed);
      return;
    }
    // One that never returned says nothing.
    if (timed.returned === null) return;
    this.#reads.set(bit, timed);
    this.#configurations = this.#configurations.map(({ moment, done }) => ({
      moment,
      done: this.#spec.answers(moment, timed) ? done | bit : done,
    }));
  }

  #returned(slot: Slot<Operation>): Verdict<State, Operation> | undefined {
    const { bit, timed } = slot;
    const next = new Map<string, Configuration<State>>();
    for (const configuration of this.#configurations) {
      if ((configuration.done & bit) !== 0n) keep(next, this.#keyOf(configuration), configuration);
      else this.#explore(configuration, slot, next);
      if (next.size > this.#bounds.configurationsMax || this.#steps > this.#bounds.stepsMax) {
        const reason =
          this.#steps > this.#bounds.stepsMax ? 'too many steps' : 'too many configurations';
        return { kind: 'undecided', operation: timed, reason };
      }
    }
    if (next.size === 0) return this.#violation(timed);
    this.#forget(slot);
    // All have it done, so none that differed agree now.
    this.#configurations = [...next.values()].map((one) => without(one, bit));
    this.#widest = Math.max(this.#widest, this.#configurations.length);
    return undefined;
  }

  /** Nothing depends any more on whether it took effect. */
  #over(slot: Slot<Operation>): void {
    this.#forget(slot);
    const left = new Map<string, Configuration<State>>();
    for (const configuration of this.#configurations) {
      const one = without(configuration, slot.bit);
      keep(left, this.#keyOf(one), one);
    }
    this.#configurations = [...left.values()];
  }

  #forget({ bit }: Slot<Operation>): void {
    this.#reads.delete(bit);
    this.#mutations.delete(bit);
    this.#freeBits.push(bit);
  }

  /** Adds to `found` every configuration that follows from `from` by mutations under way and has `wanted` done. */
  #explore(
    from: Configuration<State>,
    { bit: wanted, timed: { operation: target } }: Slot<Operation>,
    found: Map<string, Configuration<State>>,
  ): void {
    const seen = new Map<string, Configuration<State>>();
    const open = [from];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      const twins = new Set<string>();
      for (const [bit, timed] of this.#mutations) {
        if ((one.done & bit) !== 0n) continue;
        const { operation } = timed;
        const twin = timed.returned === null ? this.#spec.twinKey(operation) : undefined;
        if (twin !== undefined && twins.has(twin)) continue;
        if (twin !== undefined) twins.add(twin);
        const mayMatter =
          bit === wanted || this.#spec.mayMatter(one.moment.state, operation, target);
        if (!mayMatter) continue;
        this.#steps++;
        for (const state of this.#spec.step(one.moment, timed)) {
          const moment = { state, at: this.#at, before: [one.moment] };
          const next = this.#withReads(moment, one.done | bit);
          const key = this.#keyOf(next);
          if ((next.done & wanted) !== 0n) keep(found, key, next);
          else if (keep(seen, key, next)) open.push(next);
        }
        if (this.#steps > this.#bounds.stepsMax) return;
        if (found.size > this.#bounds.configurationsMax) return;
      }
    }
  }

  /** The configuration in `moment`, after the reads that can have their answers there had them. */
  #withReads(moment: Moment<State>, done: bigint): Configuration<State> {
    for (const [bit, timed] of this.#reads) {
      if ((done & bit) === 0n && this.#spec.answers(moment, timed)) done |= bit;
    }
    return { moment, done };
  }

  #violation(operation: Timed<Operation>): Verdict<State, Operation> {
    const shown = this.#configurations.slice(0, CANDIDATES_SHOWN);
    const pending = [...this.#mutations.values()];
    const candidates = shown.map(({ moment }) => moment.state);
    return { kind: 'violation', operation, candidates, pending };
  }

  #keyOf({ moment, done }: Configuration<State>): string {
    return `${done.toString(36)} ${this.#spec.keyOf(moment.state)}`;
  }

  #takeBit(): bigint {
    return this.#freeBits.pop() ?? 1n << this.#bitCount++;
  }
}

function without<State>({ moment, done }: Configuration<State>, bit: bigint): Configuration<State> {
  return { moment, done: done & ~bit };
}

/** Of two that agree one is kept, which then has the past of both. Returns whether it is the first of its kind. */
function keep<State>(
  into: Map<string, Configuration<State>>,
  key: string,
  one: Configuration<State>,
): boolean {
  const known = into.get(key);
  if (known === undefined) {
    into.set(key, one);
    return true;
  }
  if (known.moment !== one.moment) {
    for (const earlier of one.moment.before) {
      if (earlier === known.moment || known.moment.before.includes(earlier)) continue;
      known.moment.before.push(earlier);
    }
  }
  return false;
}

type HistoryEvent<Operation> = {
  readonly at: number;
  readonly timed: Timed<Operation>;
  readonly kind: 'call' | 'return' | 'over';
};

function eventsOf<Operation>(
  history: readonly Timed<Operation>[],
): readonly HistoryEvent<Operation>[] {
  const events = history.flatMap((timed): HistoryEvent<Operation>[] => {
    const { called, returned, over } = timed;
    const call = { at: called, timed, kind: 'call' } as const;
    if (returned !== null) return [call, { at: returned, timed, kind: 'return' }];
    return over === undefined ? [call] : [call, { at: over, timed, kind: 'over' }];
  });
  // At one position the return comes first that says why another one is over; sorting keeps order otherwise.
  const rank = ({ kind }: HistoryEvent<Operation>): number => (kind === 'over' ? 1 : 0);
  return events.sort((a, b) => a.at - b.at || rank(a) - rank(b));
}
