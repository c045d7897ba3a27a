import { lstatSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { isRunId } from '../../model/run.ts';
import type { SandboxFactory } from '../../model/storage.ts';
import type { Git } from '../git/run-git.ts';
import { removeTree } from './copy-tree.ts';
import { forgetWorktree, linkedSandboxes, linkOfSandbox } from './linked-worktree.ts';
import { takePushed } from './push-target.ts';
import { findOwnRepository, type Repository } from './repository.ts';
import { clearRunFolder, pushTargetIn } from './run-folder.ts';
import { removeEmptyRoot, type RunFolders } from './run-folders.ts';
import type { RunRefs } from './run-refs.ts';

export type SandboxCleanUpOptions = {
  readonly projectDir: string;
  readonly git: Git;
  readonly folders: RunFolders;
  readonly refs: RunRefs;
  readonly report: ProblemReporter;
};

/** Removes what runs leave behind: folders, objects, refs, and what git remembers of them. */
export class SandboxCleanUp {
  readonly #options: SandboxCleanUpOptions;

  constructor(options: SandboxCleanUpOptions) {
    this.#options = options;
  }

  /** Removes all of one run. */
  async forget(runId: string): Promise<void> {
    if (!isRunId(runId)) return;
    const { folders, refs, git, projectDir } = this.#options;
    await removeTree(folders.adoptedDir(runId));
    for (const root of folders.all()) {
      const dir = join(root.dir, runId);
      if (lstatSync(dir, { throwIfNoEntry: false }) === undefined) continue;
      await removeTree(dir);
      removeEmptyRoot(root);
    }
    const repository = await findOwnRepository(projectDir, git);
    if (repository !== undefined) await refs.remove(repository, runId);
  }

  /** Removes at a start what runs of before left, but what is `live`; of runs that are not `known` all of it. */
  async cleanUp({ live, known }: Parameters<SandboxFactory['cleanUp']>[0]): Promise<void> {
    const { git, folders, refs, projectDir } = this.#options;
    const repository = await findOwnRepository(projectDir, git);
    const takeFrom = async (target: string, runId: string): Promise<void> => {
      if (repository === undefined || !known.has(runId)) return;
      await this.#tidy(async () => void (await takePushed(git, target, runId, new Map())));
    };
    for (const root of folders.all()) {
      for (const name of await readdir(root.dir).catch(() => [])) {
        if (live.has(name) || !isRunId(name)) continue;
        const runDir = join(root.dir, name);
        await takeFrom(pushTargetIn(runDir), name);
        await this.#tidy(() =>
          known.has(name) ? clearRunFolder(runDir, root) : removeTree(runDir),
        );
      }
      removeEmptyRoot(root);
    }
    // Git directories of events; what older versions left there, too.
    for (const name of await readdir(folders.eventsDir).catch(() => [])) {
      const dir = join(folders.eventsDir, name);
      await takeFrom(join(dir, '.git', 'pushed'), name);
      await this.#tidy(() => removeSandbox(repository, dir));
    }
    if (repository === undefined) return;
    for (const runId of await readdir(folders.commitsDir).catch(() => [])) {
      if (!known.has(runId)) await this.#tidy(() => removeTree(join(folders.commitsDir, runId)));
    }
    for (const runId of await refs.runs()) {
      if (live.has(runId)) continue;
      await this.#tidy(() =>
        known.has(runId) ? refs.release(repository, runId) : refs.remove(repository, runId),
      );
    }
    const dir = await realpath(folders.eventsDir).catch(() => undefined);
    if (dir === undefined) return;
    for (const { name, adminDir } of await linkedSandboxes(repository, dir)) {
      if (!live.has(name)) await this.#tidy(() => forgetWorktree(adminDir));
    }
  }

  /** What cannot be removed (a step with more rights made it) is reported and keeps nobody from starting. */
  async #tidy(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      const problem = new AppError('STORE_UNAVAILABLE', 'a sandbox cannot be removed', {}, error);
      this.#options.report('sandbox.leftover', problem);
    }
  }
}

/** Removes what is left of a sandbox, and what git remembers of it. */
async function removeSandbox(repository: Repository | undefined, dir: string): Promise<void> {
  const adminDir = repository && (await linkOfSandbox(repository, dir));
  if (adminDir !== undefined) await forgetWorktree(adminDir);
  await removeTree(dir);
}
