import type { Value } from '../bound/scope.ts';

/** A value with what it rests on; see `Memo`. */
export type Outcome = {
  readonly value: Value;
  /** TRUE and FALSE: nodes that a path needs for the value to be found. */
  readonly height: number;
  /** CUT: whether a larger depth bound could decide it. */
  readonly isDepthExceeded: boolean;
};
