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
 * JSON text of one change, without brackets around the list, so that the database can join the
 * effective ones of a request. A delete carries the identity only.
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

/** Text of `tuple_change.changes` for the changes of one revision, in order. */
export function packChanges(changes: readonly TupleChange[]): string {
  return `[${changes.map(packChange).join(',')}]`;
}

/** The entries of a packed text as they are. Trusts its input, which comes from our own table. */
export function parsePackedChanges(text: string): readonly PackedChange[] {
  return JSON.parse(text) as readonly PackedChange[];
}

/** Inverse of `packChanges`. Trusts its input: it comes from our own table. Cost: O(changes). */
export function unpackChanges(text: string): TupleChange[] {
  return parsePackedChanges(text).map(unpackChange);
}

/** Inverse of `packChange` for an unpacked entry. */
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
  /** Version of the project's settings when it was committed. */
  readonly settingsVersion: number;
  /** Packed as in `tuple_change.changes`. */
  readonly changes: string;
};

/**
 * Result of reading a shard's head: changes after a known position, as far as they fit, or notice that the
 * known history is not the stored one.
 */
export type CarriedChanges = ShardKey & {
  readonly epoch: number;
  /** The head: revision and fork id. */
  readonly revision: number;
  readonly forkId: string;
  /** The known history was lost: an index at any position but the head is dropped. */
  readonly isLost: boolean;
  /** The changes follow this revision, without a gap. */
  readonly afterRevision: number;
  /** Fork id of `afterRevision`; '' is unknown. */
  readonly forkIdAtStart: string;
  readonly changes: readonly CarriedChange[];
};

/** Committed changes of one revision, as packed in `tuple_change.changes`. */
export type CommittedChange = ShardKey & {
  readonly epoch: number;
  readonly revision: number;
  /** Decimal text of the 64-bit fork id. */
  readonly forkId: string;
  /** Version of the project's settings, read under the shard's lock. */
  readonly settingsVersion: number;
  readonly changes: string;
};
