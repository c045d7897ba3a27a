import type { PackedCounts } from './counts.ts';
import type { PackedHistogram } from './latency-histogram.ts';
import type { LoadPlan } from './load-plan.ts';

/** Where requests go, and as whom. */
export type Target = {
  readonly url: string;
  readonly token: string | undefined;
};

/** Recorded questions instead of a plan's operations. */
export type Replay = {
  readonly path: string;
  /** 2 asks in half of the time that was recorded. */
  readonly speed: number;
  /** How often each question is asked, spread over the time until the next one. */
  readonly repeat: number;
};

/** What a generator is told over the channel of fork. Credentials go no other way. */
export type GeneratorCommand =
  | {
      readonly kind: 'prepare';
      readonly target: Target;
      readonly plan: LoadPlan | undefined;
      readonly replay: Replay | undefined;
      /** This one's number among so many. */
      readonly index: number;
      readonly of: number;
      readonly connections: number;
      readonly runId: string;
    }
  | { readonly kind: 'go'; readonly atMs: number }
  | { readonly kind: 'stop' };

/** One second of one generator, by when answers came; `offered` by when requests were due. */
export type GeneratorWindow = {
  /** Whole seconds since the start. */
  readonly second: number;
  readonly offered: number;
  /** Due, but the generator had too many open already. */
  readonly notSent: number;
  readonly operations: Readonly<Record<string, PackedCounts>>;
  /** Counts by code and reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** What was wrong with the first few answers. */
  readonly failures: readonly string[];
  /** How late the generator sent what was due. */
  readonly late: PackedHistogram;
  readonly cpuSeconds: number;
};

export type GeneratorMessage =
  | { readonly kind: 'ready' | 'done' }
  | { readonly kind: 'window'; readonly window: GeneratorWindow }
  | { readonly kind: 'failed'; readonly message: string };
