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

/** Whether a plan changes anything at the target. */
export function writesOf(plan: LoadPlan): boolean {
  return plan.data !== undefined || plan.operations.some(({ kind }) => kind === 'write');
}

export function isOpen(stage: Stage): stage is Extract<Stage, { from: number }> {
  return 'from' in stage;
}
