import type { IndexAudit } from '../../cache/index-audit.ts';
import type { TupleIndex } from '../../cache/tuple-index.ts';
import type { TupleRow } from '../../cache/tuple-row.ts';
import { parsePackedChanges } from '../../model/packed-changes.ts';

const OP_INSERT = 1;

/** An audit that follows changes, and the revision of the changes being applied. */
export type RunningAudit = { readonly run: IndexAudit; readonly revisionOf: () => number };

/**
 * Applies all changes of one revision, as packed in `tuple_change.changes`, and passes each to the audit that is under
 * way. Errors: those of TupleIndex.insert; the index must then be dropped.
 */
export function applyChanges(index: TupleIndex, changes: string, audit: RunningAudit | null): void {
  for (const entry of parsePackedChanges(changes)) {
    const row: TupleRow = {
      namespace: entry[1],
      objectId: entry[2],
      relation: entry[3],
      subjectNamespace: entry[4],
      subjectId: entry[5],
      subjectRelation: entry[6],
      expiresAtUs: entry[7] === null ? null : BigInt(entry[7]),
      conditionName: entry[8],
      conditionParams: entry[9],
    };
    audit?.run.before(row);
    if (entry[0] === OP_INSERT) index.insert(row);
    else index.remove(row);
    audit?.run.after(row, audit.revisionOf());
  }
}
