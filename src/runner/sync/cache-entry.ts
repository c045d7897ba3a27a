/** What is mirrored from the code host. */
export const SYNC_KINDS = ['issues', 'discussions', 'wiki', 'releases'] as const;
export type SyncKind = (typeof SYNC_KINDS)[number];

/** One issue, discussion, wiki page or release as the caches show it. */
export type HostCacheEntry = {
  /** Issues and discussions alone have it. */
  readonly number?: number | undefined;
  /** Releases alone have it. */
  readonly id?: number | undefined;
  /** Wiki pages alone have it: the file's name without its extension. */
  readonly slug?: string | undefined;
  readonly title: string;
  /** `open`, `closed`; of releases `published`, `prerelease`, `draft`; of wiki pages `published`. */
  readonly state: string;
  /** A login, of wiki pages the name in the commit; '' when the account is gone. */
  readonly author: string;
  readonly labels: readonly string[];
  readonly body: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly url: string;
  /** Releases alone have it. */
  readonly tag?: string | undefined;
  /** Discussions alone have it. */
  readonly category?: string | undefined;
};

const LABELS_MAX = 100;

/** Identifies an entry within its cache. */
export function keyOfEntry(entry: HostCacheEntry): string {
  return String(entry.number ?? entry.id ?? entry.slug ?? '');
}

/** An issue of the REST API or of a webhook; undefined for a pull request or anything else. */
export function entryFromIssue(json: unknown): HostCacheEntry | undefined {
  const issue = objectOf(json);
  if (issue === undefined || issue['pull_request'] !== undefined) return undefined;
  return numbered(issue, textOf(issue['state']), labelsOf(issue['labels']));
}

/** A discussion of a webhook (the REST form). */
export function entryFromDiscussion(json: unknown): HostCacheEntry | undefined {
  const discussion = objectOf(json);
  if (discussion === undefined) return undefined;
  const entry = numbered(discussion, textOf(discussion['state']), labelsOf(discussion['labels']));
  const category = textOf(objectOf(discussion['category'])?.['name']);
  return entry === undefined ? undefined : { ...entry, category };
}

/** A discussion as the GraphQL query of pull-discussions.ts asks for it. */
export function entryFromDiscussionNode(json: unknown): HostCacheEntry | undefined {
  const node = objectOf(json);
  if (node === undefined) return undefined;
  const labels = objectOf(node['labels'])?.['nodes'];
  return entryFromDiscussion({
    number: node['number'],
    title: node['title'],
    state: node['closed'] === true ? 'closed' : 'open',
    user: node['author'],
    labels,
    body: node['body'],
    created_at: node['createdAt'],
    updated_at: node['updatedAt'],
    html_url: node['url'],
    category: node['category'],
  });
}

/** A release of the REST API or of a webhook. */
export function entryFromRelease(json: unknown): HostCacheEntry | undefined {
  const release = objectOf(json);
  const id = release?.['id'];
  if (release === undefined || !isCount(id)) return undefined;
  const createdAt = timeOf(release['created_at']);
  const tag = textOf(release['tag_name']);
  const published = release['prerelease'] === true ? 'prerelease' : 'published';
  return {
    id,
    tag,
    title: textOf(release['name']) || tag,
    state: release['draft'] === true ? 'draft' : published,
    author: textOf(objectOf(release['author'])?.['login']),
    labels: [],
    body: textOf(release['body']),
    createdAt,
    updatedAt: timeOf(release['updated_at'] ?? release['published_at'] ?? release['created_at']),
    url: textOf(release['html_url']),
  };
}

function numbered(
  json: Readonly<Record<string, unknown>>,
  state: string,
  labels: readonly string[],
): HostCacheEntry | undefined {
  const number = json['number'];
  if (!isCount(number)) return undefined;
  return {
    number,
    title: textOf(json['title']),
    state: state.toLowerCase() || 'open',
    author: textOf(objectOf(json['user'])?.['login']),
    labels,
    body: textOf(json['body']),
    createdAt: timeOf(json['created_at']),
    updatedAt: timeOf(json['updated_at']),
    url: textOf(json['html_url']),
  };
}

function labelsOf(json: unknown): readonly string[] {
  if (!Array.isArray(json)) return [];
  return json
    .slice(0, LABELS_MAX)
    .map((label: unknown) =>
      typeof label === 'string' ? label : textOf(objectOf(label)?.['name']),
    )
    .filter((name) => name !== '');
}

/** A JSON object, undefined for anything else. */
export function objectOf(json: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined;
  return json as Readonly<Record<string, unknown>>;
}

/** A string, '' for anything else. */
export function textOf(json: unknown): string {
  return typeof json === 'string' ? json : '';
}

/** A whole number above 0, as the host numbers things. */
export function isCount(json: unknown): json is number {
  return typeof json === 'number' && Number.isSafeInteger(json) && json > 0;
}

/** The time in the form of all our times; the epoch when it is none. */
function timeOf(json: unknown): string {
  const ms = Date.parse(textOf(json));
  return new Date(Number.isNaN(ms) ? 0 : ms).toISOString();
}
