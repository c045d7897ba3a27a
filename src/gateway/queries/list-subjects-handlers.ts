import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  ListSubjectsResponseSchema,
  type QueryService,
} from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkNamespace, checkRelation } from '../../model/names.ts';
import { fieldError } from '../../model/reasons.ts';
import type { SubjectPage } from '../../model/subject-list.ts';
import { checkObjectRelation } from '../../requests/check-request.ts';
import { listAnswerWith } from '../rpc/list-answer.ts';
import { askPage, closePage, openPage } from './list-page.ts';
import { type QueryOptions, resolvedScope } from './query-scope.ts';

/** Handlers that list the subjects which hold a relation on an object. */
export function listSubjectsHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'listSubjects'> {
  return {
    listSubjects: (request, call) =>
      options.meter.measure('ListSubjects', async () => {
        assertNoUnknownFields(request);
        checkObjectRelation(request);
        const { namespace, objectId, relation, subjectNamespace, subjectRelation } = request;
        checkKind(subjectNamespace, subjectRelation);
        const query = await resolvedScope(options, request.scope);
        const kind = { subjectNamespace, subjectRelation };
        const wanted = ['listSubjects', namespace, objectId, relation, ...Object.values(kind)];
        const open = openPage(options, query, wanted, request, Infinity);
        const args = { ...query.head, namespace, objectId, relation, ...kind, page: open.page };
        const lists = new JoinedLists();
        const reply = await askPage(options, call, open, 'listSubjects', args, (part) =>
          lists.add(part.result),
        );
        lists.add(reply.result);
        const { userIds, excludedUserIds, undecidedUserIds } = lists;
        const { wildcard, isWildcardUndecided: wildcardUndecided, next } = reply.result;
        const { consistencyToken } = reply;
        const page = closePage(open, reply, next);
        const of = { wildcard, wildcardUndecided, consistencyToken, ...page };
        const rest = { ...of, excludedUserIds, undecidedUserIds };
        const messageOf = (ids: readonly string[]) => ({ userIds: [...ids] });
        return listAnswerWith(call, ListSubjectsResponseSchema, userIds, messageOf, rest);
      }),
  };
}

function checkKind(subjectNamespace: string, subjectRelation: string): void {
  if (subjectNamespace !== '') checkNamespace('subject_namespace', subjectNamespace);
  if (subjectRelation === '') return;
  checkRelation('subject_relation', subjectRelation);
  if (subjectNamespace === '') throw fieldError('subject_relation', 'needs a subject_namespace');
}

/** The lists of all parts of an answer. */
class JoinedLists {
  readonly userIds: string[] = [];
  readonly excludedUserIds: string[] = [];
  readonly undecidedUserIds: string[] = [];

  add(part: SubjectPage): void {
    for (const id of part.userIds) this.userIds.push(id);
    for (const id of part.excludedUserIds) this.excludedUserIds.push(id);
    for (const id of part.undecidedUserIds) this.undecidedUserIds.push(id);
  }
}
