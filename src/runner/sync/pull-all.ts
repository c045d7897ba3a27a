import { AppError } from '../../shared/app-error.ts';
import { SYNC_KINDS, type SyncKind } from './cache-entry.ts';
import type { Cache } from './cache.ts';
import type { HostRateLimit } from './host-answer.ts';
import { isEnabled } from './inbox-caches.ts';
import { pullDiscussions, pullIssues, pullReleases, type PullPart } from './pull-lists.ts';
import { pullWiki, type WikiContext } from './pull-wiki.ts';
import type { SyncConfig } from './sync-config.ts';
import type { PullRequest } from './sync-requests.ts';

/** Answer of POST /api/sync/github; a kind that was not pulled is absent. */
export type PullReport = {
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly rateLimit?: HostRateLimit | undefined;
  /** What failed; the rest was kept. */
  readonly errors: readonly {
    readonly kind: SyncKind;
    readonly reason: string;
    readonly message: string;
    readonly retryAfterSeconds?: number | undefined;
  }[];
} & { readonly [kind in SyncKind]?: PullPart | undefined };

/** What the parts of a pull share; the cache is chosen here. */
export type PullAllContext = Omit<WikiContext, 'cache' | 'isFull' | 'nowMs'> & {
  readonly caches: Readonly<Record<SyncKind, Cache>>;
  readonly nowMs: () => number;
};

/**
 * Pulls the mirrors that are on, one after the other; one that fails does not keep the others.
 * Errors: SHUTTING_DOWN alone; all others stand in the report.
 */
export async function pullAll(
  context: PullAllContext,
  config: SyncConfig,
  request: PullRequest,
): Promise<PullReport> {
  const { caches, client, owner, repo, nowMs } = context;
  const startedAt = new Date(nowMs()).toISOString();
  const parts: { [kind in SyncKind]?: PullPart } = {};
  const errors: PullReport['errors'][number][] = [];
  for (const kind of SYNC_KINDS) {
    const isWanted = request.only === undefined || request.only.includes(kind);
    if (!isWanted || !isEnabled(config, kind)) continue;
    const cache = caches[kind];
    cache.useRepository(`${owner}/${repo}`);
    try {
      parts[kind] = await PULLS[kind]({
        ...context,
        cache,
        isFull: request.isFull,
        nowMs: nowMs(),
      });
    } catch (error) {
      if (!(error instanceof AppError) || context.signal.aborted) throw error;
      errors.push({ kind, ...publicError(error) });
    }
  }
  const rateLimit = client.rateLimit();
  return {
    startedAt,
    finishedAt: new Date(nowMs()).toISOString(),
    ...parts,
    ...(rateLimit === undefined ? {} : { rateLimit }),
    errors,
  };
}

const PULLS: Readonly<Record<SyncKind, (context: WikiContext) => Promise<PullPart>>> = {
  issues: pullIssues,
  discussions: pullDiscussions,
  wiki: pullWiki,
  releases: pullReleases,
};

function publicError(error: AppError): Omit<PullReport['errors'][number], 'kind'> {
  const { reason, message, metadata } = error;
  const seconds = metadata['retryAfterSeconds'];
  return {
    reason,
    message,
    ...(seconds === undefined ? {} : { retryAfterSeconds: Number(seconds) }),
  };
}
