/** Limits of one job and its steps. Reaching one is an annotation and a failed step, or a dropped part that the log names. */

/** A line of the log; longer ones are split with a marker. */
export const LOG_LINE_BYTES_MAX = 64 * 1024;
/** Annotations of one level that one step may add, as on GitHub. */
export const ANNOTATIONS_PER_LEVEL_MAX = 10;
export const ANNOTATION_CHARACTERS_MAX = 4_096;
/** All outputs of one job, names and values: docs.github.com, workflow syntax, jobs.<id>.outputs. */
export const OUTPUT_BYTES_PER_JOB_MAX = 1024 * 1024;
/** Composite actions within composite actions. */
export const COMPOSITE_DEPTH_MAX = 9;
/** Background steps that run at the same time; further ones wait for a place. */
export const BACKGROUND_STEPS_MAX = 10;
/** How long `always()` steps may go on after a cancel, unless the job says otherwise. */
export const CANCEL_TIMEOUT_MS = 5 * 60_000;
/** The longest time that a timer of Node can wait. */
export const TIMER_MS_MAX = 2 ** 31 - 1;
/** Steps of a job, those of parallel groups and post steps included. */
export const STEPS_MAX = 1_000;
/** What shows of a script or line in the name of a step. */
export const STEP_NAME_CHARACTERS_MAX = 255;
/** Markdown of one step. */
export const SUMMARY_CHARACTERS_MAX = 1024 * 1024;
