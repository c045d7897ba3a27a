import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../../shared/app-error.ts';
import { copySmallTree } from '../../../shared/small-tree.ts';
import { lookAt } from './small-file.ts';
import { copyFiles } from './tree-copy.ts';

const COPY_TIMEOUT_MS = 30 * 60_000;
/** So many are copied before another process has begun. */
const FILES_FEW = 400;
const ARGUMENTS: readonly string[] = [
  '-R',
  '-P',
  '--preserve=mode,timestamps',
  '--reflink=auto',
  '--no-target-directory',
  '--',
];

/**
 * Copies a folder with all it holds: as clones that share their blocks where the file system can, never
 * as further names of the same files. Modes and times stay, so that git sees nothing changed; links are
 * made again, absolute ones into the folder perhaps into the copy. What `to` holds already stays beside it.
 * Errors: DISK_FULL, STORE_UNAVAILABLE. Cost: O(files) calls of the file system, one process for more than
 * a few files; O(bytes) where there are no clones.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  try {
    if (copySmallTree(from, to)) return;
    const few = await entriesBelow(from, FILES_FEW);
    if (few !== undefined) return await copyEntries(from, to, few);
    if ((await copyByProgram(from, to)) === 'done') return;
    await copyEntries(from, to, await entriesBelow(from, Number.POSITIVE_INFINITY));
  } catch (error) {
    await removeTree(to);
    throw copyError(error);
  }
}

type TreeEntries = { readonly folders: readonly string[]; readonly files: readonly string[] };

/** Undefined when there are more than so many. */
async function entriesBelow(dir: string, countMax: number): Promise<TreeEntries | undefined> {
  const folders = [''];
  const files: string[] = [];
  // It grows while it is gone through.
  for (const folder of folders) {
    for (const entry of await readdir(join(dir, folder), { withFileTypes: true })) {
      const list = entry.isDirectory() ? folders : files;
      list.push(join(folder, entry.name));
    }
    if (folders.length + files.length > countMax) return undefined;
  }
  return { folders, files };
}

async function copyEntries(
  from: string,
  to: string,
  entries: TreeEntries | undefined,
): Promise<void> {
  // Also those that hold nothing: git wants some of them.
  for (const folder of entries?.folders ?? []) await mkdir(join(to, folder), { recursive: true });
  await copyFiles(from, to, entries?.files ?? []);
}

/** The program of GNU is ten times as fast as this process; others do not know its options. */
async function copyByProgram(from: string, to: string): Promise<'done' | 'unknown'> {
  const program = ['/usr/bin/cp', '/bin/cp'].find((path) => lookAt(path)?.isFile());
  if (process.platform !== 'linux' || program === undefined) return 'unknown';
  try {
    await promisify(execFile)(program, [...ARGUMENTS, from, to], {
      env: { LC_ALL: 'C' },
      timeout: COPY_TIMEOUT_MS,
    });
    return 'done';
  } catch (error) {
    if (/(?:unrecognized|unknown|invalid) option/.test(textOf(error))) return 'unknown';
    throw error;
  }
}

function copyError(error: unknown): AppError {
  if (/No space left on device|ENOSPC|quota exceeded/i.test(textOf(error))) {
    return new AppError('DISK_FULL', 'the disk of the workspaces is full', {}, error);
  }
  return new AppError('STORE_UNAVAILABLE', 'a workspace could not be made', {}, error);
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const written = 'stderr' in error ? String(error.stderr) : '';
  return `${error.message}\n${written}`;
}

/** Deletes a folder with all it holds, also folders that a step made read-only (module caches do). Links are not followed. */
export async function removeTree(dir: string): Promise<void> {
  try {
    await rm(dir, { recursive: true, force: true });
  } catch {
    await makeWritable(dir);
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function makeWritable(dir: string): Promise<void> {
  const present = await lstat(dir).catch(() => undefined);
  if (present?.isDirectory() !== true) return;
  await chmod(dir, 0o700);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(dir, entry.name));
  }
}
