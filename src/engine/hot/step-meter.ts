/**
 * What one evaluation may still look at in lists and while it fills caches: subjects, holders and rows, some 20 to 50 ns each.
 * Below zero it is one for the general evaluation, and what was filled meanwhile is not kept.
 */
export type StepMeter = { steps: number };

/** For evaluations that nobody but their own worker waits for: more than any of them looks at. */
export const STEPS_UNBOUNDED = 2 ** 30 - 1;
