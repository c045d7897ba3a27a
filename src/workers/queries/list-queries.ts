import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { type Scope, TRUE, UNDETERMINED, type Value } from '../../engine/bound/scope.ts';
import { guarded } from '../../engine/general-evaluator.ts';
import type { Steps } from '../../engine/general/gate-system.ts';
import { type ListEnd, listObjects, type OnObject } from '../../engine/lists/list-objects.ts';
import { startListSubjects } from '../../engine/lists/start-list-subjects.ts';
import { StepsTask } from '../../engine/lists/steps-task.ts';
import type { ListPage, SubjectPage } from '../../model/subject-list.ts';
import type { ObjectsOf, QueryResults, QueryStart } from '../../protocol/queries.ts';
import { DecideEach } from './decide-each.ts';
import { countedUnknown, isUnknown } from './known-relation.ts';
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

/** Ids that travel in one message: the clone of a longer list would stop everybody. */
const SUBJECTS_PER_PART = 4_096;

/** Lists the subjects that hold a relation on an object. */
export const listSubjectsQuery: QuerySpec<'listSubjects'> = {
  rpc: 'ListSubjects',
  isLong: () => true,
  start: (ground, args) => {
    const { evaluator, nowMs, readBudget } = ground;
    isUnknown(ground, '', args.namespace, args.relation);
    const query = { ...args, contextJson: args.context };
    return startListSubjects(evaluator, query, nowMs, readBudget);
  },
  parts: partsOf,
};

/** Splits each list into pieces side by side; every part has the entry for everybody else. */
function partsOf(list: SubjectPage): readonly SubjectPage[] {
  const { userIds, excludedUserIds, undecidedUserIds } = list;
  const longest = Math.max(userIds.length, excludedUserIds.length, undecidedUserIds.length);
  const parts: SubjectPage[] = [];
  for (let at = 0; at === 0 || at < longest; at += SUBJECTS_PER_PART) {
    const end = at + SUBJECTS_PER_PART;
    parts.push({
      ...list,
      userIds: userIds.slice(at, end),
      excludedUserIds: excludedUserIds.slice(at, end),
      undecidedUserIds: undecidedUserIds.slice(at, end),
    });
  }
  return parts;
}
