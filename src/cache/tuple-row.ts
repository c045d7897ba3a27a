import { WILDCARD_NAMESPACE, subjectToColumns } from '../model/relation-tuple.ts';
import type { RelationTuple, TupleKey } from '../model/relation-tuple.ts';

/** A tuple as the columns of the database and of packed changes. */
export type TupleRow = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  /** '' of a user, '*' of wildcards. */
  readonly subjectNamespace: string;
  readonly subjectId: string;
  readonly subjectRelation: string;
  /** Microseconds since the epoch; absent or null never expires. */
  readonly expiresAtUs?: bigint | null | undefined;
  readonly conditionName?: string | null | undefined;
  readonly conditionParams?: string | null | undefined;
};

/** Whether the subject is the public wildcard. */
export function isPublicWildcard(row: TupleRow): boolean {
  return row.subjectNamespace === WILDCARD_NAMESPACE && row.subjectId === '';
}

/** Columns of a tuple, as `TupleIndex.insert` and `remove` take them. Allocates. */
export function rowFromTuple(tuple: RelationTuple | TupleKey): TupleRow {
  const [subjectNamespace, subjectId, subjectRelation] = subjectToColumns(tuple.subject);
  const payload = tuple as RelationTuple;
  return {
    namespace: tuple.namespace,
    objectId: tuple.objectId,
    relation: tuple.relation,
    subjectNamespace,
    subjectId,
    subjectRelation,
    expiresAtUs: payload.expiresAtUs,
    conditionName: payload.conditionName,
    conditionParams: payload.conditionParams,
  };
}

/** Columns of one row in bytes. */
export const ROW_COLUMNS = 9;
/** Bounds of one row: start and end of each column, start -1 for null. */
export const ROW_BOUNDS = ROW_COLUMNS * 2;

/**
 * How the expiry column is written: int8 as COPY BINARY sends it (big-endian), or decimal text.
 */
export type ExpiryFormat = 'binary' | 'text';

/**
 * Rows as bytes. `bounds` holds ROW_BOUNDS numbers a row: start (-1 is null) and end in `bytes` of namespace,
 * object_id, relation, subject_namespace, subject_id, subject_relation, expires_at_us, condition_name, condition_params.
 */
export type RowBytes = {
  readonly bytes: Uint8Array;
  readonly bounds: Int32Array;
  readonly rows: number;
  readonly expiryFormat: ExpiryFormat;
};
