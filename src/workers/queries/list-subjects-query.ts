import { startListSubjects } from '../../engine/queries/start-list-subjects.ts';
import type { SubjectList } from '../../model/subject-list.ts';
import { isUnknown } from './known-relation.ts';
import type { QuerySpec } from './query-spec.ts';

/** Ids that travel in one message: the clone of a longer list would stop everybody. */
const IDS_PER_PART = 4_096;

/** Who holds a relation on an object. */
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
