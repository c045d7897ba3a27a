/** What is asked of a service, in which shares, and how much of it when. Read from files by parse-plan.ts. */
export type LoadPlan = {
  readonly project: string;
  readonly tenant: string;
  /** The data set that is written first, and that answers are compared with; absent: nothing is written or compared. */
  readonly data?: { readonly scale: number; readonly seed: number } | undefined;
  readonly operations: readonly Operation[];
  readonly stages: readonly Stage[];
  /** What each request states as its deadline. */
  readonly deadlineMs?: number | undefined;
};

export type Operation = { readonly weight: number; readonly name: string } & (
  | { readonly kind: 'check'; readonly spread: 'uniform' | 'zipf' }
  | { readonly kind: 'batch_check'; readonly spread: 'uniform' | 'zipf'; readonly items: number }
  | { readonly kind: 'list_objects' }
  | { readonly kind: 'write'; readonly tuples: number }
  | {
      readonly kind: 'request';
      readonly path: string;
      readonly body: Readonly<Record<string, unknown>>;
    }
);

/** A stretch of time: arrivals at a rate that may change evenly, or callers that ask again once they are answered. */
export type Stage = { readonly name: string; readonly seconds: number } & (
  | { readonly from: number; readonly to: number }
  | { readonly callers: number }
);

/** Projects that may be written to. */
export const OWN_PROJECT = /^load-[a-z0-9-]{1,50}$/;

/** Whether a stage has arrivals at a rate. */
export function isOpen(stage: Stage): stage is Extract<Stage, { from: number }> {
  return 'from' in stage;
}

/** When arrival number `count` (from 0) of a stage is due in seconds from its begin: when the area below its rate has come to it. */
export function dueAt(stage: Extract<Stage, { from: number }>, count: number): number {
  const slope = (stage.to - stage.from) / stage.seconds;
  if (slope === 0) return stage.from === 0 ? Infinity : count / stage.from;
  if (count === 0) return 0;
  // Of the two roots the one at which the rate is not negative.
  return (2 * count) / (stage.from + Math.sqrt(Math.max(0, stage.from ** 2 + 2 * slope * count)));
}

/** The share of a stage that one of `of` generators has. */
export function shareOf(stage: Stage, of: number, index: number): Stage {
  if (isOpen(stage)) return { ...stage, from: stage.from / of, to: stage.to / of };
  const { callers } = stage;
  return { ...stage, callers: Math.floor(callers / of) + (index < callers % of ? 1 : 0) };
}
