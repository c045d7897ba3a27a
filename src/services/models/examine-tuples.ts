import { problemOfDropped } from '../../model/namespace/dropped-namespace.ts';
import { problemOfTuple } from '../../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import { type RelationTuple, subjectFromColumns } from '../../model/relation-tuple.ts';
import {
  type PendingActivation,
  type ScannedRow,
  SEEN_COLUMNS,
} from '../../store/sql/projects/model-activations.ts';

/** Progress of an examination of stored tuples, and the tuples that were found not to fit. */
export type Finding = Pick<
  PendingActivation,
  'lastSeen' | 'scanned' | 'refused' | 'examples' | 'droppedNamespaces'
>;

/** Progress before the first batch. */
export const NOTHING_FOUND: Finding = {
  lastSeen: null,
  scanned: 0,
  refused: 0,
  examples: '[]',
  droppedNamespaces: [],
};

const EXAMPLES_MAX = 3;

/**
 * The finding after `rows`, which follow on those of `before`, for a model that is to replace the
 * one in force. Pure. Cost: O(rows).
 */
export function examine(
  inForce: NamespaceModel,
  model: NamespaceModel,
  before: Finding,
  rows: readonly ScannedRow[],
): Finding {
  const examples = JSON.parse(before.examples) as unknown[];
  const droppedNamespaces = new Set(before.droppedNamespaces);
  let { refused } = before;
  for (const row of rows) {
    const tuple = tupleOf(row);
    const dropped = problemOfDropped(inForce, model, tuple);
    if (dropped?.field === 'namespace') droppedNamespaces.add(tuple.namespace);
    // A typed model has words of its own for a relation that it lacks.
    const misfit = dropped?.field === 'namespace' ? undefined : problemOfTuple(model, tuple);
    const problem = misfit ?? dropped;
    if (problem === undefined) continue;
    refused++;
    if (examples.length < EXAMPLES_MAX) {
      examples.push([row[0], row.slice(1), `${problem.field}: ${problem.message}`]);
    }
  }
  return {
    lastSeen: (rows.at(-1)?.slice(0, SEEN_COLUMNS) as string[] | undefined) ?? before.lastSeen,
    scanned: before.scanned + rows.length,
    refused,
    examples: JSON.stringify(examples),
    droppedNamespaces: [...droppedNamespaces].toSorted(),
  };
}

function tupleOf(row: ScannedRow): RelationTuple {
  const [, namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation] = row;
  const [, , , , , , , expiresAtUs, conditionName, conditionParams] = row;
  return {
    namespace,
    objectId,
    relation,
    subject: subjectFromColumns(subjectNamespace, subjectId, subjectRelation),
    expiresAtUs: expiresAtUs === null ? undefined : BigInt(expiresAtUs),
    conditionName: conditionName ?? undefined,
    conditionParams: conditionParams ?? undefined,
  };
}
