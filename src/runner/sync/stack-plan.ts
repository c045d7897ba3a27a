import { createHash } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';
import { mustRef, type Git } from '../host/git/run-git.ts';

/** A host takes stacks of up to 100 pull requests; people read far smaller ones. */
const LAYERS_MAX = 100;
const FIELD = '\u001f';
const RECORD = '\u001e';
const SLUG_CHARS_MAX = 40;
const ID_CHARS = 12;

/** One pull request to be: a branch at a commit. */
export type Layer = {
  readonly branch: string;
  readonly sha: string;
  readonly subject: string;
  /** The commit message below its subject. */
  readonly text: string;
};

export type StackRequest = {
  /** A branch of the code host. */
  readonly base: string;
  readonly head: string;
  readonly prefix: string;
  /** Local branches, bottom to top, instead of one branch for each commit of `head`. */
  readonly branches?: readonly string[] | undefined;
};

type Commit = {
  readonly sha: string;
  readonly subject: string;
  readonly text: string;
  readonly changeIds: readonly string[];
  readonly stackIds: readonly string[];
  readonly author: string;
};

/**
 * The layers of `base..head`, bottom first. `baseSha` is where the base stands on the host, and
 * `remoteBranches` are the host's branches below the prefix: a commit that was pushed before keeps its
 * branch, also when its subject has changed.
 * Errors: NOTHING_TO_PUSH, INVALID_REF (metadata.field) for what does not exist or holds a merge,
 * INVALID_REQUEST for branches that do not build on each other, for too many and for one id twice.
 */
export async function planStack(
  git: Git,
  request: StackRequest,
  baseSha: string,
  remoteBranches: readonly string[],
): Promise<readonly Layer[]> {
  if (request.branches !== undefined) return await planBranches(git, request.branches, baseSha);
  const head = await commitOf(git, request.head, 'head');
  const commits = await commitsBetween(git, baseSha, head);
  const ids = identities(commits);
  return commits.map((commit, index) => ({
    branch: branchOf(request.prefix, commit.subject, ids[index] ?? '', remoteBranches),
    sha: commit.sha,
    subject: commit.subject,
    text: commit.text,
  }));
}

async function planBranches(
  git: Git,
  branches: readonly string[],
  baseSha: string,
): Promise<readonly Layer[]> {
  const layers: Layer[] = [];
  let below = baseSha;
  for (const branch of branches) {
    const tip = await commitOf(git, `refs/heads/${mustRef(branch)}`, 'branches');
    if (layers.length > 0) await mustBuildOn(git, branch, tip, below);
    const commits = await commitsBetween(git, below, tip);
    const last = commits.at(-1);
    if (last === undefined) throw nothing(`branch ${branch} adds no commit`, 'branches');
    layers.push({ branch, sha: tip, subject: last.subject, text: last.text });
    below = tip;
  }
  return layers;
}

async function mustBuildOn(git: Git, branch: string, tip: string, below: string): Promise<void> {
  const { exitCode } = await git.tryRun(['merge-base', '--is-ancestor', below, tip]);
  if (exitCode === 0) return;
  throw new AppError(
    'INVALID_REQUEST',
    `branch ${branch} does not build on the branch below it; rebase it first`,
    { field: 'branches' },
  );
}

/** The commit that `ref` names. Errors: INVALID_REF. */
async function commitOf(git: Git, ref: string, field: string): Promise<string> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${mustRef(ref)}^{commit}`];
  const { exitCode, stdout } = await git.tryRun(args);
  if (exitCode === 0) return stdout.toString('utf8').trim();
  throw new AppError('INVALID_REF', `${ref} is not a commit of this repository`, { field });
}

/** Oldest first, one line of history. Errors: NOTHING_TO_PUSH, INVALID_REF for a merge, INVALID_REQUEST. */
async function commitsBetween(git: Git, base: string, head: string): Promise<readonly Commit[]> {
  const trailer = (key: string): string => `%(trailers:key=${key},valueonly,separator=%x2C)`;
  const format = ['%H', '%P', '%ae %at', '%s', '%b', trailer('Change-Id'), trailer('Stack-Id')];
  const text = await git.run([
    'log',
    '--reverse',
    '--topo-order',
    '--no-show-signature',
    `--max-count=${LAYERS_MAX + 1}`,
    `--format=${format.join('%x1f')}%x1e`,
    '--end-of-options',
    `${base}..${head}`,
  ]);
  const commits = text
    .split(RECORD)
    .map((record) => record.replace(/^\n/, ''))
    .filter((record) => record !== '')
    .map(commitOfRecord);
  if (commits.length === 0) throw nothing('there is no commit beyond the base', 'head');
  if (commits.length > LAYERS_MAX) {
    throw new AppError('INVALID_REQUEST', `a stack has at most ${LAYERS_MAX} commits`, {
      field: 'head',
    });
  }
  return commits;
}

function commitOfRecord(record: string): Commit {
  const [sha = '', parents = '', author = '', subject = '', text = '', changes = '', stacks = ''] =
    record.split(FIELD);
  if (parents.includes(' ')) {
    throw new AppError('INVALID_REF', `commit ${sha.slice(0, ID_CHARS)} is a merge; rebase first`, {
      field: 'head',
    });
  }
  return {
    sha,
    author,
    subject: subject || '(no subject)',
    text: text.trim(),
    changeIds: idsOf(changes),
    stackIds: idsOf(stacks),
  };
}

function idsOf(trailers: string): readonly string[] {
  return trailers
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
}

/**
 * What makes each commit the same after an amend or a rebase: its Change-Id, a Stack-Id that no other
 * commit of the stack has, else its author and the time of authorship, which both keep; of several with
 * the same the first, second… (commits of a script may share a second).
 * Errors: INVALID_REQUEST when two commits carry the same Change-Id.
 */
function identities(commits: readonly Commit[]): readonly string[] {
  const stackIdCounts = counted(commits.flatMap(({ stackIds }) => stackIds));
  const authorCounts = new Map<string, number>();
  const seen = new Set<string>();
  return commits.map(({ changeIds, stackIds, author }) => {
    const own = changeIds.at(-1) ?? stackIds.find((id) => stackIdCounts.get(id) === 1);
    if (own !== undefined) {
      if (seen.has(own)) {
        const text = 'two commits of the stack carry the same Change-Id';
        throw new AppError('INVALID_REQUEST', text, { field: 'head' });
      }
      seen.add(own);
      return shortId(`id ${own}`);
    }
    const count = (authorCounts.get(author) ?? 0) + 1;
    authorCounts.set(author, count);
    return shortId(`author ${author} ${count}`);
  });
}

function counted(values: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function shortId(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, ID_CHARS);
}

function branchOf(
  prefix: string,
  subject: string,
  id: string,
  remoteBranches: readonly string[],
): string {
  const known = remoteBranches.find((name) => name.startsWith(prefix) && name.endsWith(`-${id}`));
  if (known !== undefined) return known;
  const slug = subject
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, SLUG_CHARS_MAX)
    .replace(/-+$/, '');
  return `${prefix}${slug === '' ? 'commit' : slug}-${id}`;
}

function nothing(text: string, field: string): AppError {
  return new AppError('NOTHING_TO_PUSH', text, { field });
}
