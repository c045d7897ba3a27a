import type { JsonObject } from '../../shared/json.ts';
import {
  entryFromDiscussion,
  entryFromIssue,
  entryFromRelease,
  keyOfEntry,
  objectOf,
  textOf,
  type HostCacheEntry,
  type SyncKind,
} from './cache-entry.ts';
import type { Cache } from './cache.ts';
import type { SyncConfig } from './sync-config.ts';

/** Actions after which the thing is no longer in this repository. */
const GONE: readonly string[] = ['deleted', 'transferred'];

/** The cache that an event is about; undefined for any other event. */
const KIND_OF_EVENT: Readonly<Record<string, SyncKind | undefined>> = {
  issues: 'issues',
  issue_comment: 'issues',
  discussion: 'discussions',
  discussion_comment: 'discussions',
  release: 'releases',
};

/** Whether the configuration asks for this mirror. */
export function isEnabled(config: SyncConfig, kind: SyncKind): boolean {
  const { syncIssues, syncDiscussions, syncWiki, syncReleases } = config.host;
  const flags = {
    issues: syncIssues,
    discussions: syncDiscussions,
    wiki: syncWiki,
    releases: syncReleases,
  };
  return config.enabled && flags[kind];
}

/**
 * Brings the cache up to what a verified delivery says, without asking the host; true when it changed.
 * Events of another repository or of a mirror that is off change nothing.
 * Errors: those of Cache.save.
 */
export async function applyDelivery(
  event: string,
  payload: JsonObject,
  config: SyncConfig,
  caches: Readonly<Record<SyncKind, Cache>>,
): Promise<boolean> {
  const kind = KIND_OF_EVENT[event];
  if (kind === undefined || !isEnabled(config, kind)) return false;
  const repository = `${config.host.owner}/${config.host.repo}`;
  const fullName = textOf(objectOf(payload['repository'])?.['full_name']);
  if (fullName.toLowerCase() !== repository.toLowerCase()) return false;
  const entry = entryOf(kind, payload);
  if (entry === undefined) return false;
  const cache = caches[kind];
  cache.useRepository(repository);
  const isGone = !event.endsWith('_comment') && GONE.includes(textOf(payload['action']));
  if (isGone) {
    if (!cache.has(keyOfEntry(entry))) return false;
    cache.remove(keyOfEntry(entry));
  } else if (cache.merge([entry]) === 0) {
    return false;
  }
  await cache.save();
  return true;
}

function entryOf(kind: SyncKind, payload: JsonObject): HostCacheEntry | undefined {
  if (kind === 'issues') return entryFromIssue(payload['issue']);
  if (kind === 'discussions') return entryFromDiscussion(payload['discussion']);
  return entryFromRelease(payload['release']);
}
