/** Known reads of a project's evaluations. */
export type ReadsSeen = {
  /** The budget in force. */
  readonly effective: number;
  /** The lowest budget that a project may have. */
  readonly lowest: number;
  readonly answered: number;
  /** Most reads of an answered evaluation. */
  readonly readsMax: number;
  readonly refused: number;
  /** Refused queries, evaluated again with cold caches and under a higher ceiling. */
  readonly measured: readonly { readonly reads: number; readonly exceeded: boolean }[];
};

export type Suggestion = {
  readonly verdict: 'keep' | 'raise' | 'flatten' | 'unknown';
  /** The budget to set; undefined if none can be named, or the one in force fits. */
  readonly budget?: number | undefined;
  readonly why: string;
};

/** Factor over the largest query seen. Data grows, and some legitimate queries were not seen. */
const HEADROOM = 2;
const BUDGET_MAX = 1_000_000_000;

/**
 * The budget that fits the observations. Figures of answered evaluations alone would be too low:
 * refused ones are missing, and caches may have helped answered ones.
 */
export function suggestBudget(seen: ReadsSeen): Suggestion {
  const { effective, answered, readsMax, refused, measured } = seen;
  if (answered === 0 && refused === 0) {
    return { verdict: 'unknown', why: 'nothing was asked since the start' };
  }
  const ended = measured.filter(({ exceeded }) => !exceeded).map(({ reads }) => reads);
  const fitting = budgetFor(Math.max(readsMax, 0, ...ended), seen);
  const exceeded = measured.length - ended.length;
  if (exceeded > 0) {
    const others = fitting > effective ? fitting : undefined;
    return {
      verdict: 'flatten',
      budget: others,
      why: `${exceeded} of ${measured.length} refused questions ran out of the ceiling, too: flatten what they nest, or try a higher --ceiling`,
    };
  }
  if (refused > 0 && ended.length === 0) {
    const budget = Math.min(effective * HEADROOM, BUDGET_MAX);
    return {
      verdict: 'unknown',
      budget,
      why: 'no refused question could be asked again by itself: batches are to be split, or try the double budget and look again',
    };
  }
  if (fitting <= effective) {
    const why =
      refused > 0
        ? 'what was refused fits by now: the budget was raised, or the data changed'
        : `the largest question took ${readsMax} reads, less than half of the budget`;
    return { verdict: 'keep', why };
  }
  const largest = Math.max(readsMax, ...ended);
  return {
    verdict: 'raise',
    budget: fitting,
    why: `the largest question takes ${largest} reads with nothing remembered, and ${HEADROOM} times as many leave room to grow`,
  };
}

/** The reads with headroom, rounded up to two digits, within the allowed budgets. */
function budgetFor(reads: number, { lowest }: ReadsSeen): number {
  const wanted = reads * HEADROOM;
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(wanted, 1))) - 1);
  const rounded = Math.ceil(wanted / step) * step;
  return Math.min(Math.max(rounded, lowest), BUDGET_MAX);
}
