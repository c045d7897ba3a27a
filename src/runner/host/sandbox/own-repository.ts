import { mkdirSync, writeFileSync } from 'node:fs';
import { copyFile, readdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from '../git/run-git.ts';
import {
  configText,
  type GitSetting,
  type GitSettings,
  takenSettings,
  withoutUser,
} from './git-settings.ts';
import { alternatesText, objectStores } from './object-stores.ts';
import { packedRefsText, type ProjectRefs, readProjectRefs } from './project-refs.ts';
import { makePushTarget, pushSettings } from './push-target.ts';
import type { Repository } from './repository.ts';
import { lookAt, readSmall } from './small-file.ts';

export type OwnRepositoryRequest = {
  /** In the project. */
  readonly git: Git;
  readonly settings: GitSettings;
  readonly repository: Repository;
  /** An existing folder without `.git`: the root of the work tree. */
  readonly dir: string;
  /** A commit, or `ref: refs/heads/…` before the first one. */
  readonly head: string;
  /** Pushes go where the project's own go; otherwise to `pushTarget`. */
  readonly mayPush: boolean;
  /** The repository that takes pushes, made when it is not there yet. Default: one within this one. */
  readonly pushTarget?: string | undefined;
};

/** A git directory that was made for a run. */
export type OwnRepository = {
  readonly gitDir: string;
  /** Commits of the project that its refs name, the most important first. */
  readonly commits: ReadonlySet<string>;
  /** Whether objects may be missing until git needs them. */
  readonly isPartial: boolean;
};

/** Files below `info` that say which files are there and how they are written. */
const COMMON_INFO: readonly string[] = ['attributes', 'exclude'];
const OWN_INFO: readonly string[] = ['sparse-checkout'];

/**
 * Makes the folder a work tree with a git directory of its own, which borrows the project's objects and
 * has its branches, tags and remotes, but nothing of its hooks, credentials or people; no file is checked
 * out. What git commands of steps change there, they change nowhere else. The files are written by hand,
 * as gitrepository-layout(5) names them. Refs are kept as files whatever the project keeps them in.
 * Errors: GIT_FAILED, those of the file system. Cost: no process, or one when settings have changed.
 */
export async function makeOwnRepository(request: OwnRepositoryRequest): Promise<OwnRepository> {
  const { git, repository, dir, head, mayPush } = request;
  const gitDir = join(dir, '.git');
  const settings = await request.settings.read(repository);
  const refs = await readProjectRefs(git, repository);
  const stores = objectStores(repository.commonDir);
  const shallow = readSmall(join(repository.commonDir, 'shallow'));
  const taken = takenSettings(settings, repository, mayPush);
  const format = formatSettings(taken);
  for (const folder of ['hooks', 'info', 'objects/info', 'refs']) {
    mkdirSync(join(gitDir, folder), { recursive: true });
  }
  const write = (name: string, content: string | Buffer): void =>
    writeFileSync(join(gitDir, name), content);
  write('objects/info/alternates', alternatesText(stores));
  write('packed-refs', packedRefsText(refs.refs, refs.isPeeled));
  writeSymbolic(gitDir, refs);
  for (const [name, content] of readInfo(repository)) write(join('info', name), content);
  if (shallow !== undefined) write('shallow', shallow);
  const own: GitSetting[] = [...format, ...plainSettings(taken)];
  if (!mayPush) {
    const promisors = promisorSettings(taken);
    const target = request.pushTarget ?? join(gitDir, 'pushed');
    if (lookAt(target) === undefined) {
      makePushTarget({ target, format: [...format, ...promisors], stores, refs, shallow });
    }
    own.push(...pushSettings(target, remotesOf(settings)));
  }
  write('config', configText(own));
  // Last: without it git takes the folder for nothing.
  write('HEAD', `${head}\n`);
  return {
    gitDir,
    commits: new Set(refs.refs.map(({ sha }) => sha)),
    isPartial: own.some(({ key }) =>
      /^(?:extensions\.partialclone|remote\..+\.promisor)$/s.test(key),
    ),
  };
}

/**
 * Gives a run the index of the project, so that what is staged there is staged here. Its time of change is
 * how git knows which files changed too soon after it for their own time to say.
 */
export async function copyIndex(repository: Repository, gitDir: string): Promise<void> {
  const names = await readdir(repository.gitDir);
  const parts = names.filter((name) => name === 'index' || name.startsWith('sharedindex.'));
  await Promise.all(
    parts.map(async (name) => {
      const [from, to] = [join(repository.gitDir, name), join(gitDir, name)];
      const { atimeMs, mtimeMs } = await stat(from);
      await copyFile(from, to);
      await utimes(to, atimeMs / 1000, mtimeMs / 1000);
    }),
  );
}

function readInfo(repository: Repository): readonly (readonly [name: string, content: Buffer])[] {
  const places = [
    ...COMMON_INFO.map((name) => [repository.commonDir, name] as const),
    ...OWN_INFO.map((name) => [repository.gitDir, name] as const),
  ];
  return places.flatMap(([folder, name]) => {
    const content = readSmall(join(folder, 'info', name));
    // `git init` leaves a file of comments; each file that is made costs.
    const isEmpty = content === undefined || /^(?:#.*\n|\s)*$/.test(content.toString('latin1'));
    return isEmpty ? [] : [[name, content] as const];
  });
}

/** What git has to know before it can read anything: the version 1 alone knows extensions. */
function formatSettings(taken: readonly GitSetting[]): readonly GitSetting[] {
  const extensions = taken.filter(({ key }) => key.startsWith('extensions.'));
  const version = extensions.length === 0 ? '0' : '1';
  return [{ key: 'core.repositoryformatversion', value: version }, ...extensions];
}

/** The remotes that objects may be fetched from when they are needed. */
function promisorSettings(taken: readonly GitSetting[]): readonly GitSetting[] {
  const names = taken.flatMap(({ key }) => /^remote\.(.+)\.promisor$/s.exec(key)?.[1] ?? []);
  return taken.filter(({ key }) => names.some((name) => key.startsWith(`remote.${name}.`)));
}

function plainSettings(taken: readonly GitSetting[]): readonly GitSetting[] {
  return [
    { key: 'core.bare', value: 'false' },
    { key: 'core.logallrefupdates', value: 'true' },
    ...taken.filter(({ key }) => !key.startsWith('extensions.')),
    // A workspace is a copy: its files have the size and time that the index knows, and other numbers.
    { key: 'core.checkstat', value: 'minimal' },
  ];
}

/** Addresses of the project's remotes by name, in git's order, without users. */
function remotesOf(settings: readonly GitSetting[]): ReadonlyMap<string, readonly string[]> {
  const remotes = new Map<string, string[]>();
  for (const { key, value } of settings) {
    const name = /^remote\.(.+)\.(?:url|pushurl)$/s.exec(key)?.[1];
    if (name !== undefined) remotes.set(name, [...(remotes.get(name) ?? []), withoutUser(value)]);
  }
  return remotes;
}

function writeSymbolic(gitDir: string, { refs, symbolic }: ProjectRefs): void {
  const known = new Set(refs.map(({ name }) => name));
  for (const [name, target] of symbolic) {
    if (!known.has(target)) continue;
    mkdirSync(join(gitDir, name, '..'), { recursive: true });
    writeFileSync(join(gitDir, name), `ref: ${target}\n`);
  }
}
