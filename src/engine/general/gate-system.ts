import { UNDETERMINED, FALSE, TRUE, type Value } from '../bound/scope.ts';

/** How a vertex follows from its operands: one of them, all of them, the first but not the second. */
export const ANY = 0;
export const ALL = 1;
export const EXCLUSION = 2;
export type Gate = 0 | 1 | 2;

/** Role of an operand for the vertex that reads it; through an undecided condition it is weak. */
export const PLAIN_ROLE = 0;
export const WEAK_ROLE = 1;
export const EXCLUDE_ROLE = 2;

/** Work that may be interrupted at each `yield`; what it returns is the result. */
export type Steps<T> = Generator<undefined, T, undefined>;
/** Vertices and edges that are handled between two yields. */
const WORK_PER_STEP = 64;
const NONE: readonly number[] = [];

/**
 * Equations over gates, solved three-valued: the well-founded model (Van Gelder, Ross, Schlipf
 * 1991). Rounds of simultaneous evaluation from "all cut" give each value the least depth at which
 * it follows; when a round adds nothing, the greatest unfounded set (what could hold only by
 * holding already) becomes false at once. Cost: O(vertices + edges) time and memory, for each round
 * that refutes.
 */
export class GateSystem {
  /** The rounds ended before the values did. */
  isTruncated = false;
  // One vertex for each userset (a gate ANY over its root operator) and each operator.
  readonly #gate: Gate[] = [];
  readonly #isUserset: boolean[] = [];
  readonly #value: Value[] = [];
  readonly #height: number[] = [];
  /** Operands that are not decided yet. */
  readonly #open: number[] = [];
  /** An operand is UNDETERMINED for good, or holds only through an undecided condition. */
  readonly #isStained: boolean[] = [];
  /** EXCLUSION: the include side was found TRUE. */
  readonly #hasInclude: boolean[] = [];
  /** Pairs (vertex that reads this one, role). */
  readonly #readers: (number[] | undefined)[] = [];
  #decided: number[] = [];
  /** Usersets that are TRUE as the target itself: decided by the first round, as if by an operator. */
  #found: number[] = [];
  #work = 0;
  /** Vertices without a value. */
  #undecided = 0;

  valueOf(vertex: number): Value {
    return this.#value[vertex] as Value;
  }

  heightOf(vertex: number): number {
    return this.#height[vertex] as number;
  }

  add(gate: Gate, isUserset: boolean): number {
    this.#undecided++;
    this.#gate.push(gate);
    this.#isUserset.push(isUserset);
    this.#height.push(0);
    this.#open.push(0);
    this.#isStained.push(false);
    this.#hasInclude.push(false);
    this.#readers.push(undefined);
    return this.#value.push(UNDETERMINED) - 1;
  }

  connect(operand: number, reader: number, role: number): void {
    const readers = this.#readers[operand];
    if (readers === undefined) this.#readers[operand] = [reader, role];
    else readers.push(reader, role);
    this.#open[reader] = (this.#open[reader] as number) + 1;
  }

  /** The vertex can never be FALSE: something that it reads is undecided for good. */
  markUndetermined(vertex: number): void {
    this.#isStained[vertex] = true;
  }

