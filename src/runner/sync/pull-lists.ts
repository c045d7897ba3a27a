import { AppError } from '../../shared/app-error.ts';
import {
  entryFromDiscussionNode,
  entryFromIssue,
  entryFromRelease,
  keyOfEntry,
  objectOf,
  type HostCacheEntry,
} from './cache-entry.ts';
import type { Cache } from './cache.ts';
import type { HostClient } from './host-client.ts';
import { fetchPages } from './page-memory.ts';

/** What the pull of one kind did. */
export type PullPart = {
  /** Entries that the host sent. */
  readonly fetched: number;
  /** Entries of the cache that were added, changed or removed. */
  readonly updated: number;
  /** The host said that nothing has changed since the last pull. */
  readonly notModified: boolean;
};

export type PullContext = {
  readonly cache: Cache;
  readonly client: HostClient;
  readonly owner: string;
  readonly repo: string;
  /** Forget cursors and ETags, read everything, drop what is gone. */
  readonly isFull: boolean;
  readonly nowMs: number;
};

const PER_PAGE = 100;
const DISCUSSION_PAGES_MAX = 500;

/**
 * Issues that changed since the last pull. In order of creation, so that an issue that changes while
 * pages are read cannot push another one over a page's edge unread; the cursor is never later than the
 * host's clock at the beginning, so that what changed meanwhile is read again.
 * The host's list holds pull requests too; they are left out.
 * Errors: as HostClient.send and Cache.save.
 */
export async function pullIssues(context: PullContext): Promise<PullPart> {
  const { cache, client, isFull } = context;
  const since = isFull ? undefined : cache.cursor().position;
  const parameters = new URLSearchParams({
    state: 'all',
    sort: 'created',
    direction: 'asc',
    per_page: String(PER_PAGE),
    // The host's times have whole seconds.
    ...(since === undefined ? {} : { since: since.replace(/\.\d+Z$/, 'Z') }),
  });
  const list = await fetchPages(
    client,
    `/repos/${context.owner}/${context.repo}/issues?${parameters.toString()}`,
    isFull ? {} : (cache.cursor().pages ?? {}),
    () => [],
  );
  const items = list.pages.flatMap((page) => page.items ?? []);
  const entries = present(items.map(entryFromIssue));
  mustStillBe(context);
  let updated = cache.merge(entries);
  if (isFull) updated += cache.retain(new Set(entries.map(keyOfEntry)));
  const newest = newestUpdate(items) ?? since;
  const begunAt = new Date(list.hostTimeMs ?? context.nowMs).toISOString();
  await save(context, earlier(newest, begunAt), list.notes);
  return { fetched: entries.length, updated, notModified: list.isNotModified };
}

/** All releases; pages that did not change cost a 304. Errors: as HostClient.send and Cache.save. */
export async function pullReleases(context: PullContext): Promise<PullPart> {
  const { cache, client, isFull } = context;
  const list = await fetchPages(
    client,
    `/repos/${context.owner}/${context.repo}/releases?per_page=${PER_PAGE}`,
    isFull ? {} : (cache.cursor().pages ?? {}),
    (items) => present(items.map(entryFromRelease)).map(keyOfEntry),
  );
  const entries = present(list.pages.flatMap((page) => page.items ?? []).map(entryFromRelease));
  mustStillBe(context);
  const gone = cache.retain(new Set(list.pages.flatMap((page) => page.keys)));
  const updated = cache.merge(entries) + gone;
  await save(context, undefined, list.notes);
  return { fetched: entries.length, updated, notModified: list.isNotModified };
}

const DISCUSSIONS_QUERY = `query ($owner: String!, $repo: String!, $after: String) {
  repository(owner: $owner, name: $repo) {
    discussions(first: ${PER_PAGE}, after: $after, orderBy: { field: UPDATED_AT, direction: DESC }) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body url closed createdAt updatedAt
        author { login }
        category { name }
        labels(first: 20) { nodes { name } }
      }
    }
  }
}`;

/**
 * Discussions that changed since the last pull; they exist in the GraphQL API alone, which knows no
 * ETag. Newest first, until one is older than the newest of the last pull.
 * Errors: as HostClient.query and Cache.save.
 */
export async function pullDiscussions(context: PullContext): Promise<PullPart> {
  const { cache, isFull } = context;
  const since = isFull ? undefined : cache.cursor().position;
  const entries: HostCacheEntry[] = [];
  let after: string | null = null;
  for (let page = 0; ; page++) {
    if (page === DISCUSSION_PAGES_MAX) {
      throw new AppError('UPSTREAM_ERROR', 'the code host answered with a list without an end');
    }
    const { nodes, next } = await discussionPage(context, after);
    entries.push(...nodes.filter(({ updatedAt }) => since === undefined || updatedAt >= since));
    const isPast = nodes.some(({ updatedAt }) => since !== undefined && updatedAt < since);
    if (isPast || next === undefined) break;
    after = next;
  }
  mustStillBe(context);
  let updated = cache.merge(entries);
  if (isFull) updated += cache.retain(new Set(entries.map(keyOfEntry)));
  await save(context, entries[0]?.updatedAt ?? since, undefined);
  return { fetched: entries.length, updated, notModified: false };
}

async function discussionPage(
  context: PullContext,
  after: string | null,
): Promise<{ readonly nodes: readonly HostCacheEntry[]; readonly next: string | undefined }> {
  const { owner, repo } = context;
  const data = await context.client.query(DISCUSSIONS_QUERY, { owner, repo, after });
  const connection = objectOf(objectOf(objectOf(data)?.['repository'])?.['discussions']);
  const nodes = connection?.['nodes'];
  if (!Array.isArray(nodes)) {
    throw new AppError('UPSTREAM_ERROR', 'the code host answered without discussions');
  }
  const pageInfo = objectOf(connection?.['pageInfo']);
  const endCursor = pageInfo?.['endCursor'];
  const hasNext = pageInfo?.['hasNextPage'] === true && typeof endCursor === 'string';
  return {
    nodes: present(nodes.map(entryFromDiscussionNode)),
    next: hasNext ? endCursor : undefined,
  };
}

/** `owner/repo`, as cursors name it. */
export function repositoryOf(context: PullContext): string {
  return `${context.owner}/${context.repo}`;
}

/**
 * To be called between the last answer of the host and the change of the cache: the settings may have
 * turned to another repository meanwhile, and a webhook of that one come first. Errors: CANCELLED.
 */
export function mustStillBe(context: PullContext): void {
  if (context.cache.cursor().repository === repositoryOf(context)) return;
  throw new AppError('CANCELLED', 'the settings now name another repository');
}

async function save(
  context: PullContext,
  position: string | undefined,
  pages: Readonly<Record<string, unknown>> | undefined,
): Promise<void> {
  await context.cache.save({
    repository: repositoryOf(context),
    syncedAt: new Date(context.nowMs).toISOString(),
    ...(position === undefined ? {} : { position }),
    ...(pages === undefined ? {} : { pages }),
  });
}

function present<T>(items: readonly (T | undefined)[]): T[] {
  return items.filter((item): item is T => item !== undefined);
}

/** Of all items of the page, pull requests too: the host's `since` counts them. */
function newestUpdate(items: readonly unknown[]): string | undefined {
  return items
    .map((item) => objectOf(item)?.['updated_at'])
    .filter((at): at is string => typeof at === 'string' && !Number.isNaN(Date.parse(at)))
    .map((at) => new Date(at).toISOString())
    .reduce<string | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined);
}

function earlier(a: string | undefined, b: string): string | undefined {
  if (a === undefined) return undefined;
  return a < b ? a : b;
}
