import type { PeerModel, PeerReference, PeerTuple } from '../../language/peers/peer-model.ts';

/** A query that is sent to both services. */
export type PeerQuery = {
  readonly object: PeerReference;
  readonly relation: string;
  readonly subject: PeerReference;
};

/** An answer of one of them; `error` is '' if it decided. */
export type PeerAnswer = { readonly allowed: boolean; readonly error: string };

/**
 * A tuple of a running peer: its place, and its parser, which refuses a tuple that cannot be
 * converted.
 */
export type PeerTupleSource = { readonly place: string; readonly read: () => PeerTuple };

/**
 * A running OpenFGA or SpiceDB, which is only read. All errors: UNAVAILABLE and REFUSED, with its
 * own message.
 */
export interface PeerSource {
  readonly name: string;
  readModel(): Promise<PeerModel>;
  /** Every tuple, page by page. Memory: one page. */
  readTuples(): AsyncIterable<PeerTupleSource>;
  /** Answers in the order of the queries. */
  query(queries: readonly PeerQuery[]): Promise<readonly PeerAnswer[]>;
  close(): void;
}

/** A reference as both peers write it: `doc:plan`, `group:eng#member`. */
export function referenceText({ type, id, relation }: PeerReference): string {
  return `${type}:${id}${relation === '' ? '' : `#${relation}`}`;
}
