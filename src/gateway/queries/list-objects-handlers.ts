import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  ListObjectsResponseSchema,
  type QueryService,
  type StreamObjectsRequest,
} from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkNamespace, checkRelation } from '../../model/names.ts';
import type { ObjectsOf } from '../../protocol/queries.ts';
import { askedSubject } from '../../requests/query-methods.ts';
import { ServedProject } from '../../services/projects/served-project.ts';
import { sharedNowMs } from '../connect/call-context.ts';
import { listAnswerWith } from '../rpc/list-answer.ts';
import { HeldParts, HeldCapacity } from './held-parts.ts';
import { askPage, closePage, openPage } from './list-page.ts';
import { askQuery, type QueryOptions, type QueryReply, resolvedScope } from './query-scope.ts';

/** Ids of a page whose request states no size. */
const PAGE_SIZE_DEFAULT = 1_000;

/** The objects on which a subject holds a relation, in pages and as a stream. */
export function listObjectsHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'listObjects' | 'streamObjects'> {
  const { meter } = options;
  const capacity = new HeldCapacity();
  return {
    listObjects: (request, call) =>
      meter.measure('QueryListObjects', async () => {
        assertNoUnknownFields(request);
        const of = objectsFromProto(request);
        const query = await resolvedScope(options, request.scope);
        const wanted = ['listObjects', of];
        const open = openPage(options, query, wanted, request, PAGE_SIZE_DEFAULT);
        const args = { ...query.head, ...of, page: open.page };
        const ids: string[] = [];
        const add = ({ result }: QueryReply<'listObjects'>): void => {
          for (const id of result.objectIds) ids.push(id);
        };
        const reply = await askPage(options, call, open, 'listObjects', args, add);
        add(reply);
        const { consistencyToken } = reply;
        const undecided = reply.result.isUndecided;
        const rest = { consistencyToken, undecided, ...closePage(open, reply, reply.result.next) };
        const messageOf = (some: readonly string[]) => ({ objectIds: [...some] });
        return listAnswerWith(call, ListObjectsResponseSchema, ids, messageOf, rest);
      }),

    async *streamObjects(request, call) {
      const parts = new HeldParts<QueryReply<'streamObjects'>>(capacity, sizeOf);
      // Counted until everything was found; how fast it is read is the caller's affair.
      const asking = meter.measure('StreamObjects', async () => {
        assertNoUnknownFields(request);
        const of = objectsFromProto(request);
        const query = await resolvedScope(options, request.scope);
        const args = { ...query.head, ...of };
        const onPart = (part: QueryReply<'streamObjects'>): void => parts.add(part);
        parts.add(await askQuery(options, call, query, 'streamObjects', args, onPart));
      });
      asking.then(
        () => parts.finish(),
        (error: unknown) => parts.fail(error),
      );
      let served: ServedProject | undefined;
      try {
        for (let part = await parts.next(); part !== undefined; part = await parts.next()) {
          served ??= servedProject(options, request.scope, call.signal);
          await served.refresh();
          const { texts, isUndecided: undecided } = part.result;
          const objectIds = texts.flatMap((text) => text.split('\n'));
          yield { objectIds, consistencyToken: part.consistencyToken, undecided };
        }
      } finally {
        parts.close();
      }
    },
  };
}

/** Guards a stream: parts that are held for a slow reader are not sent once the project is no longer served. */
function servedProject(
  options: QueryOptions,
  scope: StreamObjectsRequest['scope'],
  signal: AbortSignal,
): ServedProject {
  const { projectId = '', tenantId = '' } = scope ?? {};
  const request = { projectId, tenantId, token: '', deadlineMs: Infinity };
  const open = (): Promise<void> => options.scopes.decide(request, signal, () => Promise.resolve());
  return new ServedProject(sharedNowMs, open);
}

function objectsFromProto(
  request: Pick<StreamObjectsRequest, 'namespace' | 'relation' | 'subject'>,
): ObjectsOf {
  const { namespace, relation } = request;
  checkNamespace('namespace', namespace);
  checkRelation('relation', relation);
  return { namespace, relation, subject: askedSubject('subject', request.subject) };
}

function sizeOf({ result }: QueryReply<'streamObjects'>): number {
  return result.texts.reduce((size, text) => size + text.length, 0);
}
