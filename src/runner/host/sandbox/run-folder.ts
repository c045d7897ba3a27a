import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { readdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { assert } from '../../../shared/assert.ts';
import { removeSmallTree } from '../../../shared/small-tree.ts';
import type { JobWorkspace, WorkspaceRequest } from '../../model/storage.ts';
import { copyTree, removeTree } from './copy-tree.ts';
import type { SandboxRoot } from './sandbox-root.ts';

// No job's folder begins with a dot: keys of jobs begin with a letter or `_`.
const SNAPSHOT = '.snapshot';
const PUSHED = '.pushed';
const KEPT_PREFIX = '.kept-';
/**
 * What the runner has of each job, not in the folder around its workspace: steps empty that. Without a dot in
 * front, since they see it in paths. Keys begin with no digit, either.
 */
const RUNNERS_OWN = '0-runner';
const NAME_CHARACTERS_MAX = 60;
const HASH_CHARACTERS = 8;
/** Letter case does not distinguish files there. */
const PLAIN_NAME = process.platform === 'linux' ? /^[\w.-]+$/ : /^[a-z0-9_.-]+$/;

/**
 * The name of a job's folder: `key.2` for a matrix job, `caller.key` for a job of a called workflow. Keys hold
 * no dot, and begin with no digit, so that each id has its own. A colon would split PATH.
 */
function jobFolderName(jobId: string): string {
  const name = jobId.replaceAll(/[:/]/g, '.');
  if (name.length <= NAME_CHARACTERS_MAX && PLAIN_NAME.test(name)) return name;
  const hash = createHash('sha256').update(jobId).digest('hex').slice(0, HASH_CHARACTERS);
  const readable = name.replaceAll(/[^\w.-]/g, '_').slice(0, NAME_CHARACTERS_MAX);
  return `${readable}.${hash}`;
}

/** The repository that takes the pushes of the run in the folder `runDir`. */
export function pushTargetIn(runDir: string): string {
  return join(runDir, PUSHED);
}

/** Removes the folder of a run, but for workspaces that are kept; those above when they are empty. */
export async function clearRunFolder(
  runDir: string,
  { base, isBaseRemoved = false }: Pick<SandboxRoot, 'base' | 'isBaseRemoved'>,
): Promise<void> {
  // By lstat, and without following: a step may have put a link there.
  const names = lookAtPlainFolder(runDir) ? await readdir(runDir) : [];
  const kept = new Set(
    names.flatMap((name) =>
      name.startsWith(KEPT_PREFIX) ? [name, name.slice(KEPT_PREFIX.length)] : [],
    ),
  );
  const gone = names.filter((name) => !kept.has(name));
  await Promise.all(gone.map((name) => removeTree(join(runDir, name))));
  if (kept.size === 0) await rm(runDir, { force: true, recursive: true });
  removeIfEmpty(dirname(runDir));
  if (isBaseRemoved) removeIfEmpty(base);
}

/** Removes a folder that nothing is in. */
export function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // Another run has something there, or it has gone already.
    return;
  }
}

type RunFolderParts = {
  /** Exists. */
  readonly dir: string;
  /** Of the repository: the last part of GITHUB_WORKSPACE. */
  readonly name: string;
  /** Of the project below the root of its repository. */
  readonly prefix: string;
};

/**
 * The folder of one run: the state of the project that it began with, from which each job gets a
 * workspace of its own. SPEC: W1: the snapshot changes after it was filled by nothing but being moved
 * into the last workspace. W2: it is not moved while anybody copies it, or may ask for it later.
 */
export class RunFolder {
  readonly dir: string;
  readonly #name: string;
  readonly #prefix: string;
  /** Links of the snapshot that lead into it, relative to its root: they lead into each workspace. */
  #innerLinks: readonly string[] = [];
  #isMoved = false;
  /** Copies going on, and jobs that may ask for one. */
  #users = 0;

