import { mkdir, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { type Git, gitFailure } from '../git/run-git.ts';
import { copyIndex } from './own-repository.ts';
import type { Repository } from './repository.ts';
import { copyFiles } from './tree-copy.ts';

const LIST_TIMEOUT_MS = 10 * 60_000;

/** Reads the work tree of the project, without the runner's own state, and copies it. */
export class WorkTreeCopy {
  readonly #git: Git;
  readonly #stateName: string;
  readonly #report: ProblemReporter;

  constructor(git: Git, stateName: string, report: ProblemReporter) {
    this.#git = git;
    this.#stateName = stateName;
    this.#report = report;
  }

  /**
   * How many files of the work tree differ from HEAD; folders with untracked files alone count once.
   * Errors: GIT_FAILED.
   */
  async countChanges(): Promise<number> {
    const seen = ['--', '.', `:(exclude)${this.#stateName}`];
    // The user may have reported git to keep quiet about untracked files.
    const args = ['status', '--porcelain', '-z', '--untracked-files=normal', ...seen];
    const result = await this.#git.tryRun(args);
    if (result.exitCode !== 0) throw gitFailure(args, result);
    let count = 0;
    const entries = result.stdout.toString('latin1').split('\0').values();
    for (const entry of entries) {
      if (entry === '') continue;
      count += 1;
      // The former name of a file that was renamed or copied.
      if (/^(?:[RC]|.[RC])/.test(entry)) entries.next();
    }
    return count;
  }

  /** Copies files and index; returns the links that lead into the copy. Errors: GIT_FAILED. */
  async copyInto(repository: Repository, dir: string, gitDir: string): Promise<readonly string[]> {
    const own = join(repository.prefix, this.#stateName) + sep;
    const [links] = await Promise.all([
      this.#copyListed(repository.rootDir, dir, own),
      copyIndex(repository, gitDir),
    ]);
    return links;
  }

  /** Submodules and other repositories within come along as plain files. */
  async #copyListed(from: string, to: string, skippedPrefix: string): Promise<readonly string[]> {
    const names = await this.#listFiles(from);
    const files = names.filter((name) => !name.startsWith(skippedPrefix));
    const { folders, innerLinks } = await copyFiles(from, to, files);
    const links = [...innerLinks];
    for (const inner of folders) {
      // A submodule that is not initialised is an empty folder of the repository around it.
      await mkdir(join(to, inner), { recursive: true });
      const isRepository = await stat(join(from, inner, '.git')).catch(() => undefined);
      if (isRepository === undefined) continue;
      const below = await this.#copyListed(join(from, inner), join(to, inner), `.git${sep}`);
      links.push(...below.map((link) => join(inner, link)));
    }
    return links;
  }

  /** Tracked files and untracked ones that are not ignored. */
  async #listFiles(rootDir: string): Promise<readonly string[]> {
    const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
    const git = this.#git.in(rootDir);
    const text = await git.run(args, { timeoutMs: LIST_TIMEOUT_MS });
    const names = text.split('\0').filter((name) => name !== '');
    const unreadable = names.filter((name) => name.includes('\uFFFD')).length;
    if (unreadable > 0) {
      const problem = `${unreadable} files whose names are not UTF-8 are left out of a copy`;
      this.#report('sandbox.name_unreadable', new AppError('INVALID_NAME', problem));
    }
    return names;
  }
}
