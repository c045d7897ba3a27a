/**
 * Cost budget of one evaluation of a condition. A unit is about the evaluation of one operator: some
 * hundred nanoseconds. Cost is charged before the work, so that unpaid work never begins, and an exhausted
 * evaluation stays stopped.
 */
export class CostMeter {
  /** Spent so far; at most one step more than the limit. */
  spent = 0;
  #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Starts anew. */
  reset(limit: number): void {
    this.spent = 0;
    this.#limit = limit;
  }

  /** Units that are left. */
  get left(): number {
    return this.#limit - this.spent;
  }

  /** Whether more was charged than the limit allows. */
  get isExhausted(): boolean {
    return this.spent > this.#limit;
  }

  /** Counts `units`. False: they are more than is left, and the work must not be done. */
  spend(units: number): boolean {
    this.spent += units;
    return this.spent <= this.#limit;
  }
}

/** Units of one evaluation at most, whatever the read budget leaves: it cannot be interrupted. */
export const EVALUATION_COST_MAX = 20_000;
/** Units that count as one read. */
export const COST_PER_READ = 10;

/** Reads that `units` count as. */
export function readsOfCost(units: number): number {
  return Math.ceil(units / COST_PER_READ);
}
