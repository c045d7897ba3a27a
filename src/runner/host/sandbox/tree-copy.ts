import { constants, type Dirent } from 'node:fs';
import { copyFile, lstat, mkdir, opendir, readlink, symlink, utimes } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';

const { COPYFILE_FICLONE } = constants;
const COPIES_AT_ONCE = 32;

/** The part of a project that a copy takes. */
export type Tree = {
  /** Paths of files and links relative to the project, with the system's separator. */
  readonly files: readonly string[];
  readonly bytes: number;
};

export type TreeLimits = { readonly filesMax: number; readonly bytesMax: number };

/**
 * All files below `dir` but those of `skipped` top-level names; links are listed, not followed. Undefined as soon as a limit is passed.
 */
export async function listTree(
  dir: string,
  skipped: ReadonlySet<string>,
  limits: TreeLimits,
): Promise<Tree | undefined> {
  const files: string[] = [];
  let bytes = 0;
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(join(dir, folder))) {
      if (folder === '' && skipped.has(entry.name)) continue;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      if (!isCopied(entry)) continue;
      files.push(path);
      if (entry.isFile()) bytes += (await lstat(join(dir, path))).size;
      if (files.length > limits.filesMax || bytes > limits.bytesMax) return undefined;
    }
  }
  return { files, bytes };
}

function isCopied(entry: Dirent): boolean {
  return entry.isFile() || entry.isSymbolicLink();
}

export type CopiedFiles = {
  /** Those of the list that are folders: git lists repositories within the project so. */
  readonly folders: readonly string[];
  /** Absolute links that pointed into one folder and now point into the other. */
  readonly innerLinks: readonly string[];
};

/**
 * Copies `files` (relative paths) from one folder to another, as clones that share their blocks where
 * the file system can. Links are made again as links: relative ones as they are, absolute ones that
 * point into `from` point into `to`. Times of change stay, so that git sees nothing changed. What vanished
 * meanwhile or lies behind a link is left out.
 */
export async function copyFiles(
  from: string,
  to: string,
  files: readonly string[],
): Promise<CopiedFiles> {
  const folders = new Map<string, Promise<boolean>>([['.', Promise.resolve(true)]]);
  const makeFolder = (folder: string): Promise<boolean> => {
    let made = folders.get(folder);
    if (made === undefined) {
      made = makeFolder(dirname(folder)).then(async (isThere) => {
        if (!isThere || !(await isRealFolder(join(from, folder)))) return false;
        await mkdir(join(to, folder), { recursive: true });
        return true;
      });
      folders.set(folder, made);
    }
    return made;
  };
  const rest = files.values();
  const folderFiles: string[] = [];
  const innerLinks: string[] = [];
  const copyRest = async (): Promise<void> => {
    for (const file of rest) {
      if (!(await makeFolder(dirname(file)))) continue;
      const kind = await copyOne(from, to, file);
      if (kind === 'folder') folderFiles.push(file);
      if (kind === 'inner link') innerLinks.push(file);
    }
  };
  await Promise.all(Array.from({ length: COPIES_AT_ONCE }, copyRest));
  return { folders: folderFiles, innerLinks };
}

async function isRealFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false;
}

async function copyOne(
  from: string,
  to: string,
  file: string,
): Promise<'folder' | 'inner link' | undefined> {
  const source = join(from, file);
  const target = join(to, file);
  const present = await lstat(source).catch(() => undefined);
  if (present?.isSymbolicLink() === true) {
    const link = await readlink(source);
    const moved = movedLink(link, from, to);
    await symlink(moved, target);
    return moved === link ? undefined : 'inner link';
  }
  if (present?.isFile() === true) {
    await copyFile(source, target, COPYFILE_FICLONE);
    // Not as dates: those are rounded, and git compares whole seconds.
    await utimes(target, present.atimeMs / 1000, present.mtimeMs / 1000);
  }
  return present?.isDirectory() === true ? 'folder' : undefined;
}

function movedLink(link: string, from: string, to: string): string {
  if (!isAbsolute(link)) return link;
  const inside = relative(from, link);
  const isInside = inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
  return isInside ? join(to, inside) : link;
}
