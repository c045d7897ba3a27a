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

/** That a conditional tuple could not be decided, and why. */
export function undecidedText(tuple: RelationTuple, reason: string): string {
  return `the condition "${tuple.conditionName}" of ${tupleText(tuple)} could not be decided: ${reason}`;
}
