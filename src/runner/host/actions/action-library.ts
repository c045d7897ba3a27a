import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../../shared/app-error.ts';
import { type DirectoryLock, lockDirectory } from '../../../shared/process/directory-lock.ts';
import {
  type ActionReference,
  referenceIn,
  type RemoteReference,
} from '../../language/action-reference.ts';
import { remoteOfWorkflow } from '../../language/called-workflow-path.ts';
import { usesInText } from '../../language/uses-in-document.ts';
import type { ActionSupply, ActionUses } from '../../model/ports.ts';
import type { NeededAction } from '../../model/run.ts';
import { systemCode } from '../../storage/file-errors.ts';
import { ActionLock, type LockedAction } from './action-lock.ts';
import { type ActionOrigin, fetchAction } from './fetch-action.ts';
import { folderDigest } from './folder-digest.ts';

const LOCK_WAIT_MS = 15 * 60_000;
const LOCK_POLL_MS = 100;
const FETCHING = '.fetch-';
const DEPTH_MAX = 20;
const NEEDS_MAX = 1_000;
/** As large as an action.yml that a job reads; of a called workflow no more is read either. */
const FILE_BYTES_MAX = 512 * 1024;
const SHOWN_CHARACTERS_MAX = 200;

export type ActionLibraryOptions = {
  /** `.runner` of the project; absolute. */
  readonly stateDir: string;
  readonly mirror?: string | undefined;
  readonly origin: ActionOrigin;
  /** Whether runs fetch what is missing. */
  readonly fetchesInRuns: boolean;
  readonly isBuiltIn: (reference: RemoteReference) => boolean;
};

/** Where the files of an action are. */
export type FoundAction = {
  readonly root: string;
  readonly source: 'fetched' | 'placed' | 'mirror';
  readonly commit?: string | undefined;
};

/** What some workflows need, and what keeps them from it. */
export type Needs = {
  readonly actions: readonly NeededAction[];
  readonly problems: readonly string[];
};

/**
 * The actions of other repositories that a project has: `.runner/actions/<owner>/<repo>@<ref>`, then the
 * mirror. Those that git fetched are pinned in `.runner/actions.lock`, and their files must be what the
 * lock says.
 */
export class ActionLibrary implements ActionSupply {
  readonly #options: ActionLibraryOptions;
  readonly #dir: string;
  readonly #lock: ActionLock;

  constructor(options: ActionLibraryOptions) {
    this.#options = options;
    this.#dir = join(options.stateDir, 'actions');
    this.#lock = new ActionLock(options.stateDir);
  }

  /**
   * The files of `owner/repo@ref`; undefined when they are not here.
   * Errors: STORE_UNAVAILABLE, also for files that are no longer what was fetched.
   */
  async find({
    repository,
    ref,
  }: Pick<RemoteReference, 'repository' | 'ref'>): Promise<FoundAction | undefined> {
    const name = `${repository}@${ref}`;
    const root = this.#folderOf(name);
    if (isFolder(root)) {
      const locked = this.#lock.read().get(name);
      if (locked === undefined) return { root, source: 'placed' };
      if ((await folderDigest(root)) === locked.digest) {
        return { root, source: 'fetched', commit: locked.commit };
      }
      const text = `The files of ${name} were changed since they were fetched: \`runner actions fetch --update\` gets them anew`;
      throw new AppError('STORE_UNAVAILABLE', text, { field: 'uses' });
    }
    const mirrored =
      this.#options.mirror === undefined ? undefined : join(this.#options.mirror, name);
    return mirrored !== undefined && isFolder(mirrored)
      ? { root: mirrored, source: 'mirror' }
      : undefined;
  }

  isPinned({ repository, ref }: Pick<RemoteReference, 'repository' | 'ref'>): boolean {
    return this.#lock.read().has(`${repository}@${ref}`);
  }

  async prepare({
    needed,
    treeDir,
    mayFetch,
  }: Parameters<ActionSupply['prepare']>[0]): Promise<Needs> {
    const mode = mayFetch && this.#options.fetchesInRuns ? 'missing' : 'none';
    return await this.collect(needed, treeDir, mode);
  }

