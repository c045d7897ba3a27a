import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { TRUE, UNDETERMINED, type Value } from '../../engine/bound/scope.ts';
import { DecideEach } from './decide-each.ts';
import { countedUnknown } from './known-relation.ts';
import type { QuerySpec } from './query-spec.ts';

/** Longer ones are not expected to end within a slice. */
const SHORT_OBJECTS_MAX = 64;

/** Which of the given objects Check allows, and which it could not decide; each is counted as a decision, as an item of a BatchCheck is. */
export const filterObjectsQuery: QuerySpec<'filterObjects'> = {
  rpc: 'FilterObjects',
  isLong: ({ objectIds }) => objectIds.length > SHORT_OBJECTS_MAX,
  start: (ground, { namespace, relation, subject, objectIds, context: contextJson, isExact }) => {
    const { decider, nowMs, readBudget, context, model } = ground;
    const counter = context.stats.counter(model, namespace, relation);
    const unknownRelation = countedUnknown(ground, counter, '', namespace, relation);
    const positions: number[] = [];
    const undecidedPositions: number[] = [];
    let position = -1;
    const next = (): EvaluationTask<Value> | undefined => {
      position++;
      const objectId = objectIds[position];
      if (objectId === undefined) return undefined;
      const query = { namespace, objectId, relation, subject, contextJson, isExact };
      return decider.startDecision(query, nowMs, readBudget);
    };
    const decided = (value: Value): void => {
      if (value === TRUE) positions.push(position);
      if (value === UNDETERMINED) undecidedPositions.push(position);
      if (value === TRUE) counter.allowed += 1;
      else counter.denied += 1;
    };
    const result = () => ({ positions, undecidedPositions, unknownRelation });
    return new DecideEach(ground, { next, decided }, result);
  },
};
