import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { Git } from '../git/run-git.ts';
import { packedRefsText, type ProjectRef, readProjectRefs } from './project-refs.ts';
import { readSmall } from './small-file.ts';

const DEPTH_MAX = 100_000;
/** Up to so many steps back each is asked for by itself; beyond it the whole history is read. */
const SINGLE_STEPS_MAX = 32;
const HISTORY_BYTES_MAX = 256 * 1024 * 1024;

export type NarrowRequest = {
  /** The commit that is checked out. */
  readonly sha: string;
  /** `refs/heads/x`, `refs/tags/x`, `refs/pull/1/merge`; anything else is the commit alone. */
  readonly ref: string;
  /** Commits from each tip on; 0: all of them, and every branch and tag. */
  readonly depth: number;
  readonly hasTags: boolean;
};

/**
 * Leaves of the history in a git directory of a job what a fetch of that depth would have brought, and
 * makes the branch its own: `git describe`, `git log` and `origin/main` of a step then find what they would
 * find on GitHub, and no more. Format: gitrepository-layout(5), `shallow` and `packed-refs`; which refs:
 * actions/checkout, ref-helper.ts. What is checked out stays.
 * Errors: INVALID_VALUE where the project's own history ends before, GIT_FAILED. Cost: a few files, one
 * process; one more for each commit of the depth but the first.
 */
export async function narrowRepository(
  git: Git,
  rootDir: string,
  request: NarrowRequest,
): Promise<void> {
  const { sha, ref, depth, hasTags } = request;
  const gitDir = join(rootDir, '.git');
  const repository = { rootDir, prefix: '', gitDir, commonDir: gitDir };
  const { refs, isPeeled } = await readProjectRefs(git, repository);
  const branch = /^refs\/heads\/(.+)$/s.exec(ref)?.[1];
  const tags = refs.filter(
    ({ name }) => name === ref || ((hasTags || depth === 0) && name.startsWith('refs/tags/')),
  );
  const tips = [sha, ...tags.flatMap((tag) => (tag.name.startsWith('refs/tags/') ? tag.sha : []))];
  const known = (readSmall(join(gitDir, 'shallow'))?.toString('utf8') ?? '').split('\n');
  const ends = await historyEnds(git, tips, depth, new Set(known.filter((line) => line !== '')));
  const kept = new Map<string, ProjectRef>();
  const keep = (found: ProjectRef): void => void kept.set(found.name, found);
  if (depth === 0) for (const found of farBranches(refs)) keep(found);
  for (const tag of tags.filter(({ name }) => name.startsWith('refs/tags/'))) keep(tag);
  const pull = /^refs\/pull\/(.+)$/s.exec(ref)?.[1];
  if (pull !== undefined) keep({ name: `refs/remotes/pull/${pull}`, sha });
  if (branch !== undefined) {
    keep({ name: `refs/remotes/origin/${branch}`, sha });
    keep({ name: ref, sha });
  }
  rmSync(join(gitDir, 'refs'), { recursive: true, force: true });
  mkdirSync(join(gitDir, 'refs', 'heads'), { recursive: true });
  writeFileSync(join(gitDir, 'packed-refs'), packedRefsText(inOrder(kept.values()), isPeeled));
  if (ends.length === 0) rmSync(join(gitDir, 'shallow'), { force: true });
  else writeFileSync(join(gitDir, 'shallow'), ends.map((end) => `${end}\n`).join(''));
  writeFileSync(join(gitDir, 'HEAD'), branch === undefined ? `${sha}\n` : `ref: ${ref}\n`);
  if (branch === undefined) return;
  // Fails where there is no remote to follow, and then nothing follows one.
  await git.tryRun(['branch', '--quiet', `--set-upstream-to=origin/${branch}`, branch]);
}

/** The branches of the remote as the project knows them; its own where the remote has none of that name. */
function farBranches(refs: readonly ProjectRef[]): readonly ProjectRef[] {
  const far = refs.filter(({ name }) => name.startsWith('refs/remotes/origin/'));
  const near = refs.flatMap(({ name, sha }) =>
    name.startsWith('refs/heads/')
      ? [{ name: name.replace('refs/heads/', 'refs/remotes/origin/'), sha }]
      : [],
  );
  return [...near, ...far];
}

function inOrder(refs: Iterable<ProjectRef>): readonly ProjectRef[] {
  return [...refs].toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
}

/** The commits whose parents are beyond the depth: what the file `shallow` names. */
async function historyEnds(
  git: Git,
  tips: readonly string[],
  depth: number,
  known: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (depth === 0) {
    if (known.size > 0) throw tooShallow('all of its history');
    return [];
  }
  if (depth > DEPTH_MAX) {
    throw new AppError('INVALID_VALUE', `fetch-depth: is at most ${DEPTH_MAX}`, {
      field: 'fetch-depth',
    });
  }
  if (depth === 1 && tips.length === 1) return tips;
  const history = depth > SINGLE_STEPS_MAX ? await parentsBelow(git, tips, false) : undefined;
  const seen = new Set<string>();
  let layer = [...(await parentsBelow(git, tips, true)).keys()];
  for (let step = 1; step < depth && layer.length > 0; step++) {
    const parents = history ?? (await parentsBelow(git, layer, true));
    const next = new Set<string>();
    for (const commit of layer) {
      if (known.has(commit)) throw tooShallow(`${depth} commits`);
      seen.add(commit);
      for (const parent of parents.get(commit) ?? []) if (!seen.has(parent)) next.add(parent);
    }
    layer = [...next].filter((commit) => !seen.has(commit));
  }
  return layer;
}

/** Parents by commit: of these commits alone, or of all that they come from. */
async function parentsBelow(
  git: Git,
  commits: readonly string[],
  isSingle: boolean,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const walk = isSingle ? ['--no-walk=unsorted'] : [];
  const text = await git.run(['rev-list', '--parents', ...walk, '--stdin'], {
    input: commits.map((commit) => `${commit}\n`).join(''),
    outputBytesMax: HISTORY_BYTES_MAX,
  });
  const parents = new Map<string, readonly string[]>();
  for (const line of text.split('\n')) {
    const [commit = '', ...rest] = line.split(' ');
    if (commit !== '') parents.set(commit, rest);
  }
  return parents;
}

function tooShallow(wanted: string): AppError {
  const text = `fetch-depth: the project is a shallow clone and does not have ${wanted}; git fetch --unshallow gets it`;
  return new AppError('INVALID_VALUE', text, { field: 'fetch-depth' });
}
