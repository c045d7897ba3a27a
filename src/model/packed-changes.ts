import {
  type ShardKey,
  subjectFromColumns,
  subjectToColumns,
  type TupleChange,
} from './relation-tuple.ts';

/** One entry of `tuple_change.changes` (migrations/0001_authorization.sql). */
export type PackedChange = readonly [
  op: 1 | 2,
  namespace: string,
  objectId: string,
  relation: string,
  subjectNamespace: string,
  subjectId: string,
  subjectRelation: string,
  expiresAtUs: string | null,
  conditionName: string | null,
  conditionParams: string | null,
];

/**
 * Formats one change as JSON text, without the brackets of the list, so that the database can join the effective
 * changes of a request. A delete contains only the identity.
 */
export function packChange(change: TupleChange): string {
  const { tuple } = change;
  const [subjectNamespace, subjectId, subjectRelation] = subjectToColumns(tuple.subject);
  const isInsert = change.op === 'insert';
  return JSON.stringify([
    isInsert ? 1 : 2,
    tuple.namespace,
    tuple.objectId,
    tuple.relation,
    subjectNamespace,
    subjectId,
    subjectRelation,
    isInsert && tuple.expiresAtUs !== undefined ? tuple.expiresAtUs.toString() : null,
    isInsert ? (tuple.conditionName ?? null) : null,
    isInsert ? (tuple.conditionParams ?? null) : null,
  ] satisfies PackedChange);
}

/** Formats `tuple_change.changes` for the changes of one revision, in order. */
export function packChanges(changes: readonly TupleChange[]): string {
  return `[${changes.map(packChange).join(',')}]`;
}

/** Parses the entries of a packed text, without unpacking them. Trusts its input: it comes from our own table. */
export function parsePackedChanges(text: string): readonly PackedChange[] {
  return JSON.parse(text) as readonly PackedChange[];
}

/** Inverse of `packChanges`. Trusts its input: it comes from our own table. Cost: O(changes). */
export function unpackChanges(text: string): TupleChange[] {
  return parsePackedChanges(text).map(unpackChange);
}

/** Inverse of `packChange`, for a parsed entry. */
export function unpackChange(entry: PackedChange): TupleChange {
  return {
    op: entry[0] === 1 ? 'insert' : 'delete',
    tuple: {
      namespace: entry[1],
      objectId: entry[2],
      relation: entry[3],
      subject: subjectFromColumns(entry[4], entry[5], entry[6]),
      ...(entry[7] === null ? {} : { expiresAtUs: BigInt(entry[7]) }),
      ...(entry[8] === null ? {} : { conditionName: entry[8] }),
      ...(entry[9] === null ? {} : { conditionParams: entry[9] }),
    },
  };
}

/** One revision among carried changes. */
export type CarriedChange = {
  readonly revision: number;
  /** Decimal text of the 64-bit fork id. */
  readonly forkId: string;
  /** Version of the project's settings when the change was committed. */
  readonly settingsVersion: number;
  /** Changes as packed in `tuple_change.changes`. */
  readonly changes: string;
};

/**
 * Result of reading a shard's head with a known position. Contains the changes after that position, as far as they fit,
 * or that the known history is not the stored one.
 */
export type CarriedChanges = ShardKey & {
  readonly epoch: number;
  /** Revision of the head; `forkId` is its fork id. */
  readonly revision: number;
  readonly forkId: string;
  /** Whether the known history was lost. If so, an index at any position but the head is dropped. */
  readonly isLost: boolean;
  /** Revision that the changes follow, without a gap. */
  readonly afterRevision: number;
  /** Fork id of `afterRevision`; '' if unknown. */
  readonly forkIdAtStart: string;
  readonly changes: readonly CarriedChange[];
};

/** Committed changes of one revision, as packed in `tuple_change.changes`. */
export type CommittedChange = ShardKey & {
  readonly epoch: number;
  readonly revision: number;
  /** Decimal text of the 64-bit fork id. */
  readonly forkId: string;
  /** Version of the project's settings, as read under the shard's lock. */
  readonly settingsVersion: number;
  readonly changes: string;
};
