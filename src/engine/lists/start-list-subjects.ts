import type { ListPage, SubjectPage } from '../../model/subject-list.ts';
import { compareUtf8 } from '../../shared/text/utf8-order.ts';
import type { EvaluationTask } from '../bound/evaluator-api.ts';
import { TRUE } from '../bound/scope.ts';
import { type GeneralEvaluator, guarded } from '../general-evaluator.ts';
import type { Steps } from '../general/gate-system.ts';
import { listSubjects } from './list-subjects.ts';
import { listedKindOf } from './listed-kind.ts';
import { StepsTask, stepsOf } from './steps-task.ts';

/** Query for subjects: the object, and the kind of subjects. The caller has validated names and ids. */
export type HoldersQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  /** '': users. */
  readonly subjectNamespace: string;
  /** '': users, or objects themselves. */
  readonly subjectRelation: string;
  /** JSON text of the context object; '' when absent. */
  readonly contextJson: string;
  readonly page: ListPage;
};

/** Starts a list of who holds a relation on an object. Errors: those of `listSubjects`. */
export function startListSubjects(
  evaluator: GeneralEvaluator,
  query: HoldersQuery,
  nowMs: number,
  readBudget: number,
): EvaluationTask<SubjectPage> {
  const { namespace, objectId, relation, subjectNamespace, subjectRelation } = query;
  const { reader } = evaluator;
  const { contextJson, page } = query;
  const scope = evaluator.scope(`${namespace}#${relation}`, contextJson, nowMs, readBudget);
  const name = reader.nameId(namespace);
  const entity = name > 0 ? reader.entityId(name, objectId) : 0;
  const kind = listedKindOf(reader, subjectNamespace, subjectRelation);
  const listed = { entity, relation: reader.nameId(relation), kind };
  const isUnstored = entity === 0 || listed.relation <= 0;
  const steps =
    isUnstored && subjectRelation !== ''
      ? ofUnstored(evaluator, query, nowMs, readBudget)
      : listSubjects(scope, listed, page);
  return guarded(scope, new StepsTask(scope, steps));
}

/** Lists what holds an object or a relation that no tuple names: the userset that is asked about, and those that are part of it. */
function* ofUnstored(
  evaluator: GeneralEvaluator,
  asked: HoldersQuery,
  nowMs: number,
  readBudget: number,
): Steps<SubjectPage> {
  const { namespace, objectId, relation, subjectNamespace, subjectRelation, page } = asked;
  const none = { excludedUserIds: [], undecidedUserIds: [], isWildcardUndecided: false, next: '' };
  const list = (userIds: readonly string[]): SubjectPage => ({ ...none, userIds, wildcard: false });
  if (subjectNamespace !== namespace) return list([]);
  if (page.after !== '' && compareUtf8(objectId, page.after) <= 0) return list([]);
  const subject = { kind: 'set', namespace, objectId, relation: subjectRelation } as const;
  const query = { namespace, objectId, relation, subject, contextJson: asked.contextJson };
  const task = evaluator.startDecision(query, nowMs, readBudget);
  yield* stepsOf(task);
  return list(task.result() === TRUE ? [objectId] : []);
}
