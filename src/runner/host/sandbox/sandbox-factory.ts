import { cp, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
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
import { RunRefs } from './run-refs.ts';
import { lookAt } from './small-file.ts';
import { copyFiles, listTree, type Tree, type TreeLimits } from './tree-copy.ts';

const CHECKOUT_TIMEOUT_MS = 10 * 60_000;
/** What the automatic choice still copies of a project without git. */
const AUTOMATIC_LIMITS: TreeLimits = { filesMax: 20_000, bytesMax: 512 * 1024 * 1024 };
const NO_LIMITS: TreeLimits = {
  filesMax: Number.POSITIVE_INFINITY,
  bytesMax: Number.POSITIVE_INFINITY,
};

export type SandboxFactoryOptions = {
  readonly projectDir: string;
  /** Usually `.runner/sandboxes`; made when needed. */
  readonly sandboxesDir: string;
  /** In the project. */
  readonly git: Git;
  readonly report: ProblemReporter;
};

type PrepareRequest = Parameters<SandboxFactory['prepare']>[0];

/**
 * Sandboxes of one project. A work tree and a copy have a git directory of their own that borrows the
 * project's objects, so that git commands of steps work there and change nothing of the project; without
 * git a copy is files only and starts no process.
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

  constructor(options: SandboxFactoryOptions) {
    this.#options = options;
    this.#settings = new GitSettings(options.git);
    this.#refs = new RunRefs(options.git, join(dirname(options.sandboxesDir), 'run-refs'));
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
    return tree === undefined ? this.#none() : this.#copyPlain(runId, tree);
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
    const { git, sandboxesDir } = this.#options;
    return openCommitRepository({ git, settings: this.#settings, repository, sandboxesDir });
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
    await removeTree(this.#adoptedDir(runId));
    const repository = await this.#repository();
    if (repository !== undefined) await this.#refs.remove(repository, runId);
  }

  async cleanUp({ live, known }: Parameters<SandboxFactory['cleanUp']>[0]): Promise<void> {
    const { sandboxesDir, git } = this.#options;
    const names = await readdir(sandboxesDir).catch(() => []);
    const repository = await this.#repository();
    for (const name of names) {
      if (live.has(name)) continue;
      const dir = join(sandboxesDir, name);
      if (repository !== undefined && known.has(name)) {
        const gitDir = join(dir, '.git');
        await this.#tidy(async () => void (await takePushed(git, gitDir, name, new Map())));
      }
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
    const dir = await realpath(sandboxesDir).catch(() => undefined);
    if (dir === undefined) return;
    for (const { name, adminDir } of await linkedSandboxes(repository, dir)) {
      if (!live.has(name)) await this.#tidy(() => forgetWorktree(adminDir));
    }
  }

  get #commitsDir(): string {
    return join(dirname(this.#options.sandboxesDir), 'run-commits');
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
    return this.#inNewFolder(runId, repository, async (dir, undo) => {
      const own = await this.#makeRepository(request, repository, dir);
      undo.push(() => this.#refs.release(repository, runId, 'refs'));
      const fill = (isAtCommit: boolean): Promise<void> =>
        isAtCommit
          ? this.#checkOut(repository, dir, own)
          : this.#copyWorkTree(repository, dir, own.gitDir);
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
    dir: string,
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

  async #copyWorkTree(repository: Repository, dir: string, gitDir: string): Promise<void> {
    const own = join(repository.prefix, this.#ownFolder()) + sep;
    await Promise.all([
      copyIndex(repository, gitDir),
      this.#copyListed(repository.rootDir, dir, own),
    ]);
  }

  /** Submodules and other repositories within come along as plain files. */
  async #copyListed(from: string, to: string, skippedPrefix: string): Promise<void> {
    const names = await this.#listFiles(from);
    const files = names.filter((name) => !name.startsWith(skippedPrefix));
    for (const inner of await copyFiles(from, to, files)) {
      // A submodule that is not initialised is an empty folder of the repository around it.
      const isRepository = await stat(join(from, inner, '.git')).catch(() => undefined);
      if (isRepository === undefined) continue;
      await mkdir(join(to, inner), { recursive: true });
      await this.#copyListed(join(from, inner), join(to, inner), `.git${sep}`);
    }
  }

  #copyPlain(runId: string, tree: Tree): Promise<PreparedSandbox> {
    return this.#inNewFolder(runId, undefined, async (dir) => {
      await copyFiles(this.#options.projectDir, dir, tree.files);
      return 'copy';
    });
  }

  async #inNewFolder(
    runId: string,
    repository: Repository | undefined,
    fill: (dir: string, undo: (() => Promise<void>)[]) => Promise<SandboxStrategy>,
  ): Promise<PreparedSandbox> {
    const { sandboxesDir } = this.#options;
    const dir = join(sandboxesDir, runId);
    // A queued run that a killed process had begun to prepare.
    await removeSandbox(repository, dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const undo: (() => Promise<void>)[] = [() => removeTree(dir)];
    let released: Promise<unknown> | undefined;
    const release = async (): Promise<void> => {
      released ??= Promise.all(undo.map((action) => action()));
      await released;
    };
    try {
      const strategy = await fill(dir, undo);
      const sandbox = { path: join(dir, repository?.prefix ?? ''), strategy };
      const taken = new Map<string, string>();
      const take = async (): Promise<readonly PushedRef[]> => {
        if (repository === undefined) return [];
        const fresh = await takePushed(this.#options.git, join(dir, '.git'), runId, taken);
        for (const { name, sha } of fresh) taken.set(name, sha);
        return fresh;
      };
      // Jobs that end together take turns: git locks what it writes.
      let turn: Promise<unknown> = Promise.resolve();
      const takeInTurn = (): Promise<readonly PushedRef[]> => {
        const mine = turn.then(take);
        turn = mine.catch(() => undefined);
        return mine;
      };
      return { sandbox, takePushed: takeInTurn, release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  #none(): PreparedSandbox {
    const sandbox = { path: this.#options.projectDir, strategy: 'none' } as const;
    return {
      sandbox,
      takePushed: () => Promise.resolve([]),
      release: () => Promise.resolve(),
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

  /** The top folder of the project that holds the sandboxes: never part of one. */
  #ownFolder(): string {
    const { projectDir, sandboxesDir } = this.#options;
    return relative(projectDir, sandboxesDir).split(sep)[0] ?? '.runner';
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

function needsCommit(): AppError {
  return new AppError('INVALID_REQUEST', 'the strategy worktree needs a git commit', {
    field: 'sandbox.strategy',
  });
}

/** Removes what is left of a sandbox, and what git remembers of it. */
async function removeSandbox(repository: Repository | undefined, dir: string): Promise<void> {
  const adminDir = repository && (await linkOfSandbox(repository, dir));
  if (adminDir !== undefined) await forgetWorktree(adminDir);
  await removeTree(dir);
}
