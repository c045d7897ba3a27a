import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { Scope } from '../../engine/bound/scope.ts';
import { guarded } from '../../engine/general-evaluator.ts';
import type { Steps } from '../../engine/general/gate-system.ts';
import { type ListEnd, listObjects, type OnObject } from '../../engine/queries/list-objects.ts';
import { StepsTask } from '../../engine/queries/steps-task.ts';
import type { ListPage } from '../../model/subject-list.ts';
import type { ObjectsOf, QueryResults, QueryStart } from '../../protocol/queries.ts';
import { isUnknown } from './known-relation.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Ids that travel in one message. */
const IDS_PER_PART = 1_000;
const ALL: ListPage = { after: '', idsMax: Infinity };

/** A page of the objects on which a subject holds a relation. */
export const listObjectsQuery: QuerySpec<'listObjects'> = {
  rpc: 'QueryListObjects',
  isLong: () => true,
  start: (ground, args) => {
    const objectIds: string[] = [];
    const steps = stepsOfList(ground, args, args.page, (id) => objectIds.push(id));
    return taskOf(steps, (end) => ({ objectIds, ...end }));
  },
  parts: ({ objectIds, ...end }) => {
    const parts: QueryResults['listObjects'][] = [];
    for (let at = 0; at === 0 || at < objectIds.length; at += IDS_PER_PART) {
      parts.push({ objectIds: objectIds.slice(at, at + IDS_PER_PART), ...end });
    }
    return parts;
  },
};

/**
 * All of them, of one revision. An index changes as soon as its job is done, so all parts are made before the first one
 * leaves; they are held as text, a character a byte mostly, and not as ids.
 */
export const streamObjectsQuery: QuerySpec<'streamObjects'> = {
  rpc: 'StreamObjects',
  isLong: () => true,
  start: (ground, args) => {
    const texts: string[] = [];
    let ids: string[] = [];
    const steps = stepsOfList(ground, args, ALL, (id) => {
      ids.push(id);
      if (ids.length < IDS_PER_PART) return;
      texts.push(ids.join('\n'));
      ids = [];
    });
    return taskOf(steps, ({ isUndecided }) => {
      if (ids.length > 0) texts.push(ids.join('\n'));
      return { texts, isUndecided };
    });
  },
  parts: ({ texts, isUndecided }) =>
    texts.length === 0
      ? [{ texts, isUndecided }]
      : texts.map((text) => ({ texts: [text], isUndecided })),
};

/** A list that is under way, with the scope that bounds it. */
type ListSteps = { readonly scope: Scope; readonly steps: Steps<ListEnd> };

function stepsOfList(
  ground: QueryGround,
  { namespace, relation, subject, context, isExact }: QueryStart & ObjectsOf,
  page: ListPage,
  onObject: OnObject,
): ListSteps {
  const { evaluator, nowMs, readBudget } = ground;
  isUnknown(ground, '', namespace, relation);
  const scope = evaluator.scope(`${namespace}#${relation}`, context, nowMs, readBudget);
  const query = { namespace, relation, subject, contextJson: context, isExact, page };
  return { scope, steps: listObjects(evaluator, scope, query, onObject) };
}

/** The task of a list; `resultOf` gets how it ended. */
function taskOf<T>({ scope, steps }: ListSteps, resultOf: (end: ListEnd) => T): EvaluationTask<T> {
  const whole = function* (): Steps<T> {
    return resultOf(yield* steps);
  };
  return guarded(scope, new StepsTask(scope, whole()));
}
