import { type Stats } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { basename, isAbsolute, join, relative, sep } from 'node:path';
import { locateCalledWorkflow } from '../../language/called-workflow-path.ts';
import { FILE_CHARACTERS_MAX } from '../../language/limits.ts';
import type { CalledFileLoader } from '../../language/read-workflow.ts';
import type { WorkflowSource } from '../../model/workflow.ts';

/** UTF-8 takes at most three bytes a UTF-16 unit. */
const FILE_BYTES_MAX = FILE_CHARACTERS_MAX * 3;

/** What a file held, and a stamp that changes with it. */
export type FileContent =
  | { readonly kind: 'text'; readonly text: string; readonly stamp: string }
  | { readonly kind: 'missing' | 'outside' | 'notAFile' | 'tooLarge'; readonly stamp: string };

/**
 * Reads a file of the project: `path` is relative to it. A link that leaves the project is `outside`.
 * At most 512 Ki characters; a file that is larger is not read.
 */
export async function readProjectFile(projectDir: string, path: string): Promise<FileContent> {
  const found = await find(projectDir, path);
  if (found.kind !== 'found') {
    return found;
  }
  const { target } = found;
  const file = await open(target, 'r').catch(() => undefined);
  if (file === undefined) {
    return { kind: 'missing', stamp: 'unreadable' };
  }
  try {
    const stats = await file.stat();
    const stamp = stampOf(target, stats);
    if (!stats.isFile()) {
      return { kind: 'notAFile', stamp };
    }
    if (stats.size > FILE_BYTES_MAX) {
      return { kind: 'tooLarge', stamp };
    }
    return { kind: 'text', text: await file.readFile('utf8'), stamp };
  } finally {
    await file.close();
  }
}

/** The stamp that `readProjectFile` would give, without reading. */
export async function stampOfProjectFile(projectDir: string, path: string): Promise<string> {
  const found = await find(projectDir, path);
  if (found.kind !== 'found') {
    return found.stamp;
  }
  const stats = await stat(found.target).catch(() => undefined);
  return stats === undefined ? 'missing' : stampOf(found.target, stats);
}

async function find(
  projectDir: string,
  path: string,
): Promise<
  | { readonly kind: 'found'; readonly target: string }
  | { readonly kind: 'missing' | 'outside'; readonly stamp: string }
> {
  const root = await realpath(projectDir).catch(() => undefined);
  const target =
    root === undefined ? undefined : await realpath(join(root, path)).catch(() => undefined);
  if (root === undefined || target === undefined) {
    return { kind: 'missing', stamp: 'missing' };
  }
  return isWithin(root, target)
    ? { kind: 'found', target }
    : { kind: 'outside', stamp: `outside:${target}` };
}

function stampOf(target: string, stats: Stats): string {
  return [target, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(':');
}

function isWithin(root: string, target: string): boolean {
  const path = relative(root, target);
  return path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

/** A loader of called workflows of a project; notifies each file that it looked at, present or not. */
export function createCalledFileLoader(
  folders: { readonly own: string; readonly remote: string },
  looked: (file: string, stamp: string) => void,
): CalledFileLoader {
  return async (uses, from): Promise<WorkflowSource | undefined> => {
    const located = locateCalledWorkflow(uses, from);
    if (located === undefined) {
      return undefined;
    }
    const folder = located.isRemote ? folders.remote : folders.own;
    const content = await readProjectFile(folder, located.file);
    looked(located.file, content.stamp);
    return content.kind === 'text'
      ? { text: content.text, fileName: basename(located.file), path: located.path }
      : undefined;
  };
}
