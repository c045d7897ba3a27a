import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';

const FOLDER = 'gatehouse-runner';
const HASH_CHARACTERS = 12;

/** Where the runs of one project have their folders. */
export type SandboxRoot = {
  /** Absolute; made by `makeSandboxRoot` when it is needed. */
  readonly dir: string;
  /** The setting, or what stands in for it. */
  readonly base: string;
};

/**
 * The folder for the runs of a project: `<base>/<hash of the project's path>`. The base is `given`, else
 * the cache folder of the user (XDG Base Directory Specification), else, where that lies in the project
 * itself, one in /var/tmp. Never in the project: programs look for packages and settings in the folders
 * above them, and would find those of the project.
 * Errors: CONFIG_INVALID for a `given` that lies in the project.
 */
export function sandboxRootOf(
  projectDir: string,
  given: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): SandboxRoot {
  const project = realOf(projectDir);
  const hash = createHash('sha256').update(project).digest('hex').slice(0, HASH_CHARACTERS);
  if (given !== undefined) {
    const base = resolve(given);
    if (isWithin(project, realOf(base))) {
      const text = `RUNNER_SANDBOX_DIR: ${base} lies in the project, whose packages jobs would find`;
      throw new AppError('CONFIG_INVALID', text);
    }
    return { base, dir: join(base, hash) };
  }
  const { XDG_CACHE_HOME: cacheHome = '' } = environment;
  const cache = isAbsolute(cacheHome) ? cacheHome : join(homeOf(environment), '.cache');
  const usual = join(cache, FOLDER);
  const base = isWithin(project, realOf(usual))
    ? join('/var/tmp', `${FOLDER}-${process.getuid?.() ?? 0}`)
    : usual;
  return { base, dir: join(base, hash) };
}

/**
 * Makes the folder, for nobody else. Idempotent.
 * Errors: STORE_UNAVAILABLE when it cannot be made, or is a link or another user's.
 */
export function makeSandboxRoot({ base, dir }: SandboxRoot): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const text = `the folder for workspaces, ${base}, cannot be made: RUNNER_SANDBOX_DIR names another one`;
    throw new AppError('STORE_UNAVAILABLE', text, {}, error);
  }
  const found = lstatSync(dir);
  const isOurs = found.isDirectory() && found.uid === (process.geteuid?.() ?? found.uid);
  if (isOurs) return;
  const text = `the folder for workspaces, ${dir}, is a link or belongs to another user`;
  throw new AppError('STORE_UNAVAILABLE', text);
}

function homeOf({ HOME: home = '' }: Readonly<Record<string, string | undefined>>): string {
  return isAbsolute(home) ? home : homedir();
}

function isWithin(outer: string, path: string): boolean {
  const way = relative(outer, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** As far as it is there, without links: the rest of a path may be made later. */
function realOf(path: string): string {
  for (let at = path; ; at = resolve(at, '..')) {
    try {
      return join(realpathSync(at), relative(at, path));
    } catch (error) {
      if (resolve(at, '..') === at) throw error;
    }
  }
}
