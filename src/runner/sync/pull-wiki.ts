import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { createGit, type Git } from '../host/git/run-git.ts';
import { keyOfEntry, type HostCacheEntry } from './cache-entry.ts';
import { withFolderLimit } from './folder-size.ts';
import { mustStillBe, repositoryOf, type PullContext, type PullPart } from './pull-lists.ts';
import { remoteFailure, type RemoteGit } from './remote-git.ts';

/** A wiki has no API: it is the git repository `<repo>.wiki.git`, one file a page. */
const PAGE =
  /^(?:.*\/)?([^/]+)\.(?:md|markdown|mkdn?|mdown|textile|rdoc|org|creole|mediawiki|wiki|rst|asciidoc|adoc|asc|pod|txt)$/i;
/** `_Sidebar`, `_Footer` and `_Header` stand around pages. */
const DECORATION = /^_(?:sidebar|footer|header)$/i;
const PAGES_MAX = 5000;
const PAGE_BYTES_MAX = 1024 * 1024;
const WIKI_BYTES_MAX = 64 * 1024 * 1024;
/** History and all, on disk. */
const PACK_BYTES_MAX = 512 * 1024 * 1024;
/** Each fetch adds two or three; beyond, they are made one. */
const PACK_FILES_MAX = 200;
const FETCH_TIMEOUT_MS = 300_000;
const HEAD = 'refs/gatehouse/wiki';
const FIELD = '\u001f';

export type WikiContext = PullContext & {
  readonly remote: RemoteGit;
  /** Holds the bare copy `wiki.git`. */
  readonly directory: string;
  /** Where people read pages; such as `https://github.com`. */
  readonly webUrl: string;
  readonly signal: AbortSignal;
};

/**
 * Fetches the wiki and reads its pages. Nothing but one question to the host when it has not changed.
 * Errors: UPSTREAM_ERROR (also for a repository without a wiki), RESULT_TOO_LARGE after the pages that
 * fit were kept, those of Git and of Cache.save.
 */
