import type { Subject } from './relation-tuple.ts';

/** What Check asks. */
export type CheckQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject; // never the wildcard
  /** JSON text of the context object; '' when absent. */
  readonly contextJson: string;
  /** A userset holds what it is granted itself, and not what its members hold (docs/queries.md). Absent: both. */
  readonly isExact?: boolean | undefined;
};
