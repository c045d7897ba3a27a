import { cp, mkdir, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { isRunId, type SandboxStrategy, type Trigger } from '../../model/run.ts';
import type {
  CommitRepository,
  EventCommit,
  PreparedSandbox,
  PushedRef,
  SandboxFactory,
} from '../../model/storage.ts';
import type { Git } from '../git/run-git.ts';
import { openCommitRepository } from './commit-repository.ts';
import { missingObjectsOptions } from './commit-repository.ts';
import { removeTree } from './copy-tree.ts';
import { GitSettings } from './git-settings.ts';
import { makeOwnRepository, type OwnRepository } from './own-repository.ts';
import { takePushed } from './push-target.ts';
import { findOwnRepository, type Repository } from './repository.ts';
import { NO_SHA, resolveHead, resolveRef, type ProjectRevision } from './revision.ts';
import { clearRunFolder, pushTargetIn, RunFolder } from './run-folder.ts';
import { RunFolders } from './run-folders.ts';
import { RunRefs } from './run-refs.ts';
import { SandboxCleanUp } from './sandbox-clean-up.ts';
import type { SandboxRoot } from './sandbox-root.ts';
import { lookAt } from './small-file.ts';
import { copyFiles, listTree, type Tree, type TreeLimits } from './tree-copy.ts';
import { WorkTreeCopy } from './work-tree-copy.ts';

const CHECKOUT_TIMEOUT_MS = 10 * 60_000;
const MIB = 1024 * 1024;
/** What the automatic choice still copies of a project without git. */
const AUTOMATIC_LIMITS: TreeLimits = { filesMax: 20_000, bytesMax: 512 * MIB };
/** In the folder for the runs of the project. */
const TOOL_CACHE = 'tool-cache';
const NO_LIMITS: TreeLimits = {
  filesMax: Number.POSITIVE_INFINITY,
  bytesMax: Number.POSITIVE_INFINITY,
};

export type SandboxFactoryOptions = {
  readonly projectDir: string;
  /** The project's `.runner`: refs and commits of runs, git directories of events. */
  readonly stateDir: string;
  /** Where runs have their folders. */
  readonly root: SandboxRoot;
  /** The last part of GITHUB_WORKSPACE; the project's folder when absent. */
  readonly repositoryName?: string | undefined;
  /** Free bytes that the disk of the workspaces must have when a run is started. */
  readonly diskFloorBytes?: number | undefined;
  /** In the project. */
  readonly git: Git;
  readonly report: ProblemReporter;
};

type PrepareRequest = Parameters<SandboxFactory['prepare']>[0];

/**
 * Sandboxes of one project: for each run a folder outside of the project with the state that it begins with,
 * and a workspace for each of its jobs. A work tree and a copy have a git directory of their own that borrows
 * the project's objects, so that git commands of steps work there and change nothing of the project; without
 * git a copy is files only.
 */
export function createSandboxFactory(options: SandboxFactoryOptions): SandboxFactory {
  return new ProjectSandboxes(options);
}

class ProjectSandboxes implements SandboxFactory {
  readonly #options: SandboxFactoryOptions;
  readonly #settings: GitSettings;
  readonly #refs: RunRefs;
  readonly #folders: RunFolders;
  readonly #workTree: WorkTreeCopy;
  readonly #cleanUp: SandboxCleanUp;
  /** Whether the tree was clean the last time that it mattered. */
  #wasClean = true;

  constructor(options: SandboxFactoryOptions) {
    this.#options = options;
    this.#settings = new GitSettings(options.git);
    const { projectDir, stateDir, root, git, report } = options;
    this.#refs = new RunRefs(git, join(stateDir, 'run-refs'));
    this.#folders = new RunFolders(root, stateDir);
    this.#workTree = new WorkTreeCopy(git, this.#folders.stateName, report);
    const kept = { folders: this.#folders, refs: this.#refs };
    this.#cleanUp = new SandboxCleanUp({ projectDir, git, report, ...kept });
  }

  async resolve(
    ref: string | undefined,
    strategy: SandboxStrategy | undefined,
  ): Promise<ProjectRevision> {
    if (ref !== undefined && strategy === 'none') {
      throw new AppError('INVALID_REF', 'the strategy none runs the project as it is: no ref', {
        field: 'sandbox.ref',
      });
    }
    const repository = await this.#repository();
    if (ref !== undefined) {
      if (repository === undefined) {
        throw new AppError('INVALID_REF', 'the project is not a git repository: no ref', {
          field: 'sandbox.ref',
        });
      }
      return resolveRef(this.#options.git, ref);
    }
    const head =
      repository === undefined ? undefined : await resolveHead(this.#options.git, repository);
    if (repository !== undefined && head === undefined) this.#reportRefusal();
    const revision = head ?? { ref: '', sha: NO_SHA };
    if (strategy === 'worktree' && isNoSha(revision.sha)) throw needsCommit();
    return revision;
  }

  async prepare(request: PrepareRequest): Promise<PreparedSandbox> {
    const { strategy, trigger, runId, hasExplicitRef } = request;
    if (!isRunId(runId)) throw new AppError('RUN_NOT_FOUND', 'there is no such run');
    if (strategy === 'none') return this.#none();
    // A trigger without a ref was made outside git, or where git refuses the repository.
    const repository = trigger.ref === '' ? undefined : await this.#repository();
    if (repository !== undefined) {
      try {
        return await this.#prepareFromGit(request, repository);
      } catch (error) {
        if (!isRefusal(error) || strategy === 'worktree' || hasExplicitRef) throw error;
        this.#reportRefusal();
      }
    }
    if (request.isAdopted === true) throw commitGone();
    if (strategy === 'worktree') throw needsCommit();
    const { projectDir } = this.#options;
    const limits = strategy === 'copy' ? NO_LIMITS : AUTOMATIC_LIMITS;
    const tree = await listTree(projectDir, new Set([this.#folders.stateName, '.git']), limits);
    if (tree === undefined) throw tooLarge();
    return this.#copyPlain(runId, tree);
  }

  async hold(
    runId: string,
    { ref, sha }: Trigger,
    strategy: SandboxStrategy | undefined,
  ): Promise<void> {
    if (strategy === 'none' || ref === '' || isNoSha(sha)) return;
    const repository = await this.#repository();
    if (repository === undefined) return;
    await this.#holding(() => this.#refs.hold(repository, runId, 'head', new Set([sha])));
  }

  async openCommits(): Promise<CommitRepository> {
    const repository = await this.#repository();
    if (repository === undefined) {
      throw new AppError('INVALID_REF', 'the project is not a git repository: it has no commits');
    }
    const { git } = this.#options;
    const parentDir = this.#folders.eventsDir;
    return openCommitRepository({ git, settings: this.#settings, repository, parentDir });
  }

  async adopt(runId: string, { repository: commits }: EventCommit): Promise<void> {
    if (!isRunId(runId)) throw new AppError('RUN_NOT_FOUND', 'there is no such run');
    await commits.copyObjects(this.#folders.adoptedDir(runId));
    const repository = await this.#repository();
    if (repository === undefined || commits.held.size === 0) return;
    await this.#holding(() => this.#refs.hold(repository, runId, 'head', commits.held));
  }

  async release(runId: string): Promise<void> {
    const repository = await this.#repository();
    if (repository !== undefined) await this.#refs.release(repository, runId);
  }

  forget(runId: string): Promise<void> {
    return this.#cleanUp.forget(runId);
  }

  assertDiskSpace(): Promise<void> {
    return this.#folders.assertFree(this.#options.diskFloorBytes ?? 0);
  }

  cleanUp(runs: Parameters<SandboxFactory['cleanUp']>[0]): Promise<void> {
    return this.#cleanUp.cleanUp(runs);
  }

  /** A repository that cannot be written to is still run: it is its owner who can lose commits. */
  async #holding(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      const text = 'commits of a run cannot be kept from git gc in the project';
      this.#options.report('sandbox.not_held', new AppError('STORE_UNAVAILABLE', text, {}, error));
    }
  }

  async #prepareFromGit(request: PrepareRequest, repository: Repository): Promise<PreparedSandbox> {
    const { runId, strategy, trigger, hasExplicitRef } = request;
    const hasCommit = !isNoSha(trigger.sha);
    if (strategy === 'worktree' && !hasCommit) throw needsCommit();
    const isAutomatic = hasCommit && strategy === undefined && !hasExplicitRef;
    // What both ways need is made while git looks whether the tree is clean.
    const counted = isAutomatic ? this.#workTree.countChanges() : Promise.resolve(1);
    counted.catch(() => undefined);
    let changes: number | undefined;
    const prepared = await this.#inNewFolder(runId, repository, async (folder, undo) => {
      const dir = folder.snapshot;
      const pushTarget = pushTargetIn(folder.dir);
      const own = await this.#makeRepository(request, repository, { dir, pushTarget });
      undo.push(() => this.#refs.release(repository, runId, 'refs'));
      const fill = async (isAtCommit: boolean): Promise<void> => {
        folder.innerLinks = [];
        if (isAtCommit) await this.#checkOut(repository, dir, own);
        else folder.innerLinks = await this.#workTree.copyInto(repository, dir, own.gitDir);
      };
      if (request.isWithoutFiles === true && !own.isPartial) {
        await mkdir(join(dir, repository.prefix), { recursive: true });
        return 'worktree';
      }
      if (!isAutomatic) {
        const isAtCommit = hasCommit && (strategy === 'worktree' || hasExplicitRef);
        await fill(isAtCommit);
        return strategy ?? (isAtCommit ? 'worktree' : 'copy');
      }
      changes = await this.#fillAsGuessed(dir, counted, fill);
      return changes === 0 ? 'worktree' : 'copy';
    });
    return { ...prepared, changes };
  }

  async #makeRepository(
    { runId, trigger, mayPush = false, isAdopted = false }: PrepareRequest,
    repository: Repository,
    { dir, pushTarget }: { readonly dir: string; readonly pushTarget: string },
  ): Promise<OwnRepository> {
    const { git } = this.#options;
    const hasCommit = !isNoSha(trigger.sha);
    const own = await makeOwnRepository({
      git,
      settings: this.#settings,
      repository,
      dir,
      head: hasCommit ? trigger.sha : `ref: ${trigger.ref}`,
      mayPush,
      pushTarget,
    });
    if (isAdopted) {
      const adopted = this.#folders.adoptedDir(runId);
      if (lookAt(adopted) === undefined) throw commitGone();
      await cp(adopted, own.gitDir, { recursive: true });
    }
    const rest = new Set(own.commits);
    rest.delete(trigger.sha);
    if (rest.size > 0) await this.#holding(() => this.#refs.hold(repository, runId, 'refs', rest));
    return own;
  }

  /**
   * Fills the folder as the last one was while git still looks; a guess that was wrong is cleared away.
   * Answers with the number of changes.
   */
  async #fillAsGuessed(
    dir: string,
    counted: Promise<number>,
    fill: (isAtCommit: boolean) => Promise<void>,
  ): Promise<number> {
    const guess = this.#wasClean;
    const [seen, filled] = await Promise.allSettled([counted, fill(guess)]);
    if (seen.status === 'rejected') throw seen.reason;
    const isClean = seen.value === 0;
    this.#wasClean = isClean;
    if (isClean !== guess) {
      const names = await readdir(dir);
      const filledNames = names.filter((name) => name !== '.git');
      await Promise.all(filledNames.map((name) => removeTree(join(dir, name))));
      await fill(isClean);
    } else if (filled.status === 'rejected') {
      throw filled.reason;
    }
    return seen.value;
  }

  async #checkOut(repository: Repository, dir: string, own: OwnRepository): Promise<void> {
    const args = ['reset', '--hard', '--quiet', '--no-recurse-submodules'];
    const fetching = own.isPartial
      ? missingObjectsOptions(repository, await this.#settings.read(repository))
      : {};
    await this.#options.git.in(dir).run(args, { ...fetching, timeoutMs: CHECKOUT_TIMEOUT_MS });
  }

  #copyPlain(runId: string, tree: Tree): Promise<PreparedSandbox> {
    return this.#inNewFolder(runId, undefined, async (folder) => {
      const copied = await copyFiles(this.#options.projectDir, folder.snapshot, tree.files);
      folder.innerLinks = copied.innerLinks;
      return 'copy';
    });
  }

  async #inNewFolder(
    runId: string,
    repository: Repository | undefined,
    fill: (folder: RunFolder, undo: (() => Promise<void>)[]) => Promise<SandboxStrategy>,
  ): Promise<PreparedSandbox> {
    const { root, repositoryName, projectDir } = this.#options;
    const dir = join(root.dir, runId);
    // A queued run that a killed process had begun to prepare, or an earlier attempt of this one.
    await clearRunFolder(dir, root);
    this.#folders.make();
    const name = folderNameOf(repositoryName ?? '', projectDir);
    const folder = new RunFolder({ dir, name, prefix: repository?.prefix ?? '' });
    await mkdir(folder.snapshot, { recursive: true, mode: 0o700 });
    const undo: (() => Promise<void>)[] = [() => clearRunFolder(dir, root)];
    let released: Promise<unknown> | undefined;
    const release = async (): Promise<void> => {
      released ??= Promise.all(undo.map((action) => action()));
      await released;
    };
    try {
      const strategy = await fill(folder, undo);
      const pushTarget = repository === undefined ? undefined : pushTargetIn(dir);
      return {
        sandbox: { path: dir, strategy },
        source: folder.source,
        toolCache: join(root.dir, TOOL_CACHE),
        pushTarget,
        openWorkspace: (request) => folder.openWorkspace(request),
        takePushed: this.#takerOf(pushTarget, runId),
        release,
      };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Jobs that end together take turns: git locks what it writes. */
  #takerOf(target: string | undefined, runId: string): PreparedSandbox['takePushed'] {
    const taken = new Map<string, string>();
    const take = async (): Promise<readonly PushedRef[]> => {
      if (target === undefined) return [];
      const fresh = await takePushed(this.#options.git, target, runId, taken);
      for (const { name, sha } of fresh) taken.set(name, sha);
      return fresh;
    };
    let turn: Promise<unknown> = Promise.resolve();
    return () => {
      const mine = turn.then(take);
      turn = mine.catch(() => undefined);
      return mine;
    };
  }

  #none(): PreparedSandbox {
    const path = this.#options.projectDir;
    const nothing = (): Promise<void> => Promise.resolve();
    return {
      sandbox: { path, strategy: 'none' },
      source: path,
      toolCache: undefined,
      pushTarget: undefined,
      openWorkspace: () =>
        Promise.resolve({ path, root: path, jobDir: undefined, fill: undefined, end: nothing }),
      takePushed: () => Promise.resolve([]),
      release: nothing,
    };
  }

  #repository(): Promise<Repository | undefined> {
    return findOwnRepository(this.#options.projectDir, this.#options.git);
  }

  #reportRefusal(): void {
    const text = 'git refuses the repository of the project; it is run as one without git';
    this.#options.report('sandbox.git_refused', new AppError('GIT_FAILED', text));
  }
}

/**
 * Git would not even look at the repository: damaged, or owned by somebody else. A commit that cannot
 * be checked out is another matter: the run must not go on with other files.
 */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof AppError) || error.reason !== 'GIT_FAILED') return false;
  const { command = '', exitCode } = error.metadata;
  return exitCode === '128' && ['status', 'ls-files'].includes(command);
}

function isNoSha(sha: string): boolean {
  return /^0*$/.test(sha);
}

function commitGone(): AppError {
  return new AppError('INVALID_REF', 'the commit of the run is not here any more');
}

function tooLarge(): AppError {
  const { filesMax, bytesMax } = AUTOMATIC_LIMITS;
  const text = `The project is in no git repository and larger than ${filesMax} files or ${bytesMax / MIB} MiB: ask for the strategy copy, or none to work in the project itself`;
  return new AppError('INVALID_REQUEST', text, { field: 'sandbox.strategy' });
}

/** A name of a repository as a folder; that of the project where it cannot be one. */
function folderNameOf(repositoryName: string, projectDir: string): string {
  const names = [repositoryName, basename(projectDir).replaceAll(/[^\w.-]/g, '_')];
  return names.find((name) => /^(?!\.{1,2}$)[\w.-]{1,100}$/.test(name)) ?? 'project';
}

function needsCommit(): AppError {
  return new AppError('INVALID_REQUEST', 'the strategy worktree needs a git commit', {
    field: 'sandbox.strategy',
  });
}