  /**
   * All that these uses lead to, through local actions below `treeDir`, composite ones and workflows of other
   * repositories. `fetching`: `missing` gets what is not here, `all` asks again which commit each is.
   */
  async collect(
    needed: readonly ActionUses[],
    treeDir: string,
    fetching: 'none' | 'missing' | 'all',
  ): Promise<Needs> {
    const walk = new Walk(this, treeDir, fetching, this.#options.isBuiltIn);
    for (const { uses, path } of needed) {
      const own = remoteOfWorkflow(path);
      // The caller of a workflow that is here names its repository.
      if (own !== undefined) await walk.need({ kind: 'remote', ...own, path: '' }, 0);
      await walk.follow(uses, own, 0);
    }
    return walk.result();
  }

  /** Gets the files of a reference. `isUpdate`: at the commit that it is now. Errors: UPSTREAM_ERROR, INVALID_REF. */
  async fetch(
    reference: Pick<RemoteReference, 'repository' | 'ref'>,
    isUpdate: boolean,
  ): Promise<FoundAction> {
    const name = `${reference.repository}@${reference.ref}`;
    const root = this.#folderOf(name);
    const lock = await this.#hold();
    try {
      await this.#tidy();
      const entries = this.#lock.read();
      const known = entries.get(name);
      if (known === undefined && isFolder(root)) return { root, source: 'placed' };
      if (known !== undefined && !isUpdate && isFolder(root)) {
        return { root, source: 'fetched', commit: known.commit };
      }
      const staging = join(this.#dir, `${FETCHING}${randomUUID()}`);
      try {
        const pinned = isUpdate ? undefined : known?.commit;
        const commit = await fetchAction(reference, staging, this.#options.origin, pinned);
        const digest = await folderDigest(staging);
        if (pinned !== undefined && known !== undefined && digest !== known.digest) {
          throw new AppError('UPSTREAM_ERROR', `${name}: its files are not those of the lock`);
        }
        // First what the folder is, then the folder: an end in between leaves one that counts as missing.
        if (isFolder(root)) await rename(root, `${staging}.old`);
        await this.#lock.write(entries.set(name, { commit, digest }));
        mkdirSync(dirname(root), { recursive: true, mode: 0o700 });
        await rename(staging, root);
        return { root, source: 'fetched', commit };
      } finally {
        await rm(staging, { recursive: true, force: true });
        await rm(`${staging}.old`, { recursive: true, force: true });
      }
    } finally {
      lock.release();
    }
  }

  /** All that are here, by name, needed or not. */
  list(): { readonly name: string; readonly commit?: string | undefined }[] {
    const entries = this.#lock.read();
    return this.#names(entries).map((name) => ({ name, commit: entries.get(name)?.commit }));
  }

  /** Removes what was fetched and is not among `kept`; what somebody put there stays. Answers with the names. */
  async prune(kept: ReadonlySet<string>): Promise<string[]> {
    const lock = await this.#hold();
    try {
      await this.#tidy();
      const entries = this.#lock.read();
      const gone = [...entries.keys()].filter((name) => !kept.has(name));
      for (const name of gone) {
        entries.delete(name);
        await this.#remove(name);
      }
      if (gone.length > 0) await this.#lock.write(entries);
      return gone;
    } finally {
      lock.release();
    }
  }

  /** What a killed fetch left: nobody else fetches now. */
  async #tidy(): Promise<void> {
    for (const name of readdirSync(this.#dir)) {
      if (!name.startsWith(FETCHING)) continue;
      await rm(join(this.#dir, name), { recursive: true, force: true });
    }
  }

  async #remove(name: string): Promise<void> {
    const root = this.#folderOf(name);
    if (!isFolder(root)) return;
    const staging = join(this.#dir, `${FETCHING}${randomUUID()}`);
    await rename(root, staging);
    await rm(staging, { recursive: true, force: true });
  }

  /** Errors: INVALID_WORKFLOW for a name that leads elsewhere. */
  #folderOf(name: string): string {
    const root = join(this.#dir, name);
    if (root.startsWith(this.#dir + sep) && !name.split('/').some((part) => /^\.\.?$/.test(part))) {
      return root;
    }
    throw new AppError('INVALID_WORKFLOW', `'${name}' names no action`, { field: 'uses' });
  }

  /** A folder of a ref with `/` in it is known by the lock alone. */
  #names(entries: ReadonlyMap<string, LockedAction>): string[] {
    const names = new Set([...entries.keys()].filter((name) => isFolder(this.#folderOf(name))));
    for (const owner of foldersIn(this.#dir)) {
      for (const folder of foldersIn(join(this.#dir, owner))) {
        const name = `${owner}/${folder}`;
        const isPart = [...names].some((one) => one.startsWith(`${name}/`));
        if (folder.includes('@') && !isPart) names.add(name);
      }
    }
    return [...names].toSorted();
  }

  async #hold(): Promise<DirectoryLock> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const until = performance.now() + LOCK_WAIT_MS;
    for (;;) {
      try {
        return lockDirectory(join(this.#dir, '.lock'), 'the folder of actions', 'It fetches.');
      } catch (error) {
        const isHeld = error instanceof AppError && error.reason === 'STORE_UNAVAILABLE';
        if (!isHeld || performance.now() > until) throw error;
      }
      await sleep(LOCK_POLL_MS);
    }
  }
}

type ProjectRepository = { readonly repository: string; readonly ref: string };

/** One way through all that some files use. */
class Walk {
  readonly #library: ActionLibrary;
  readonly #treeDir: string;
  readonly #fetching: 'none' | 'missing' | 'all';
  readonly #isBuiltIn: (reference: RemoteReference) => boolean;
  readonly #found = new Map<string, NeededAction>();
  readonly #roots = new Map<string, string>();
  readonly #seen = new Set<string>();
  readonly #problems = new Set<string>();

  constructor(
    library: ActionLibrary,
    treeDir: string,
    fetching: 'none' | 'missing' | 'all',
    isBuiltIn: (reference: RemoteReference) => boolean,
  ) {
    this.#library = library;
    this.#treeDir = treeDir;
    this.#fetching = fetching;
    this.#isBuiltIn = isBuiltIn;
  }

  result(): Needs {
    const actions = [...this.#found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return { actions, problems: [...this.#problems] };
  }

  /** `own`: the repository whose file this is, for `$/` and for workflows beside it. */
  async follow(
    uses: readonly string[],
    own: ProjectRepository | undefined,
    depth: number,
  ): Promise<void> {
    for (const text of uses) {
      const reference = referenceIn(text);
      if (reference === undefined || reference.kind === 'image') continue;
      if (reference.kind === 'local') await this.#followLocal(reference, own, depth);
      else await this.need(reference, depth);
    }
  }

  async need(reference: RemoteReference, depth: number): Promise<void> {
    const { repository, ref, path } = reference;
    const name = `${repository}@${ref}`;
    const key = `${name}/${path}`;
    if (this.#seen.has(key)) return;
    if (depth > DEPTH_MAX || this.#seen.size >= NEEDS_MAX) {
      this.#problems.add(
        `not looked at: what is nested ${DEPTH_MAX} deep, or beyond ${NEEDS_MAX} actions`,
      );
      return;
    }
    this.#seen.add(key);
    if (!this.#found.has(name)) await this.#provide(reference, name);
    const root = this.#roots.get(name);
    if (root !== undefined) {
      await this.#followFile({ file: join(root, path), shown: key }, { repository, ref }, depth);
    }
  }

  async #provide(reference: RemoteReference, name: string): Promise<void> {
    try {
      const isUpdate = this.#fetching === 'all' && this.#library.isPinned(reference);
      let found = isUpdate ? undefined : await this.#library.find(reference);
      const isServed = !isUpdate && found === undefined && this.#isBuiltIn(reference);
      if (isServed) {
        this.#found.set(name, { name, source: 'built-in' });
        return;
      }
      if (found === undefined && this.#fetching !== 'none') {
        found = await this.#library.fetch(reference, isUpdate);
      }
      const { source = 'missing', commit, root } = found ?? {};
      this.#found.set(name, { name, source, ...(commit === undefined ? {} : { commit }) });
      if (root !== undefined) this.#roots.set(name, root);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
      this.#found.set(name, { name, source: 'missing' });
      this.#problems.add(`${name}: ${error.message}`);
    }
  }

  async #followLocal(
    { path, isOwnRepository }: Extract<ActionReference, { kind: 'local' }>,
    own: ProjectRepository | undefined,
    depth: number,
  ): Promise<void> {
    if (depth > DEPTH_MAX || path.split('/').includes('..')) return;
    const isWorkflow = /^(?:\.\/)?\.github\/workflows\/[^/]+$/.test(path);
    if (own !== undefined && (isOwnRepository || isWorkflow)) {
      const inner = path.replace(/^\.\//, '');
      await this.need({ kind: 'remote', ...own, path: inner }, depth + 1);
      return;
    }
    const key = `./${path}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    await this.#followFile({ file: join(this.#treeDir, path), shown: path }, own, depth);
  }

  /** A workflow, or the folder of an action. What cannot be read is a problem of the job that uses it. */
  async #followFile(
    { file, shown }: { readonly file: string; readonly shown: string },
    own: ProjectRepository | undefined,
    depth: number,
  ): Promise<void> {
    let text: string | undefined;
    try {
      text = definitionAt(file);
    } catch (error) {
      const why = systemCode(error);
      if (why === undefined && !(error instanceof AppError)) throw error;
      const what = error instanceof AppError ? error.message : why;
      this.#problems.add(`${shown.slice(0, SHOWN_CHARACTERS_MAX)}: ${what}`);
    }
    if (text !== undefined) await this.follow(usesInText(text), own, depth + 1);
  }
}

/** What the text of a workflow uses, in all its jobs; nothing where it is no YAML. */
export function usesOfFile(text: string, path: string): ActionUses {
  return { uses: usesInText(text), path };
}

/** The text of a workflow or of an action's definition; undefined where there is none. Errors: RESULT_TOO_LARGE, those of the file system. */
function definitionAt(path: string): string | undefined {
  for (const file of [path, join(path, 'action.yml'), join(path, 'action.yaml')]) {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isFile() !== true) continue;
    if (stats.size > FILE_BYTES_MAX) {
      throw new AppError('RESULT_TOO_LARGE', `larger than ${FILE_BYTES_MAX} bytes`);
    }
    return readFileSync(file, 'utf8');
  }
  return undefined;
}

function foldersIn(dir: string): string[] {
  if (!isFolder(dir)) return [];
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
