import type { Derivation, Explanation, Obstacle } from '../model/explanation.ts';
import type { RelationTuple, Subject } from '../model/relation-tuple.ts';
import type { JsonObject } from '../shared/json.ts';
import type {
  EngineDerivation,
  EngineExplanation,
  EngineObstacle,
  EngineSubject,
  EngineTuple,
  Wildcard,
} from './types.ts';

/** Converts an explanation to the public type. O(nodes). */
export function explanationOf(explained: Explanation): EngineExplanation {
  const { allowed, undecided, derivation, witness, holdsUntilUs, truncated, reads } = explained;
  return {
    allowed,
    undecided,
    derivation: derivation && derivationOf(derivation),
    memberId: witness?.userId,
    holdsUntil: holdsUntilUs === undefined ? undefined : dateOf(holdsUntilUs),
    obstacles: explained.obstacles.map(obstacleOf),
    remedies: explained.remedies.map(tupleFrom),
    truncated,
    reads,
  };
}

function derivationOf({ tuple, children, ...step }: Derivation): EngineDerivation {
  return { ...step, tuple: tuple && tupleFrom(tuple), children: children.map(derivationOf) };
}

function obstacleOf({ tuple, derivation, ...obstacle }: Obstacle): EngineObstacle {
  return {
    ...obstacle,
    tuple: tuple && tupleFrom(tuple),
    derivation: derivation && derivationOf(derivation),
  };
}

function tupleFrom(tuple: RelationTuple): EngineTuple {
  const { namespace, objectId, relation, subject } = tuple;
  const { conditionName, conditionParams, expiresAtUs } = tuple;
  return {
    namespace,
    objectId,
    relation,
    subject: subjectFrom(subject),
    ...(conditionName === undefined ? {} : { condition: conditionName }),
    ...(conditionParams === undefined
      ? {}
      : { conditionParams: JSON.parse(conditionParams) as JsonObject }),
    ...(expiresAtUs === undefined ? {} : { expiresAt: dateOf(expiresAtUs) }),
  };
}

function subjectFrom(subject: Subject): EngineSubject | Wildcard {
  switch (subject.kind) {
    case 'user':
      return subject.userId;
    case 'wildcard':
      return { everyone: true };
    case 'wildcardOf':
      return { wildcardOf: subject.namespace };
    case 'set': {
      const { namespace, objectId, relation } = subject;
      return relation === '' ? { namespace, objectId } : { namespace, objectId, relation };
    }
  }
}

/**
 * Converts microseconds to a Date. Fractions of a millisecond are cut off, so that no time is stated too late.
 */
function dateOf(us: bigint): Date {
  return new Date(Number(us / 1000n));
}
