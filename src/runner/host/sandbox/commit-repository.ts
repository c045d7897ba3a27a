import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { CommitRepository } from '../../model/storage.ts';
import { type Git, gitFailure, type GitOptions } from '../git/run-git.ts';
import { removeTree } from './copy-tree.ts';
import { type GitSettings, type GitSetting, withoutUser } from './git-settings.ts';
import { makeOwnRepository } from './own-repository.ts';
import type { Repository } from './repository.ts';
import { lookAt } from './small-file.ts';

/**
 * How the runner's own git fetches objects that a partial clone left out, for a command in the git
 * directory of a run: with the project's own settings and credentials, which the run does not have, and
 * into the project's objects, so that they are fetched once.
 */
export function missingObjectsOptions(
  { commonDir }: Repository,
  settings: readonly GitSetting[],
): Pick<GitOptions, 'config' | 'env'> {
  const config: Record<string, string> = { 'include.path': join(commonDir, 'config') };
  for (const { key, value } of settings) {
    const plain = withoutUser(value);
    const isAddress = /^remote\..+\.url$/s.test(key);
    if (isAddress && plain !== value) config[`url.${value}.insteadOf`] = plain;
  }
  return { config, env: { GIT_OBJECT_DIRECTORY: join(commonDir, 'objects') } };
}

const FILES_MAX = 1_000;
const FETCH_TIMEOUT_MS = 10 * 60_000;
const FILE_BYTES_MAX = 2 * 1024 * 1024;
/** Who makes a merge that no host made; never the user. */
const MERGER = { name: 'runner', email: 'runner@localhost' };
/** The user's own settings name drivers that the files of a pull request could make run. */
const NO_USER: Readonly<Record<string, string>> = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

type Options = {
  readonly git: Git;
  readonly settings: GitSettings;
  readonly repository: Repository;
  readonly parentDir: string;
};

/**
 * A git directory for the commits of one event: it borrows the project's objects, and what is fetched or
 * merged goes there, not into the project. To be closed. Errors: those of makeOwnRepository.
 */
export async function openCommitRepository(options: Options): Promise<CommitRepository> {
  const { git, settings, repository, parentDir } = options;
  const dir = join(parentDir, `event-${randomBytes(8).toString('hex')}`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  try {
    const head = 'ref: refs/heads/none';
    await makeOwnRepository({ git, settings, repository, dir, head, mayPush: false });
  } catch (error) {
    await removeTree(dir);
    throw error;
  }
  return new EventRepository(options, dir);
}

class EventRepository implements CommitRepository {
  readonly dir: string;
  readonly #options: Options;
  readonly #git: Git;
  readonly #held = new Set<string>();

  constructor(options: Options, dir: string) {
    this.dir = dir;
    this.#options = options;
    this.#git = options.git.in(dir);
  }

  get held(): ReadonlySet<string> {
    return this.#held;
  }

  async commitOf(revision: string): Promise<string | undefined> {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`];
    const { exitCode, stdout } = await this.#git.tryRun(args, { env: NO_USER });
    return exitCode === 0 ? stdout.toString('utf8').trim() : undefined;
  }

  async commitHere(revision: string): Promise<string | undefined> {
    const sha = await this.commitOf(revision);
    if (sha !== undefined) this.#held.add(sha);
    return sha;
  }

  async parentsOf(sha: string): Promise<readonly string[]> {
    const text = await this.#git.run(['rev-list', '--parents', '-n', '1', sha, '--']);
    return text.trim().split(' ').slice(1);
  }

  async fetchFromOrigin(what: string): Promise<boolean> {
    const { settings, repository } = this.#options;
    const known = await settings.read(repository);
    if (!known.some(({ key }) => key === 'remote.origin.url')) return false;
    const { config } = missingObjectsOptions(repository, known);
    const options = { config: { ...config, 'fetch.prune': 'false' }, timeoutMs: FETCH_TIMEOUT_MS };
    const result = await this.#git.tryRun(fetchArguments('origin', what), options);
    return result.exitCode === 0;
  }

  async merge(base: string, head: string): Promise<string | undefined> {
    const args = ['merge-tree', '--write-tree', '--no-messages', base, head];
    const merged = await this.#git.tryRun(args, { env: NO_USER });
    if (merged.exitCode === 1) return undefined;
    if (merged.exitCode !== 0) throw gitFailure(args, merged);
    const tree = merged.stdout.toString('utf8').trim();
    // The same two commits make the same merge, whenever it is made.
    const date = (await this.#git.run(['show', '-s', '--format=%ct', head, '--'])).trim();
    const person = { ...MERGER, date: `${date} +0000` };
    const text = await this.#git.run(
      ['commit-tree', '-p', base, '-p', head, '-m', `Merge ${head} into ${base}`, tree],
      { env: { ...NO_USER, ...asAuthor(person), ...asCommitter(person) } },
    );
    return text.trim();
  }

  async workflowsOf(sha: string): Promise<string> {
    const target = join(this.dir, 'tree', sha);
    const prefix = this.#prefix();
    const folder = `${prefix}.github/workflows/`;
    const args = ['ls-tree', '-z', '--full-tree', sha, '--', folder];
    const text = await this.#git.run(args, { env: NO_USER });
    const entries = text.split('\0').flatMap((line) => {
      const [, id, path] = /^100(?:644|755) blob ([0-9a-f]+)\t(.+)$/s.exec(line) ?? [];
      return id === undefined || path === undefined ? [] : [{ id, name: basename(path) }];
    });
    if (entries.length > FILES_MAX) {
      throw new AppError('RESULT_TOO_LARGE', `more than ${FILES_MAX} files in ${folder}`);
    }
    const own = join(target, '.github', 'workflows');
    await mkdir(own, { recursive: true });
    for (const { id, name } of entries.filter((entry) => /\.ya?ml$/i.test(entry.name))) {
      const blob = await this.#git.tryRun(['cat-file', 'blob', id], {
        env: NO_USER,
        outputBytesMax: FILE_BYTES_MAX,
      });
      if (blob.exitCode !== 0) throw gitFailure(['cat-file'], blob);
      await writeFile(join(own, name), blob.stdout);
    }
    return target;
  }

  async copyObjects(to: string): Promise<void> {
    await rm(to, { recursive: true, force: true });
    await mkdir(to, { recursive: true, mode: 0o700 });
    const gitDir = join(this.dir, '.git');
    await cp(join(gitDir, 'objects'), join(to, 'objects'), {
      recursive: true,
      filter: (path) => !path.endsWith(join('objects', 'info', 'alternates')),
    });
    const shallow = join(gitDir, 'shallow');
    if (lookAt(shallow) !== undefined) await cp(shallow, join(to, 'shallow'));
  }

  close(): Promise<void> {
    return removeTree(this.dir);
  }

  /** Of the project below the root of its repository, with a `/` behind it; '' for the root. */
  #prefix(): string {
    const { prefix } = this.#options.repository;
    return prefix === '' ? '' : `${prefix.replaceAll('\\', '/')}/`;
  }
}

/** The arguments of a fetch of one commit or ref that leaves no ref behind. */
export function fetchArguments(from: string, what: string): readonly string[] {
  const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules'];
  return ['fetch', ...options, '--end-of-options', from, what];
}

type Person = { readonly name: string; readonly email: string; readonly date: string };

function asAuthor({ name, email, date }: Person): Record<string, string> {
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date };
}

function asCommitter({ name, email, date }: Person): Record<string, string> {
  return { GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: date };
}
