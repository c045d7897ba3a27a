import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Git } from '../git/run-git.ts';

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
 * linked work trees and submodules have a `.git` file. Cost: a few short calls of the file system, made
 * at once: each way through the thread pool takes ten times as long.
 */
export function findRepository(projectDir: string): Promise<Repository | undefined> {
  const start = quietly(() => realpathSync(projectDir)) ?? projectDir;
  for (let dir = start; ; dir = dirname(dir)) {
    const gitDir = gitDirOf(dir);
    if (gitDir !== undefined) {
      const commonDir = commonDirOf(gitDir);
      return Promise.resolve({ rootDir: dir, prefix: relative(dir, start), gitDir, commonDir });
    }
    if (dirname(dir) === dir) return Promise.resolve(undefined);
  }
}

function gitDirOf(dir: string): string | undefined {
  const path = join(dir, '.git');
  const present = quietly(() => statSync(path, { throwIfNoEntry: false }));
  if (present === undefined) return undefined;
  let gitDir = path;
  if (present.isFile()) {
    const text = quietly(() => readFileSync(path, 'utf8')) ?? '';
    const target = /^gitdir: (.+?)\n?$/.exec(text)?.[1];
    if (target === undefined) return undefined;
    gitDir = resolve(dir, target);
  }
  const head = quietly(() => lstatSync(join(gitDir, 'HEAD'), { throwIfNoEntry: false }));
  return head === undefined ? undefined : gitDir;
}

function commonDirOf(gitDir: string): string {
  const text = quietly(() => readFileSync(join(gitDir, 'commondir'), 'utf8'));
  return text === undefined ? gitDir : resolve(gitDir, text.trim());
}

/** What cannot be read is not there: git itself says so later when it matters. */
function quietly<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/** The repository that the project belongs to, if any: a folder that the repository around it does not track is a project of its own. */
export async function findOwnRepository(
  projectDir: string,
  git: Git,
): Promise<Repository | undefined> {
  const repository = await findRepository(projectDir);
  if (repository === undefined || repository.prefix === '') return repository;
  const tracked = await git.tryRun(['ls-files', '-z', '--cached', '--', '.']);
  return tracked.exitCode === 0 && tracked.stdout.length > 0 ? repository : undefined;
}
