import { lstat, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';

/** Where git keeps the project, found by looking at files alone: no process is started. */
export type Repository = {
  /** Root of the work tree that the project lies in. */
  readonly rootDir: string;
  /** The project below it, '' when it is the root itself. */
  readonly prefix: string;
  /** What belongs to this work tree: HEAD, index. */
  readonly gitDir: string;
  /** What all its work trees share: objects, refs, config. The same as gitDir but in linked work trees. */
  readonly commonDir: string;
};

/**
 * The repository around `projectDir`, undefined when there is none. Layout: gitrepository-layout(5);
 * linked work trees and submodules have a `.git` file.
 */
export async function findRepository(projectDir: string): Promise<Repository | undefined> {
  const start = await realpath(projectDir);
  for (let dir = start; ; dir = dirname(dir)) {
    const gitDir = await gitDirOf(dir);
    if (gitDir !== undefined) {
      const commonDir = await commonDirOf(gitDir);
      return { rootDir: dir, prefix: relative(dir, start), gitDir, commonDir };
    }
    if (dirname(dir) === dir) return undefined;
  }
}

async function gitDirOf(dir: string): Promise<string | undefined> {
  const path = join(dir, '.git');
  const present = await quietly(stat(path));
  if (present === undefined) return undefined;
  let gitDir = path;
  if (present.isFile()) {
    const target = /^gitdir: (.+?)\n?$/.exec((await quietly(readFile(path, 'utf8'))) ?? '')?.[1];
    if (target === undefined) return undefined;
    gitDir = resolve(dir, target);
  }
  return (await quietly(lstat(join(gitDir, 'HEAD')))) === undefined ? undefined : gitDir;
}

async function commonDirOf(gitDir: string): Promise<string> {
  const text = await quietly(readFile(join(gitDir, 'commondir'), 'utf8'));
  return text === undefined ? gitDir : resolve(gitDir, text.trim());
}

/** What cannot be read is not there: git itself says so later when it matters. */
async function quietly<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch {
    return undefined;
  }
}
