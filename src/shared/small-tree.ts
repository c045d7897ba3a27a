import {
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';

// A tree of a few files is made or removed in microseconds; the thread pool takes ten times as
// long. A run of a thousand jobs makes and removes a thousand such folders.

const ENTRIES_MAX = 64;
const BYTES_MAX = 1024 * 1024;

type SmallTree = {
  /** Relative paths, each after the folder that contains it. */
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly links: readonly string[];
};

/**
 * Copies a folder of a few small files like copyTree. False, with nothing done, if there are more,
 * or links among them. Errors: those of the file system. Cost: at most 64 entries and 1 MiB,
 * synchronously.
 */
export function copySmallTree(from: string, to: string): boolean {
  const tree = smallTreeOf(from, BYTES_MAX);
  if (tree === undefined || tree.links.length > 0) return false;
  for (const folder of tree.folders) mkdirSync(join(to, folder), { recursive: true });
  for (const file of tree.files) {
    const [source, target] = [join(from, file), join(to, file)];
    const { atimeMs, mtimeMs } = lstatSync(source);
    copyFileSync(source, target, constants.COPYFILE_FICLONE);
    utimesSync(target, atimeMs / 1000, mtimeMs / 1000);
  }
  return true;
}

/**
 * Removes a folder with a few entries; does not follow links. False if there are more, or one of
 * them cannot be removed in this way. Cost: at most 64 entries, synchronously.
 */
export function removeSmallTree(dir: string): boolean {
  try {
    // A step may have replaced it by a link.
    if (!lstatSync(dir).isDirectory()) return false;
    const tree = smallTreeOf(dir, Number.POSITIVE_INFINITY);
    if (tree === undefined) return false;
    for (const name of [...tree.files, ...tree.links]) unlinkSync(join(dir, name));
    for (const folder of tree.folders.toReversed()) rmdirSync(join(dir, folder));
    return true;
  } catch {
    // Gone already, read-only, or a process is still writing there: the slow way handles all of
    // these.
    return false;
  }
}

function smallTreeOf(dir: string, bytesMax: number): SmallTree | undefined {
  const folders = [''];
  const files: string[] = [];
  const links: string[] = [];
  let bytes = 0;
  // The list grows during the loop.
  for (const folder of folders) {
    for (const entry of readdirSync(join(dir, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(path);
      else links.push(path);
      if (entry.isFile() && bytesMax !== Number.POSITIVE_INFINITY) {
        bytes += lstatSync(join(dir, path)).size;
      }
      if (folders.length + files.length + links.length > ENTRIES_MAX) return undefined;
    }
    if (bytes > bytesMax) return undefined;
  }
  return { folders, files, links };
}
