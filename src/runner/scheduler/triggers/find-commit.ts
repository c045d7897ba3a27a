import { AppError } from '../../../shared/app-error.ts';
import { mustRef } from '../../host/git/run-git.ts';
import type { CommitFetcher, CommitRepository } from '../../model/storage.ts';
import type { EventSubject, PullRequestSubject } from './event-subject.ts';

/** In the git directory of the event alone. */
const FETCHED = 'refs/heads/fetched';

export type FoundCommit = { readonly ref: string; readonly sha: string };

/**
 * The commit that a run of an event works with. What is not here is fetched into `commits`, first by its
 * id, which many hosts serve only while a ref leads there, then by the refs that should. A branch or tag
 * that the event names without a commit is the project's own, if it has it.
 * Errors: INVALID_REF when it cannot be had, MERGE_CONFLICT.
 */
export async function findCommit(
  subject: Exclude<EventSubject, { readonly kind: 'project' }>,
  commits: CommitRepository,
  fetcher: CommitFetcher,
): Promise<FoundCommit> {
  const source = new Source(commits, fetcher);
  switch (subject.kind) {
    case 'commit':
      return { ref: subject.ref, sha: await source.must(subject.sha, [subject.ref]) };
    case 'ref':
      return { ref: subject.ref, sha: await source.mustRef(subject.ref) };
    case 'merge':
      return { ref: subject.ref, sha: await mergeCommit(subject, commits, source) };
  }
}

async function mergeCommit(
  subject: PullRequestSubject,
  commits: CommitRepository,
  source: Source,
): Promise<string> {
  const { base, head, mergeCommit: given, number, headRepository } = subject;
  const here = given === undefined ? undefined : await commits.commitHere(given);
  if (here !== undefined && (await joins(commits, here, base, head))) return here;
  await source.must(base, []);
  await source.must(head, [`refs/pull/${number}/head`], headRepository);
  const merged = await commits.merge(base, head);
  if (merged !== undefined) return merged;
  const text = `pull request ${number} conflicts with its base: there is no merge of them to run`;
  throw new AppError('MERGE_CONFLICT', text);
}

/** Is it the merge of exactly these two? The host's may be of a base or head that has moved since. */
async function joins(
  commits: CommitRepository,
  merge: string,
  base: string,
  head: string,
): Promise<boolean> {
  const parents = await commits.parentsOf(merge);
  return parents.length === 2 && parents[0] === base && parents[1] === head;
}

class Source {
  readonly #commits: CommitRepository;
  readonly #fetcher: CommitFetcher;

  constructor(commits: CommitRepository, fetcher: CommitFetcher) {
    this.#commits = commits;
    this.#fetcher = fetcher;
  }

  /** The commit of an object id. Errors: INVALID_REF. */
  async must(id: string, refs: readonly string[], repository?: string): Promise<string> {
    const here = await this.#commits.commitHere(id);
    if (here !== undefined) return here;
    const { dir } = this.#commits;
    const places = [
      ...[id, ...refs].map((what) => () => this.#fetch(what)),
      ...(repository === undefined ? [] : [() => this.#fetcher.fetch(dir, id, repository)]),
    ];
    for (const place of places) {
      if (!(await place())) continue;
      const fetched = await this.#commits.commitOf(id);
      if (fetched !== undefined) return fetched;
    }
    throw new AppError('INVALID_REF', `the commit ${id} is not here and cannot be fetched`);
  }

  /** What the project's branch or tag names, else that of its remote. Errors: INVALID_REF. */
  async mustRef(ref: string): Promise<string> {
    const branch = ref.replace(/^refs\/heads\//, '');
    for (const name of [ref, `refs/remotes/origin/${branch}`]) {
      const sha = await this.#commits.commitHere(name);
      if (sha !== undefined) return sha;
    }
    if (ref.startsWith('refs/') && (await this.#fetch(`+${mustRef(ref)}:${FETCHED}`))) {
      const sha = await this.#commits.commitOf(FETCHED);
      if (sha !== undefined) return sha;
    }
    throw new AppError('INVALID_REF', `there is no branch or tag '${ref}'`);
  }

  /** From the repository of the configuration, else from the remote of the project. */
  async #fetch(what: string): Promise<boolean> {
    const { dir } = this.#commits;
    return (await this.#fetcher.fetch(dir, what)) || (await this.#commits.fetchFromOrigin(what));
  }
}