  /** A stored tuple of the target itself: TRUE before the first round. */
  seedTrue(vertex: number): void {
    if (this.#value[vertex] !== UNDETERMINED) return;
    const isUserset = this.#isUserset[vertex] === true;
    this.#undecided--;
    this.#value[vertex] = TRUE;
    this.#height[vertex] = isUserset ? 1 : 0;
    (isUserset ? this.#found : this.#decided).push(vertex);
  }

  /** Whether it is time to yield. */
  #isStep(): boolean {
    this.#work++;
    return this.#work % WORK_PER_STEP === 0;
  }

  /** Decides what follows within so many rounds. */
  *solve(roundMax: number): Steps<void> {
    for (let vertex = 0; vertex < this.#value.length; vertex++) {
      if (this.#isStep()) yield;
      // A leaf that leads nowhere is false; a userset always has an operator below or is stained.
      const isEmpty = this.#open[vertex] === 0 && this.#isStained[vertex] === false;
      if (isEmpty && this.#value[vertex] === UNDETERMINED) this.#decide(vertex, FALSE, 0);
    }
    let round = 1;
    for (;;) {
      const usersets = yield* this.#propagate(round);
      if (usersets.length > 0) {
        this.#decided = usersets;
      } else if (!(yield* this.#refuteUnfounded(round))) {
        return;
      }
      if (++round > roundMax) {
        this.isTruncated = true;
        return;
      }
    }
  }

  /** Spreads decided values through the operators; returns the usersets that they decide. */
  *#propagate(round: number): Steps<number[]> {
    const usersets = this.#found;
    this.#found = [];
    const queue = this.#decided;
    this.#decided = [];
    for (let at = 0; at < queue.length; at++) {
      const vertex = queue[at] as number;
      const value = this.#value[vertex] as Value;
      const readers = this.#readers[vertex] ?? NONE;
      for (let i = 0; i < readers.length; i += 2) {
        if (this.#isStep()) yield;
        const reader = readers[i] as number;
        if (this.#value[reader] !== UNDETERMINED) continue;
        const outcome = this.#feed(reader, readers[i + 1] as number, value);
        if (outcome === UNDETERMINED) continue;
        this.#undecided--;
        this.#value[reader] = outcome;
        this.#height[reader] = round;
        (this.#isUserset[reader] === true ? usersets : queue).push(reader);
      }
    }
    return usersets;
  }

  /** Gives a gate the decided value of one operand; returns what the gate becomes. */
  #feed(gate: number, role: number, value: Value): Value {
    const open = (this.#open[gate] as number) - 1;
    this.#open[gate] = open;
    switch (this.#gate[gate]) {
      case ALL:
        if (value === FALSE) return FALSE;
        return open === 0 ? TRUE : UNDETERMINED;
      case EXCLUSION:
        if (role === EXCLUDE_ROLE ? value === TRUE : value === FALSE) return FALSE;
        if (role !== EXCLUDE_ROLE) this.#hasInclude[gate] = true;
        return open === 0 ? TRUE : UNDETERMINED;
      default:
        if (value === TRUE && role !== WEAK_ROLE) return TRUE;
        if (value === TRUE) this.#isStained[gate] = true;
        return open === 0 && this.#isStained[gate] === false ? FALSE : UNDETERMINED;
    }
  }

  #decide(vertex: number, value: Value, height: number): void {
    this.#undecided--;
    this.#value[vertex] = value;
    this.#height[vertex] = height;
    this.#decided.push(vertex);
  }

  /** Makes everything FALSE that is open and could not be TRUE whatever the cut ones were. */
  *#refuteUnfounded(round: number): Steps<boolean> {
    if (this.#undecided === 0) return false;
    const count = this.#value.length;
    const isPossible = new Uint8Array(count);
    const closed = new Int32Array(count); // operands of an ALL that are possible
    const queue: number[] = [];
    const add = (vertex: number): void => {
      if (this.#value[vertex] !== UNDETERMINED || isPossible[vertex] === 1) return;
      isPossible[vertex] = 1;
      queue.push(vertex);
    };
    for (let vertex = 0; vertex < count; vertex++) {
      if (this.#isStep()) yield;
      const gate = this.#gate[vertex];
      if (gate === ANY && this.#isStained[vertex] === true) add(vertex);
      if (gate === EXCLUSION && this.#hasInclude[vertex] === true) add(vertex);
    }
    for (let at = 0; at < queue.length; at++) {
      const readers = this.#readers[queue[at] as number] ?? NONE;
      for (let i = 0; i < readers.length; i += 2) {
        if (this.#isStep()) yield;
        const reader = readers[i] as number;
        if (readers[i + 1] === EXCLUDE_ROLE) continue;
        if (this.#gate[reader] === ALL) {
          closed[reader] = (closed[reader] as number) + 1;
          if (closed[reader] !== this.#open[reader]) continue;
        }
        add(reader);
      }
    }
    let found = false;
    for (let vertex = 0; vertex < count; vertex++) {
      if (this.#isStep()) yield;
      if (this.#value[vertex] !== UNDETERMINED || isPossible[vertex] === 1) continue;
      this.#decide(vertex, FALSE, round);
      found = true;
    }
    return found;
  }
}
