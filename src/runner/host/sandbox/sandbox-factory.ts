import { lstatSync, mkdirSync, writeFileSync } from 'node:fs';
import { cp, mkdir, readdir, realpath, stat, statfs } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { isRunId } from '../../model/run-id.ts';
import type { SandboxStrategy, Trigger } from '../../model/run.ts';
import type {
  CommitRepository,
  EventCommit,
  PreparedSandbox,
  PushedRef,
  SandboxFactory,
} from '../../model/storage.ts';
import { type Git, gitFailure } from '../git/run-git.ts';
import { openCommitRepository } from './commit-repository.ts';
import { GitSettings } from './git-settings.ts';
import { forgetWorktree, linkedSandboxes, linkOfSandbox } from './linked-worktree.ts';
import { missingObjectsOptions } from './missing-objects.ts';
import { copyIndex, makeOwnRepository, type OwnRepository } from './own-repository.ts';
import { takePushed } from './push-target.ts';
import { removeTree } from './remove-tree.ts';
import { findRepository, type Repository } from './repository.ts';
import { NO_SHA, resolveHead, resolveRef, type Revision } from './revision.ts';
import { clearRunFolder, pushTargetIn, removeIfEmpty, RunFolder } from './run-folder.ts';
import { RunRefs } from './run-refs.ts';
import { formerRoot, makeSandboxRoot, type SandboxRoot } from './sandbox-root.ts';
import { lookAt, readSmall } from './small-file.ts';
import { copyFiles, listTree, type Tree, type TreeLimits } from './tree-copy.ts';

