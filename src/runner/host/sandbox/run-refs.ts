import { mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isRunId } from '../../model/run.ts';
import { type Git, gitFailure } from '../git/run-git.ts';
import { hasRefTables } from './project-refs.ts';
import type { Repository } from './repository.ts';
import { lookAt, readSmall } from './small-file.ts';

/** Below it, each run has a folder of refs in the project's repository. */
const RUNNER_REFS = 'refs/runner';
/** While a run lives they hold its commits, so that `git gc` in the project removes none of them. */
const KEPT = 'keep';
/** More branches and tags than that are not held: those are the project's own, and mostly stay. */
const KEPT_MAX = 1_000;

/** What steps of a run push stands here in the project. */
export function pushedRefsPrefix(runId: string): string {
  return `${RUNNER_REFS}/${runId}/`;
}

/**
 * The refs that runs have in the project's repository, `refs/runner/<run>/`: those that hold their commits
 * while they live, and what their steps have pushed. A file for each run says which of them are ours:
 * other runners may work on the same repository.
 */
export class RunRefs {
  readonly #git: Git;
  readonly #marksDir: string;

  /** `git`: in the project. `marksDir`: made when needed. */
  constructor(git: Git, marksDir: string) {
    this.#git = git;
    this.#marksDir = marksDir;
  }

  /**
   * Holds commits of the project for a run, under a name that distinguishes one call from another. All of them
   * must be there: a ref to nothing would make `git gc` fail. Git sees all of them at once.
   * Errors: those of the file system, GIT_FAILED. Cost: two calls of the file system a commit.
   */
  async hold(
    repository: Repository,
    runId: string,
    name: string,
    shas: ReadonlySet<string>,
  ): Promise<void> {
    const held = [...shas].slice(0, KEPT_MAX);
    mkdirSync(this.#marksDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.#marksDir, runId), '');
    if (hasRefTables(repository)) {
      const kept = `${RUNNER_REFS}/${runId}/${KEPT}/${name}`;
      const nameOf = (index: number): string => (held.length === 1 ? kept : `${kept}/${index}`);
      await this.#update(held.map((sha, index) => `update ${nameOf(index)} ${sha}\n`));
      return;
    }
    const parent = join(repository.commonDir, RUNNER_REFS, runId, KEPT);
    // Git looks at no name that begins with a dot.
    const hidden = join(parent, `.${name}`);
    rmSync(hidden, { recursive: true, force: true });
    rmSync(join(parent, name), { recursive: true, force: true });
    // Every file and folder costs: one commit is one file.
    const [only = ''] = held;
    mkdirSync(held.length === 1 ? parent : hidden, { recursive: true });
    if (held.length === 1) writeFileSync(hidden, `${only}\n`);
    else held.forEach((sha, index) => writeFileSync(join(hidden, String(index)), `${sha}\n`));
    renameSync(hidden, join(parent, name));
  }

  /**
   * Releases what `hold` held for a run under a name, or under all; what was pushed stays. Idempotent.
   * Errors: GIT_FAILED.
   */
  async release(repository: Repository, runId: string, name?: string): Promise<void> {
    if (!this.#isMarked(runId)) return;
    const kept = `${pushedRefsPrefix(runId)}${KEPT}`;
    await this.#remove(repository, name === undefined ? kept : `${kept}/${name}`);
    if (name !== undefined) return;
    const prefix = pushedRefsPrefix(runId);
    const hasPushed = isFolder(join(repository.commonDir, prefix));
    if (!hasPushed && !mayHoldElsewhere(repository, prefix)) this.#unmark(runId);
  }

  /** Removes everything that a run has in the project's repository. Idempotent. Errors: GIT_FAILED. */
  async remove(repository: Repository, runId: string): Promise<void> {
    if (!this.#isMarked(runId)) return;
    await this.#remove(repository, `${RUNNER_REFS}/${runId}`);
    this.#unmark(runId);
  }

  /** Ids of the runs that have, or once had, refs in the repository. */
  async runs(): Promise<readonly string[]> {
    return (await readdir(this.#marksDir).catch(() => [])).filter(isRunId);
  }

  #isMarked(runId: string): boolean {
    return lookAt(join(this.#marksDir, runId)) !== undefined;
  }

  #unmark(runId: string): void {
    rmSync(join(this.#marksDir, runId), { force: true });
  }

  /** A ref, or all below a folder of refs. */
  async #remove(repository: Repository, name: string): Promise<void> {
    const path = join(repository.commonDir, name);
    // What `git gc` packed meanwhile is removed by git, with its lock.
    if (mayHoldElsewhere(repository, name)) {
      const text = await this.#git.run(['for-each-ref', '--format=%(refname)', '--', name]);
      const found = text.split('\n').filter((line) => line !== '');
      await this.#update(found.map((line) => `delete ${line}\n`));
    }
    if (lookAt(path) !== undefined) rmSync(path, { recursive: true, force: true });
    removeEmptyParents(repository, name);
  }

  async #update(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const args = ['update-ref', '--stdin'];
    const result = await this.#git.tryRun(args, { input: lines.join('') });
    if (result.exitCode !== 0) throw gitFailure(args, result);
  }
}

function isFolder(path: string): boolean {
  return lookAt(path)?.isDirectory() ?? false;
}

/** Whether refs of this beginning may be kept otherwise than as files of their own. */
function mayHoldElsewhere(repository: Repository, prefix: string): boolean {
  if (hasRefTables(repository)) return true;
  const packed = readSmall(join(repository.commonDir, 'packed-refs'));
  return packed?.includes(` ${prefix}`) ?? false;
}

/** `refs/runner` itself goes with the last run, so that the repository is as it was. */
function removeEmptyParents({ commonDir }: Repository, name: string): void {
  const parts = name.split('/').slice(0, -1);
  for (; parts.length > 1; parts.pop()) {
    try {
      // At once: another run may make its own folder there in the next moment.
      rmdirSync(join(commonDir, ...parts));
    } catch {
      // Another run has something there.
      return;
    }
  }
}
