import { guarded } from '../../engine/general-evaluator.ts';
import { listSubjects } from '../../engine/questions/list-subjects.ts';
import { StepsTask } from '../../engine/questions/steps-task.ts';
import type { SubjectList } from '../../model/subject-list.ts';
import { isUnknown } from './known-relation.ts';
import type { QuestionSpec } from './question-spec.ts';

/** Ids that travel in one message: the clone of a longer list would stop everybody. */
const IDS_PER_PART = 4_096;

/** Who holds a relation on an object. */
export const listSubjectsQuestion: QuestionSpec<'listSubjects'> = {
  rpc: 'ListSubjects',
  isLong: () => true,
  start: (ground, args) => {
    const { evaluator, nowMs, readBudget } = ground;
    const { namespace, objectId, relation, context, page } = args;
    isUnknown(ground, '', namespace, relation);
    const { reader } = evaluator;
    const scope = evaluator.scope(`${namespace}#${relation}`, context, nowMs, readBudget);
    const name = reader.nameId(namespace);
    const entity = name > 0 ? reader.entityId(name, objectId) : 0;
    const steps = listSubjects(scope, entity, reader.nameId(relation), page);
    return guarded(scope, new StepsTask(scope, steps));
  },
  parts: partsOf,
};

/** Each list in pieces side by side; what is said of everybody else stands in every part. */
function partsOf(list: SubjectList): readonly SubjectList[] {
  const { userIds, excludedUserIds, undecidedUserIds } = list;
  const longest = Math.max(userIds.length, excludedUserIds.length, undecidedUserIds.length);
  const parts: SubjectList[] = [];
  for (let at = 0; at === 0 || at < longest; at += IDS_PER_PART) {
    const end = at + IDS_PER_PART;
    parts.push({
      ...list,
      userIds: userIds.slice(at, end),
      excludedUserIds: excludedUserIds.slice(at, end),
      undecidedUserIds: undecidedUserIds.slice(at, end),
    });
  }
  return parts;
}
