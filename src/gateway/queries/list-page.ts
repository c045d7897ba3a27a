import type { HandlerContext } from '@connectrpc/connect';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ListPage } from '../../model/subject-list.ts';
import type { QueryArgs, Revision } from '../../protocol/queries.ts';
import type { ScopedQuery } from '../../requests/scoped-query.ts';
import { AppError } from '../../shared/app-error.ts';
import { decodePageToken, encodePageToken, type PageToken, queryDigest } from './page-token.ts';
import { askQuery, type QueryOptions, type QueryReply } from './query-scope.ts';

/** Ids of one page at most. */
const PAGE_SIZE_MAX = 10_000;

/** A requested page. */
export type OpenPage = {
  readonly page: ListPage;
  /** The request's scope, with a token that the list's first page is not ahead of. */
  readonly query: ScopedQuery;
  readonly digest: Buffer;
  /** The token that a later page continues from. */
  readonly from: PageToken | undefined;
};

/**
 * The page that a request asks for. `wanted` is all that makes the list what it is but for the scope; `sizeDefault` is
 * that of page_size 0. Errors: FIELD_INVALID naming `page_size` or `page_token`; TOKEN_INVALID naming the token.
 */
export function openPage(
  { scopes }: Pick<QueryOptions, 'scopes'>,
  query: ScopedQuery,
  wanted: readonly unknown[],
  request: { readonly pageSize: number; readonly pageToken: string },
  sizeDefault: number,
): OpenPage {
  const { pageSize, pageToken } = request;
  if (pageSize < 0 || pageSize > PAGE_SIZE_MAX) {
    throw fieldError('page_size', `must be 0 to ${PAGE_SIZE_MAX}`);
  }
  const idsMax = pageSize === 0 ? sizeDefault : pageSize;
  const digest = queryDigest([...wanted, query.head]);
  if (pageToken === '') {
    return { page: { after: '', idsMax }, query, digest, from: undefined };
  }
  const from = decodePageToken(pageToken, digest);
  const first = ofPage(() => scopes.positionOf(query.shard, from.consistencyToken));
  const asked = query.token === '' ? undefined : scopes.positionOf(query.shard, query.token);
  const token = asked !== undefined && isLater(asked, first) ? query.token : from.consistencyToken;
  return { page: { after: from.after, idsMax }, query: { ...query, token }, digest, from };
}

/** The members of a page's answer about the whole list; `next` is the last id of a page after which others follow. */
export function closePage(
  { from, digest }: OpenPage,
  reply: Pick<QueryReply<'listObjects'>, 'consistencyToken' | 'settingsVersion'>,
  next: string,
): { readonly nextPageToken: string; readonly revisionChanged: boolean } {
  const { consistencyToken, settingsVersion } = from ?? reply;
  const revisionChanged =
    consistencyToken !== reply.consistencyToken || settingsVersion !== reply.settingsVersion;
  const after = next;
  const nextPageToken =
    next === '' ? '' : encodePageToken({ consistencyToken, settingsVersion, digest, after });
  return { nextPageToken, revisionChanged };
}

function isLater(a: Revision, b: Revision): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.revision > b.revision);
}

/** Asks for a page. Errors as of `askQuery`; a consistency token that came in the page token is called by that name. */
export async function askPage<K extends 'listSubjects' | 'listObjects'>(
  options: QueryOptions,
  call: HandlerContext,
  { query, from }: OpenPage,
  kind: K,
  args: QueryArgs[K],
  onPart: (part: QueryReply<K>) => void,
): Promise<QueryReply<K>> {
  try {
    return await askQuery(options, call, query, kind, args, onPart);
  } catch (error) {
    throw query.token === from?.consistencyToken ? pageError(error) : error;
  }
}

function ofPage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw pageError(error);
  }
}

/** TOKEN_INVALID as the fault of the page token; other errors as they are. */
function pageError(error: unknown): unknown {
  if (!(error instanceof AppError) || error.reason !== 'TOKEN_INVALID') return error;
  return new AppError<AuthzReason>(
    'TOKEN_INVALID',
    'page_token: is not a token of this project and tenant, or of a history that has ended: begin with the first page',
    { field: 'page_token' },
    error,
  );
}
