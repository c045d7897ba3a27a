import { TRUE } from '../../engine/bound/scope.ts';
import { guarded } from '../../engine/general-evaluator.ts';
import type { Steps } from '../../engine/general/gate-system.ts';
import { compareUtf8 } from '../../engine/general/utf8-order.ts';
import { listSubjects } from '../../engine/queries/list-subjects.ts';
import { listedKindOf } from '../../engine/queries/listed-kind.ts';
import { StepsTask, stepsOf } from '../../engine/queries/steps-task.ts';
import type { SubjectList } from '../../model/subject-list.ts';
import type { QueryArgs } from '../../protocol/queries.ts';
import { isUnknown } from './known-relation.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Ids that travel in one message: the clone of a longer list would stop everybody. */
const IDS_PER_PART = 4_096;

/** Who holds a relation on an object. */
export const listSubjectsQuery: QuerySpec<'listSubjects'> = {
  rpc: 'ListSubjects',
  isLong: () => true,
  start: (ground, args) => {
    const { evaluator, nowMs, readBudget } = ground;
    const { namespace, objectId, relation, subjectNamespace, subjectRelation, context, page } =
      args;
    isUnknown(ground, '', namespace, relation);
    const { reader } = evaluator;
    const scope = evaluator.scope(`${namespace}#${relation}`, context, nowMs, readBudget);
    const name = reader.nameId(namespace);
    const entity = name > 0 ? reader.entityId(name, objectId) : 0;
    const kind = listedKindOf(reader, subjectNamespace, subjectRelation);
    const of = { entity, relation: reader.nameId(relation), kind };
    const isUnstored = entity === 0 || of.relation <= 0;
    const steps =
      isUnstored && subjectRelation !== ''
        ? ofUnstored(ground, args)
        : listSubjects(scope, of, page);
    return guarded(scope, new StepsTask(scope, steps));
  },
  parts: partsOf,
};

/** Lists what holds an object or a relation that no tuple names: the userset that is asked about, and those that are part of it. */
function* ofUnstored(ground: QueryGround, args: QueryArgs['listSubjects']): Steps<SubjectList> {
  const { namespace, objectId, relation, subjectNamespace, subjectRelation, page } = args;
  const none = { excludedUserIds: [], undecidedUserIds: [], isWildcardUndecided: false, next: '' };
  const list = (userIds: readonly string[]): SubjectList => ({ ...none, userIds, wildcard: false });
  if (subjectNamespace !== namespace) return list([]);
  if (page.after !== '' && compareUtf8(objectId, page.after) <= 0) return list([]);
  const subject = { kind: 'set', namespace, objectId, relation: subjectRelation } as const;
  const query = { namespace, objectId, relation, subject, contextJson: args.context };
  const task = ground.evaluator.startDecision(query, ground.nowMs, ground.readBudget);
  yield* stepsOf(task);
  return list(task.result() === TRUE ? [objectId] : []);
}

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
