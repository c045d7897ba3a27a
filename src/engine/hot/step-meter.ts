/**
 * Steps that are left to one evaluation in lists and while it fills caches: subjects, holders and rows, some 20 to 50
 * ns each. Below zero the evaluation is left to the general one, and what was filled meanwhile is not kept.
 */
export type StepMeter = { steps: number };

/** Bound for evaluations that only their own worker waits for: more steps than any of them takes. */
export const STEPS_UNBOUNDED = 2 ** 30 - 1;