export async function pullWiki(context: WikiContext): Promise<PullPart> {
  const { cache, remote, directory, owner, repo, isFull, signal } = context;
  const url = remote.url(owner, repo, '.wiki');
  const dir = join(directory, 'wiki.git');
  const git = createGit(dir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await git.run(['init', '--quiet', '--bare']);
  const listed = await remote.run(dir, ['ls-remote', '--end-of-options', url, 'HEAD'], { signal });
  if (listed.exitCode !== 0) throw remoteFailure('the wiki', listed);
  const head = /^([0-9a-f]{40,64})\t/.exec(listed.stdout.toString('utf8'))?.[1] ?? '';
  const cursor = {
    repository: repositoryOf(context),
    syncedAt: timeText(context.nowMs),
    position: head,
  };
  if (!isFull && head === cache.cursor().position) {
    await cache.save(cursor);
    return { fetched: 0, updated: 0, notModified: true };
  }
  let pages: readonly HostCacheEntry[] = [];
  let leftOut = 0;
  if (head !== '') {
    await fetchWiki(context, dir, url);
    ({ pages, leftOut } = await readPages(git, context));
  }
  mustStillBe(context);
  const gone = cache.retain(new Set(pages.map(keyOfEntry)));
  const updated = cache.merge(pages, true) + gone;
  // What is left out is reported by each pull.
  await cache.save(leftOut === 0 ? cursor : { ...cursor, position: '' });
  if (leftOut > 0) {
    const text = `${leftOut} pages of the wiki are too large or too many and were left out`;
    throw new AppError('RESULT_TOO_LARGE', text, { pageBytesMax: String(PAGE_BYTES_MAX) });
  }
  return { fetched: pages.length, updated, notModified: false };
}

/** Into one pack, whose growth is watched. */
async function fetchWiki(context: WikiContext, dir: string, url: string): Promise<void> {
  const args = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--end-of-options'];
  const packs = join(dir, 'objects', 'pack');
  const fetched = await withFolderLimit(packs, PACK_BYTES_MAX, context.signal, (signal) =>
    context.remote.run(dir, [...args, url, `+HEAD:${HEAD}`], {
      timeoutMs: FETCH_TIMEOUT_MS,
      signal,
      config: { 'fetch.unpackLimit': '1' },
    }),
  );
  if (fetched.exitCode !== 0) throw remoteFailure('the wiki', fetched);
  const files = await readdir(packs);
  if (files.length > PACK_FILES_MAX) await createGit(dir).run(['repack', '-a', '-d', '--quiet']);
}

type WikiFile = { readonly path: string; readonly sha: string; readonly name: string };
type History = { readonly createdAt: string; readonly updatedAt: string; readonly author: string };

async function readPages(
  git: Git,
  context: WikiContext,
): Promise<{ readonly pages: readonly HostCacheEntry[]; readonly leftOut: number }> {
  const { files, leftOut } = await listFiles(git);
  const histories = await readHistories(git);
  const bodies = await readBlobs(
    git,
    files.map(({ sha }) => sha),
  );
  const { webUrl, owner, repo } = context;
  const pages = files.map(({ path, sha, name }): HostCacheEntry => {
    const history = histories.get(path);
    return {
      slug: name,
      title: name.replaceAll('-', ' '),
      state: 'published',
      author: history?.author ?? '',
      labels: [],
      body: bodies.get(sha) ?? '',
      createdAt: history?.createdAt ?? timeText(0),
      updatedAt: history?.updatedAt ?? timeText(0),
      url: `${webUrl}/${owner}/${repo}/wiki/${encodeURIComponent(name)}`,
    };
  });
  return { pages, leftOut };
}

/** Page files of the newest commit; of two with the same name the first counts, as on the host. */
async function listFiles(
  git: Git,
): Promise<{ readonly files: readonly WikiFile[]; readonly leftOut: number }> {
  const text = await git.run(['ls-tree', '-r', '-z', '--long', '--end-of-options', HEAD]);
  const files = new Map<string, WikiFile>();
  let leftOut = 0;
  let totalBytes = 0;
  for (const line of text.split('\0')) {
    const [, mode, sha = '', size, path = ''] =
      /^(\d{6}) blob ([0-9a-f]+) +(\d+)\t(.+)$/s.exec(line) ?? [];
    const name = PAGE.exec(path)?.[1];
    // A symbolic link is no page.
    if (mode === undefined || mode === '120000' || name === undefined) continue;
    if (DECORATION.test(name) || files.has(name)) continue;
    totalBytes += Number(size);
    const isFull = files.size === PAGES_MAX || totalBytes > WIKI_BYTES_MAX;
    if (Number(size) > PAGE_BYTES_MAX || isFull) leftOut++;
    else files.set(name, { path, sha, name });
  }
  return { files: [...files.values()], leftOut };
}

/** First and last change of each path, with the author of the last. Cost: one walk of the history. */
async function readHistories(git: Git): Promise<ReadonlyMap<string, History>> {
  const text = await git.run([
    'log',
    '-z',
    '--name-only',
    '--no-renames',
    '--no-show-signature',
    '-m',
    '--first-parent',
    `--format=${FIELD}%cI${FIELD}%an${FIELD}`,
    '--end-of-options',
    HEAD,
  ]);
  const histories = new Map<string, History>();
  const parts = text.split(FIELD);
  for (let at = 1; at + 2 < parts.length; at += 3) {
    const changedAt = timeText(Date.parse(parts[at] ?? ''));
    const author = parts[at + 1] ?? '';
    // From the newest commit on: the first mention is the last change.
    for (const path of (parts[at + 2] ?? '').split('\0').map((name) => name.replace(/^\n/, ''))) {
      if (path === '') continue;
      const known = histories.get(path);
      histories.set(path, { author, updatedAt: changedAt, ...known, createdAt: changedAt });
    }
  }
  return histories;
}

/** The texts of blobs by their names, in one process. */
async function readBlobs(git: Git, shas: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  if (shas.length === 0) return texts;
  const { stdout } = await git.tryRun(['cat-file', '--batch'], {
    input: `${shas.join('\n')}\n`,
    outputBytesMax: WIKI_BYTES_MAX + PAGES_MAX * 200,
  });
  for (let at = 0; at < stdout.length;) {
    const lineEnd = stdout.indexOf(10, at);
    const [sha = '', , size = '0'] = stdout.toString('utf8', at, lineEnd).split(' ');
    const end = lineEnd + 1 + Number(size);
    texts.set(sha, stdout.toString('utf8', lineEnd + 1, end));
    at = end + 1;
  }
  return texts;
}

function timeText(ms: number): string {
  return new Date(Number.isNaN(ms) ? 0 : ms).toISOString();
}
