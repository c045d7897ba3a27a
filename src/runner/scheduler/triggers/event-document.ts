import type { JsonObject, JsonValue } from '../../../shared/json.ts';
import type { CommitFacts } from '../../model/ports.ts';
import { madeUpAccountId, madeUpRepositoryId } from './host-ids.ts';
import { idAt, objectOf, textAt } from './payload.ts';

/** What an event that is made here is made of. */
export type EventFacts = {
  readonly identity: { readonly repository: string; readonly serverUrl: string };
  readonly actor: string;
  /** What the project stands at: refs/heads/x, refs/tags/x, a sha, or '' outside git. */
  readonly ref: string;
  readonly sha: string;
  readonly commit: CommitFacts | undefined;
  readonly defaultBranch: string;
  /** Of the commit that the base branch of a pull request is at; '' where that is not known. */
  readonly baseSha: string;
  /** Activity of an event without payload. */
  readonly action: string | undefined;
  /** The first cron of the workflow, '' where it has none. */
  readonly cron: string;
};

const PULL_REQUEST_EVENTS: ReadonlySet<string> = new Set([
  'pull_request',
  'pull_request_target',
  'pull_request_review',
  'pull_request_review_comment',
]);
/** Of a pull request that nobody has opened. */
const NUMBER_DEFAULT = 1;

export function isPullRequestEvent(event: string): boolean {
  return PULL_REQUEST_EVENTS.has(event);
}

/**
 * `github.event` of a start by hand: what was given, completed by what every document of that event has
 * and the project knows (GitHub, "Webhook events and payloads"). What was given is changed in nothing.
 */
export function eventDocument(
  event: string,
  given: JsonObject | undefined,
  facts: EventFacts,
): JsonObject {
  const payload = given ?? {};
  const action = given === undefined && facts.action !== undefined ? { action: facts.action } : {};
  return {
    ...action,
    ...ownParts(event, payload, facts),
    ...commonParts(facts),
    ...payload,
    ...merged(event, payload, facts),
  };
}

function ownParts(event: string, payload: JsonObject, facts: EventFacts): JsonObject {
  if (event === 'schedule') return { schedule: facts.cron };
  return event === 'push' ? pushParts(payload, facts) : {};
}

function commonParts({ identity, actor, defaultBranch }: EventFacts): JsonObject {
  const [owner = '', name = ''] = identity.repository.split('/');
  return {
    repository: {
      id: madeUpRepositoryId(identity.repository),
      name,
      full_name: identity.repository,
      owner: { login: owner, id: madeUpAccountId(owner), name: owner },
      html_url: `${identity.serverUrl}/${identity.repository}`,
      default_branch: defaultBranch,
    },
    sender: { login: actor, id: madeUpAccountId(actor) },
  };
}

/** A payload that says which commits it is about is not mixed with the one of the project. */
function pushParts(payload: JsonObject, facts: EventFacts): JsonObject {
  const { ref, sha, commit, actor } = facts;
  if (payload['after'] !== undefined) return {};
  const before = commit?.parents[0] ?? '0'.repeat(sha.length);
  const range = { ref, before, after: sha, created: false, deleted: false, forced: false };
  if (commit === undefined) return range;
  const { message, timestamp, author } = commit;
  const head: JsonObject = { id: sha, message, timestamp, author, committer: author };
  return { ...range, head_commit: head, commits: [head], pusher: { name: actor } };
}

/** Objects that are filled in from inside. */
function merged(event: string, payload: JsonObject, facts: EventFacts): JsonObject {
  if (!isPullRequestEvent(event)) return {};
  const { ref, sha, defaultBranch, baseSha, identity } = facts;
  const given = objectOf(payload['pull_request']) ?? {};
  const number = numberOf(given['number']) ?? numberOf(payload['number']) ?? NUMBER_DEFAULT;
  const repo = { full_name: identity.repository };
  const head = { ref: ref.replace(/^refs\/(?:heads|tags)\//, ''), sha, repo };
  const givenBase = objectOf(given['base']) ?? {};
  // The commit of another branch is not known here.
  const isDefault = (givenBase['ref'] ?? defaultBranch) === defaultBranch;
  const known = isDefault && baseSha !== '' ? { sha: baseSha } : {};
  const base = { ref: defaultBranch, ...known, repo };
  return {
    number,
    pull_request: {
      state: 'open',
      draft: false,
      ...given,
      number,
      head: { ...head, ...objectOf(given['head']) },
      base: { ...base, ...givenBase },
    },
  };
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/**
 * `github.ref` of an event (GitHub, "Events that trigger workflows"); undefined where it is what the project
 * stands at.
 */
export function refOfEvent(event: string, document: JsonObject): string | undefined {
  if (event === 'pull_request_target') {
    const base = textAt(document, 'pull_request', 'base', 'ref');
    return base === undefined || base === '' ? undefined : `refs/heads/${base}`;
  }
  if (isPullRequestEvent(event)) {
    return `refs/pull/${idAt(document, 'pull_request', 'number') ?? NUMBER_DEFAULT}/merge`;
  }
  if (event === 'merge_group') return textAt(document, 'merge_group', 'head_ref');
  if (event === 'release') {
    const tag = textAt(document, 'release', 'tag_name');
    return tag === undefined ? undefined : `refs/tags/${tag}`;
  }
  const ref = textAt(document, 'ref') ?? textAt(document, 'deployment', 'ref');
  if (ref === undefined || ref === '' || event === 'delete') return undefined;
  if (ref.startsWith('refs/')) return ref;
  if (event === 'create' && textAt(document, 'ref_type') === 'tag') return `refs/tags/${ref}`;
  return `refs/heads/${ref}`;
}
