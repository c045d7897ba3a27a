/**
 * Cost limit of one evaluation of a condition. One unit is about the evaluation of one operator: some hundred
 * nanoseconds. Cost is counted before the work is done, so that unpaid work never begins. Once exhausted, a meter stays
 * exhausted until it is reset.
 */
export class CostMeter {
  /** Units spent so far; more than the limit once the meter is exhausted. */
  spent = 0;
  #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Restarts from 0 with a new limit. */
  reset(limit: number): void {
    this.spent = 0;
    this.#limit = limit;
  }

  /** Units left; negative if the meter is exhausted. */
  get left(): number {
    return this.#limit - this.spent;
  }

  /** Whether more units were spent than the limit. */
  get isExhausted(): boolean {
    return this.spent > this.#limit;
  }

  /** Counts `units`. Returns false if they are more than is left: the work must not be done. */
  spend(units: number): boolean {
    this.spent += units;
    return this.spent <= this.#limit;
  }
}

/** Maximum cost of one evaluation in units, whatever the read budget leaves: an evaluation cannot be interrupted. */
export const EVALUATION_COST_MAX = 20_000;
/** Number of units that count as one read. */
export const COST_PER_READ = 10;

/** Number of reads that `units` count as. */
export function readsOfCost(units: number): number {
  return Math.ceil(units / COST_PER_READ);
}