const CHECKOUT_TIMEOUT_MS = 10 * 60_000;
const MIB = 1024 * 1024;
/** What the automatic choice still copies of a project without git. */
const AUTOMATIC_LIMITS: TreeLimits = { filesMax: 20_000, bytesMax: 512 * MIB };
/** In the state of the runner: where runs have their folders, and where they had them before. */
const ROOT_FILE = 'sandbox-root';
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
  /** Whether the tree was clean the last time that it mattered. */
  #wasClean = true;
  #isRootKnown = false;

  constructor(options: SandboxFactoryOptions) {
    this.#options = options;
    this.#settings = new GitSettings(options.git);
    this.#refs = new RunRefs(options.git, join(options.stateDir, 'run-refs'));
  }

  async resolve(ref: string | undefined, strategy: SandboxStrategy | undefined): Promise<Revision> {
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
    const tree = await listTree(projectDir, new Set([this.#ownFolder(), '.git']), limits);
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
    const parentDir = this.#eventsDir;
    return openCommitRepository({ git, settings: this.#settings, repository, parentDir });
  }

  async adopt(runId: string, { repository: commits }: EventCommit): Promise<void> {
    if (!isRunId(runId)) throw new AppError('RUN_NOT_FOUND', 'there is no such run');
    await commits.copyObjects(this.#adoptedDir(runId));
    const repository = await this.#repository();
    if (repository === undefined || commits.held.size === 0) return;
    await this.#holding(() => this.#refs.hold(repository, runId, 'head', commits.held));
  }

  async letGo(runId: string): Promise<void> {
    const repository = await this.#repository();
    if (repository !== undefined) await this.#refs.release(repository, runId);
  }

  async forget(runId: string): Promise<void> {
    if (!isRunId(runId)) return;
    await removeTree(this.#adoptedDir(runId));
    for (const root of this.#roots()) {
      const dir = join(root.dir, runId);
      if (lstatSync(dir, { throwIfNoEntry: false }) === undefined) continue;
      await removeTree(dir);
      removeEmpty(root);
    }
    const repository = await this.#repository();
    if (repository !== undefined) await this.#refs.remove(repository, runId);
  }

  async assertDiskSpace(): Promise<void> {
    const { root, diskFloorBytes = 0 } = this.#options;
    if (diskFloorBytes === 0) return;
    await assertFree(root.dir, diskFloorBytes);
  }

  async cleanUp({ live, known }: Parameters<SandboxFactory['cleanUp']>[0]): Promise<void> {
    const { git } = this.#options;
    const repository = await this.#repository();
    const takeFrom = async (target: string, runId: string): Promise<void> => {
      if (repository === undefined || !known.has(runId)) return;
      await this.#tidy(async () => void (await takePushed(git, target, runId, new Map())));
    };
    for (const root of this.#roots()) {
      for (const name of await readdir(root.dir).catch(() => [])) {
        if (live.has(name) || !isRunId(name)) continue;
        const runDir = join(root.dir, name);
        await takeFrom(pushTargetIn(runDir), name);
        await this.#tidy(() =>
          known.has(name) ? clearRunFolder(runDir, root) : removeTree(runDir),
        );
      }
      removeEmpty(root);
    }
    // Git directories of events; what older versions left there, too.
    for (const name of await readdir(this.#eventsDir).catch(() => [])) {
      const dir = join(this.#eventsDir, name);
      await takeFrom(join(dir, '.git', 'pushed'), name);
      await this.#tidy(() => removeSandbox(repository, dir));
    }
    if (repository === undefined) return;
    for (const runId of await readdir(this.#commitsDir).catch(() => [])) {
      if (!known.has(runId)) await this.#tidy(() => removeTree(join(this.#commitsDir, runId)));
    }
    for (const runId of await this.#refs.runs()) {
      if (live.has(runId)) continue;
      await this.#tidy(() =>
        known.has(runId)
          ? this.#refs.release(repository, runId)
          : this.#refs.remove(repository, runId),
      );
    }
    const dir = await realpath(this.#eventsDir).catch(() => undefined);
    if (dir === undefined) return;
    for (const { name, adminDir } of await linkedSandboxes(repository, dir)) {
      if (!live.has(name)) await this.#tidy(() => forgetWorktree(adminDir));
    }
  }

  get #commitsDir(): string {
    return join(this.#options.stateDir, 'run-commits');
  }

  get #eventsDir(): string {
    return join(this.#options.stateDir, 'sandboxes');
  }

  /** Where runs have, and where they had, their folders: the setting may have changed since. */
  #roots(): readonly SandboxRoot[] {
    const { root, stateDir } = this.#options;
    const text = readSmall(join(stateDir, ROOT_FILE))?.toString('utf8') ?? '';
    const before = text
      .split('\n')
      .map((line) => line.trim())
      .filter((dir) => isAbsolute(dir) && basename(dir) === basename(root.dir));
    const others = new Set([...before, ...(root.former ?? [])]);
    others.delete(root.dir);
    return [root, ...[...others].map(formerRoot)];
  }

  /** The next start looks where this one made folders, and where there still are some of others. */
  #makeRoot(): void {
    const { root, stateDir } = this.#options;
    makeSandboxRoot(root);
    if (this.#isRootKnown) return;
    const dirs = this.#roots().map(({ dir }) => dir);
    const there = dirs.filter((dir) => lookAt(dir) !== undefined);
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(stateDir, ROOT_FILE), `${there.join('\n')}\n`, { mode: 0o600 });
    this.#isRootKnown = true;
  }

  /** Objects of a run that the project may not have. */
  #adoptedDir(runId: string): string {
    return join(this.#commitsDir, runId);
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

  /** What cannot be removed (a step with more rights made it) is reported and keeps nobody from starting. */
  async #tidy(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      const problem = new AppError('STORE_UNAVAILABLE', 'a sandbox cannot be removed', {}, error);
      this.#options.report('sandbox.leftover', problem);
    }
  }

  async #prepareFromGit(request: PrepareRequest, repository: Repository): Promise<PreparedSandbox> {
    const { runId, strategy, trigger, hasExplicitRef } = request;
    const hasCommit = !isNoSha(trigger.sha);
    if (strategy === 'worktree' && !hasCommit) throw needsCommit();
    const isAutomatic = hasCommit && strategy === undefined && !hasExplicitRef;
    // What both ways need is made while git looks whether the tree is clean.
    const isClean = isAutomatic ? this.#isClean() : Promise.resolve(false);
    isClean.catch(() => undefined);
    return this.#inNewFolder(runId, repository, async (folder, undo) => {
      const dir = folder.snapshot;
      const pushTarget = pushTargetIn(folder.dir);
      const own = await this.#makeRepository(request, repository, { dir, pushTarget });
      undo.push(() => this.#refs.release(repository, runId, 'refs'));
      const fill = async (isAtCommit: boolean): Promise<void> => {
        folder.innerLinks = [];
        if (isAtCommit) await this.#checkOut(repository, dir, own);
        else folder.innerLinks = await this.#copyWorkTree(repository, dir, own.gitDir);
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
      const isAtCommit = await this.#fillAsGuessed(dir, isClean, fill);
      return isAtCommit ? 'worktree' : 'copy';
    });
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
      const adopted = this.#adoptedDir(runId);
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
   * Answers whether the tree is clean.
   */
  async #fillAsGuessed(
    dir: string,
    isClean: Promise<boolean>,
    fill: (isAtCommit: boolean) => Promise<void>,
  ): Promise<boolean> {
    const guess = this.#wasClean;
    const [seen, filled] = await Promise.allSettled([isClean, fill(guess)]);
    if (seen.status === 'rejected') throw seen.reason;
    this.#wasClean = seen.value;
    if (seen.value !== guess) {
      const names = await readdir(dir);
      const filledNames = names.filter((name) => name !== '.git');
      await Promise.all(filledNames.map((name) => removeTree(join(dir, name))));
      await fill(seen.value);
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

  /** Answers with the links that lead into the copy. */
  async #copyWorkTree(
    repository: Repository,
    dir: string,
    gitDir: string,
  ): Promise<readonly string[]> {
    const own = join(repository.prefix, this.#ownFolder()) + sep;
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
    this.#makeRoot();
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

  async #isClean(): Promise<boolean> {
    const seen = ['--', '.', `:(exclude)${this.#ownFolder()}`];
    // The user may have told git to keep quiet about untracked files.
    const args = ['status', '--porcelain', '-z', '--untracked-files=normal', ...seen];
    const result = await this.#options.git.tryRun(args);
    if (result.exitCode !== 0) throw gitFailure(args, result);
    return result.stdout.length === 0;
  }

  /** Tracked files and untracked ones that are not ignored. */
  async #listFiles(rootDir: string): Promise<readonly string[]> {
    const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
    const git = this.#options.git.in(rootDir);
    const text = await git.run(args, { timeoutMs: CHECKOUT_TIMEOUT_MS });
    const names = text.split('\0').filter((name) => name !== '');
    const unreadable = names.filter((name) => name.includes('\uFFFD')).length;
    if (unreadable > 0) {
      const problem = `${unreadable} files whose names are not UTF-8 are left out of a copy`;
      this.#options.report('sandbox.name_unreadable', new AppError('INVALID_NAME', problem));
    }
    return names;
  }

  /** The repository that the project belongs to, if any. */
  async #repository(): Promise<Repository | undefined> {
    const { projectDir, git } = this.#options;
    const repository = await findRepository(projectDir);
    if (repository === undefined || repository.prefix === '') return repository;
    // A folder that the repository around it does not track is a project of its own.
    const tracked = await git.tryRun(['ls-files', '-z', '--cached', '--', '.']);
    return tracked.exitCode === 0 && tracked.stdout.length > 0 ? repository : undefined;
  }

  /** The state of the runner is never part of a sandbox. */
  #ownFolder(): string {
    return basename(this.#options.stateDir);
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

async function assertFree(dir: string, floorBytes: number): Promise<void> {
  // It is made with the first run; the folder above is on the same disk.
  for (let at = dir; ; at = dirname(at)) {
    const found = await statfs(at).catch(() => undefined);
    if (found === undefined && dirname(at) !== at) continue;
    if (found === undefined || found.bavail * found.bsize >= floorBytes) return;
    const text = `less than ${Math.ceil(floorBytes / MIB)} MiB are free on the disk of the workspaces`;
    throw new AppError('DISK_FULL', text, { floorBytes: String(floorBytes) });
  }
}

function needsCommit(): AppError {
  return new AppError('INVALID_REQUEST', 'the strategy worktree needs a git commit', {
    field: 'sandbox.strategy',
  });
}

function removeEmpty({ base, dir, isBaseRemoved = false }: SandboxRoot): void {
  removeIfEmpty(dir);
  if (isBaseRemoved) removeIfEmpty(base);
}

/** Removes what is left of a sandbox, and what git remembers of it. */
async function removeSandbox(repository: Repository | undefined, dir: string): Promise<void> {
  const adminDir = repository && (await linkOfSandbox(repository, dir));
  if (adminDir !== undefined) await forgetWorktree(adminDir);
  await removeTree(dir);
}
