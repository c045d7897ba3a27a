import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import { idAt, objectAt, textAt } from './payload.ts';

/** Which commit an event is about, and with it the version of the workflow files that counts. */
export type EventSubject =
  /** None: the project as it is. */
  | { readonly kind: 'project' }
  /** One commit, shown as `ref`. */
  | { readonly kind: 'commit'; readonly ref: string; readonly sha: string }
  /** Whatever a branch or tag names by now. */
  | { readonly kind: 'ref'; readonly ref: string }
  | PullRequestSubject;

export type PullRequestSubject = {
  readonly kind: 'merge';
  readonly number: number;
  /** `refs/pull/<number>/merge`. */
  readonly ref: string;
  readonly base: string;
  readonly head: string;
  /** The host's own merge of the two, if it said one. */
  readonly mergeCommit?: string | undefined;
  /** `owner/name` of the repository that the head is in, when it is another one that still exists. */
  readonly headRepository?: string | undefined;
  readonly isFork: boolean;
};

/** Who opened a pull request, as far as it decides whether its runs need approval. */
export type PullRequestAuthor = {
  /** The host's id of the account, which a change of name does not change. */
  readonly id: string;
  /** As the host says it: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIMER… */
  readonly association: string;
};

const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const ZERO_SHA = /^0+$/;
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;
/** Those that GitHub runs at the merge commit ("Events that trigger workflows"). */
const AT_MERGE: ReadonlySet<string> = new Set([
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
]);

/**
 * What `event` is about. Errors: INVALID_REQUEST for a pull request whose payload does not say which
 * commits it joins: it is not run as something else.
 */
export function subjectOf(event: string, payload: JsonObject): EventSubject {
  if (AT_MERGE.has(event)) return mergeOf(payload);
  if (event === 'pull_request_target') {
    const branch = textAt(payload, 'pull_request', 'base', 'ref');
    return {
      kind: 'commit',
      ref: `refs/heads/${mustText(branch, 'base.ref')}`,
      sha: baseOf(payload),
    };
  }
  if (event === 'merge_group') {
    const sha = shaOf(textAt(payload, 'merge_group', 'head_sha'));
    if (sha === undefined) throw incomplete('merge_group.head_sha');
    return { kind: 'commit', ref: textAt(payload, 'merge_group', 'head_ref') ?? sha, sha };
  }
  const ref = refOf(event, payload);
  if (event === 'push') {
    // `after` of an annotated tag is the tag, not its commit; both lead to it.
    const sha = shaOf(textAt(payload, 'after')) ?? shaOf(textAt(payload, 'head_commit', 'id'));
    if (sha !== undefined) return { kind: 'commit', ref: ref ?? sha, sha };
  }
  // A `workflow_run` and its like are about the default branch: never the head of a fork.
  return ref === undefined ? { kind: 'project' } : { kind: 'ref', ref };
}

/** The author of the pull request of an event; undefined when the payload does not say. */
export function authorOf(payload: JsonObject): PullRequestAuthor | undefined {
  const id = idAt(payload, 'pull_request', 'user', 'id');
  const association = textAt(payload, 'pull_request', 'author_association') ?? 'NONE';
  return id === undefined ? undefined : { id, association };
}

function mergeOf(payload: JsonObject): PullRequestSubject {
  const head = shaOf(textAt(payload, 'pull_request', 'head', 'sha'));
  if (head === undefined) throw incomplete('pull_request.head.sha');
  const number = Number(idAt(payload, 'pull_request', 'number') ?? idAt(payload, 'number'));
  if (!Number.isSafeInteger(number) || number < 1) throw incomplete('pull_request.number');
  const headRepository = textAt(payload, 'pull_request', 'head', 'repo', 'full_name');
  const isNamed = headRepository !== undefined && REPOSITORY.test(headRepository);
  return {
    kind: 'merge',
    number,
    ref: `refs/pull/${number}/merge`,
    base: baseOf(payload),
    head,
    mergeCommit: shaOf(textAt(payload, 'pull_request', 'merge_commit_sha')),
    headRepository: isNamed ? headRepository : undefined,
    isFork: isFork(payload),
  };
}

/**
 * Whether the head lies in another repository than the base. One that is gone, or not named, counts as
 * another one.
 */
function isFork(payload: JsonObject): boolean {
  const [head, base] = (['head', 'base'] as const).map((side) => {
    const repo = objectAt(payload, 'pull_request', side, 'repo');
    return repo === undefined
      ? undefined
      : { id: idAt(repo, 'id'), name: textAt(repo, 'full_name')?.toLowerCase() };
  });
  if (head === undefined || base === undefined) return true;
  if (head.id !== undefined && base.id !== undefined && head.id !== base.id) return true;
  return head.name === undefined || head.name !== base.name;
}

function baseOf(payload: JsonObject): string {
  const sha = shaOf(textAt(payload, 'pull_request', 'base', 'sha'));
  if (sha === undefined) throw incomplete('pull_request.base.sha');
  return sha;
}

/** The branch or tag that an event names. */
function refOf(event: string, payload: JsonObject): string | undefined {
  if (event === 'release') {
    const tag = textAt(payload, 'release', 'tag_name');
    return tag === undefined ? undefined : `refs/tags/${tag}`;
  }
  const ref = textAt(payload, 'ref');
  if (ref === undefined || ref === '' || event === 'delete') return undefined;
  if (ref.startsWith('refs/')) return ref;
  if (event === 'create') {
    return textAt(payload, 'ref_type') === 'tag' ? `refs/tags/${ref}` : `refs/heads/${ref}`;
  }
  return ref;
}

function shaOf(text: string | undefined): string | undefined {
  return text !== undefined && SHA.test(text) && !ZERO_SHA.test(text) ? text : undefined;
}

function mustText(text: string | undefined, field: string): string {
  if (text === undefined || text === '') throw incomplete(`pull_request.${field}`);
  return text;
}

function incomplete(field: string): AppError {
  return new AppError('INVALID_REQUEST', `the payload has no ${field}`, { field });
}