  constructor({ dir, name, prefix }: RunFolderParts) {
    this.dir = dir;
    this.#name = name;
    this.#prefix = prefix;
  }

  /** The root of the snapshot. */
  get snapshot(): string {
    return join(this.dir, SNAPSHOT, this.#name);
  }

  get source(): string {
    return join(this.snapshot, this.#prefix);
  }

  /** Reported once the snapshot is filled. */
  set innerLinks(links: readonly string[]) {
    this.#innerLinks = links;
  }

  async openWorkspace(request: WorkspaceRequest): Promise<JobWorkspace> {
    const { jobId, isEmpty, mayFill, isLast } = request;
    const folder = jobFolderName(jobId);
    const jobDir = join(this.dir, folder);
    const mark = join(this.dir, KEPT_PREFIX + folder);
    const root = join(jobDir, this.#name);
    const own = join(this.dir, RUNNERS_OWN, folder);
    if (mayFill) this.#users += 1;
    let isEnded = false;
    const end = async (isKept: boolean): Promise<void> => {
      if (isEnded) return;
      isEnded = true;
      if (mayFill) this.#users -= 1;
      await this.#removeOwn(own);
      if (isKept) writeFileSync(mark, '', { mode: 0o600 });
      else if (!removeSmallTree(jobDir)) await removeTree(jobDir);
    };
    try {
      // An earlier attempt of the job may have been kept.
      const isThere = lstatSync(jobDir, { throwIfNoEntry: false }) !== undefined;
      if (isThere) await Promise.all([removeTree(jobDir), rm(mark, { force: true })]);
      if (lstatSync(own, { throwIfNoEntry: false }) !== undefined) await removeTree(own);
      mkdirSync(own, { recursive: true, mode: 0o700 });
      const first = isEmpty ? join(root, this.#prefix) : jobDir;
      mkdirSync(first, { recursive: true, mode: 0o700 });
      if (!isEmpty) await (isLast && this.#users === 0 ? this.#moveTo(root) : this.#copyTo(root));
    } catch (error) {
      await end(false);
      if (error instanceof AppError) throw error;
      throw new AppError('STORE_UNAVAILABLE', 'a workspace could not be made', {}, error);
    }
    const fill = async (dir: string): Promise<void> => {
      assert(mayFill, 'a job that said so fills a folder');
      // The folder itself stays: steps that go on in the background may be in it. A link does not.
      const isPlain = lookAtPlainFolder(dir);
      const names = isPlain ? await readdir(dir) : [];
      if (!isPlain) await rm(dir, { force: true });
      await Promise.all(names.map((name) => removeTree(join(dir, name))));
      await this.#copyTo(dir);
    };
    return { path: join(root, this.#prefix), root, jobDir: own, fill, end };
  }

  /** What a step put in the place of the folder around it goes with the run. */
  async #removeOwn(own: string): Promise<void> {
    if (!lookAtPlainFolder(dirname(own))) return;
    if (!removeSmallTree(own)) await removeTree(own);
  }

  async #copyTo(root: string): Promise<void> {
    assert(!this.#isMoved, 'the snapshot is there as long as somebody may need it');
    this.#users += 1;
    try {
      await copyTree(this.snapshot, root);
    } finally {
      this.#users -= 1;
    }
    await this.#turnLinks(root);
  }

  /** The last one needs no copy. */
  async #moveTo(root: string): Promise<void> {
    this.#isMoved = true;
    renameSync(this.snapshot, root);
    await this.#turnLinks(root);
  }

  async #turnLinks(root: string): Promise<void> {
    for (const path of this.#innerLinks) {
      const link = join(root, path);
      const target = await readlink(link);
      // The copy may have turned it already.
      if (!target.startsWith(this.snapshot)) continue;
      await rm(link);
      await symlink(root + target.slice(this.snapshot.length), link);
    }
  }
}

function lookAtPlainFolder(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() ?? false;
}
