import type { UsersetRef } from '../../model/expand-tree.ts';
import type { Obstacle, ObstacleKind } from '../../model/explanation.ts';
import type { RelationTuple } from '../../model/relation-tuple.ts';
import { subjectText } from '../../model/subject-text.ts';

/** `doc:1#viewer`. */
export function usersetText({ namespace, objectId, relation }: UsersetRef): string {
  return `${namespace}:${objectId}#${relation}`;
}

/** `doc:1#viewer@user:alice`. */
export function tupleText(tuple: RelationTuple): string {
  return `${usersetText(tuple)}@${subjectText(tuple.subject)}`;
}

/** What an obstacle says of itself beyond its kind and place. */
export type ObstacleDetail = {
  readonly tuple?: RelationTuple | undefined;
  readonly derivation?: Obstacle['derivation'];
  readonly missingInputs?: readonly string[] | undefined;
  readonly message: string;
};

/** An obstacle; what it does not have is empty. */
export function obstacleOf(
  kind: ObstacleKind,
  place: UsersetRef,
  detail: ObstacleDetail,
): Obstacle {
  const { namespace, objectId, relation } = place;
  const { tuple, derivation, missingInputs = [], message } = detail;
  return { kind, namespace, objectId, relation, tuple, derivation, missingInputs, message };
}

/** Why a conditional tuple could not be decided; `missing` undefined: no such condition is known. */
export function undecidedText(
  tuple: RelationTuple,
  missing: readonly string[] | undefined,
): string {
  const what = `the condition "${tuple.conditionName}" of ${tupleText(tuple)}`;
  if (missing === undefined) return `${what} is not known`;
  if (missing.length === 0) {
    return `${what} could not be decided, whatever the request says`;
  }
  return `${what} could not be decided: ${missing.join(', ')} is missing in the context, or has a wrong type`;
}
