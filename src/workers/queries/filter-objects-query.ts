import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { DecideEach } from './decide-each.ts';
import { countedUnknown } from './known-relation.ts';
import type { QuerySpec } from './query-spec.ts';

/** Longer ones are not expected to end within a slice. */
const SHORT_OBJECTS_MAX = 64;

/** Which of the given objects Check allows; each is counted as a decision, as an item of a BatchCheck is. */
export const filterObjectsQuery: QuerySpec<'filterObjects'> = {
  rpc: 'FilterObjects',
  isLong: ({ objectIds }) => objectIds.length > SHORT_OBJECTS_MAX,
  start: (ground, { namespace, relation, subject, objectIds, context: contextJson, isExact }) => {
    const { decider, nowMs, readBudget, context, model } = ground;
    const counter = context.stats.counter(model, namespace, relation);
    const unknownRelation = countedUnknown(ground, counter, '', namespace, relation);
    const held: number[] = [];
    let position = -1;
    const next = (): EvaluationTask<boolean> | undefined => {
      position++;
      const objectId = objectIds[position];
      if (objectId === undefined) return undefined;
      const query = { namespace, objectId, relation, subject, contextJson, isExact };
      return decider.startCheck(query, nowMs, readBudget);
    };
    const decided = (isAllowed: boolean): void => {
      if (isAllowed) held.push(position);
      if (isAllowed) counter.allowed += 1;
      else counter.denied += 1;
    };
    return new DecideEach(ground, { next, decided }, () => ({ positions: held, unknownRelation }));
  },
};
