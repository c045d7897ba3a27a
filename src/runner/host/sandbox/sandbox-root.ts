import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, realpathSync, type Stats } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';

const FOLDER = 'gatehouse-runner';
const HASH_CHARACTERS = 12;
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

/** Where the runs of one project have their folders. */
export type SandboxRoot = {
  /** Absolute; made by `makeSandboxRoot` when it is needed. */
  readonly dir: string;
  /** The setting, or what stands in for it. */
  readonly base: string;
  /** `base` is nobody's but the runner's: others are kept out of it. */
  readonly isOwnBase?: boolean | undefined;
  /** `base` goes with what is in it. */
  readonly isBaseRemoved?: boolean | undefined;
  /** Where older versions had them. */
  readonly former?: readonly string[] | undefined;
};

/**
 * The folder for the runs of a project: `<base>/<hash of the project's path>`. The base is `given`, else
 * one in XDG_CACHE_HOME, else in the home folder, else in /var/tmp: the first of these that lies not in the project itself
 * and has no part that begins with a dot, since programs take files below such a one for hidden (`send` of
 * express serves none). Never in the project: programs look for packages and settings in the folders
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
  const { XDG_CACHE_HOME: cacheHome = '' } = environment;
  const home = homeOf(environment);
  const cache = isAbsolute(cacheHome) ? cacheHome : join(home, '.cache');
  const former = [join(cache, FOLDER, hash)];
  if (given !== undefined) {
    const base = resolve(given);
    if (isWithin(project, realOf(base))) {
      const text = `RUNNER_SANDBOX_DIR: ${base} lies in the project, whose packages jobs would find`;
      throw new AppError('CONFIG_INVALID', text);
    }
    return { base, dir: join(base, hash), former };
  }
  const usual = [cache, home].map((folder) => join(folder, FOLDER));
  const fits = (base: string): boolean =>
    !isWithin(project, realOf(base)) && ![base, realOf(base)].some(isHidden);
  const found = usual.find(fits);
  const base = found ?? join('/var/tmp', `${FOLDER}-${process.getuid?.() ?? 0}`);
  // Where everybody may make folders, a name that was given up is anybody's.
  const isBaseRemoved = found !== undefined;
  return { base, dir: join(base, hash), isOwnBase: true, isBaseRemoved, former };
}

/** A folder that an earlier start, or an older version, had for the runs of the project. */
export function formerRoot(dir: string): SandboxRoot {
  const base = dirname(dir);
  return { base, dir, isBaseRemoved: basename(base) === FOLDER };
}

/**
 * Makes the folder, for nobody else. Idempotent.
 * Errors: STORE_UNAVAILABLE when it cannot be made, or is a link, another user's or open to others.
 */
export function makeSandboxRoot({ base, dir, isOwnBase = false }: SandboxRoot): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const text = `the folder for workspaces, ${base}, cannot be made: RUNNER_SANDBOX_DIR names another one`;
    throw new AppError('STORE_UNAVAILABLE', text, {}, error);
  }
  for (const folder of isOwnBase ? [base, dir] : [dir]) {
    const found = lstatSync(folder);
    if (!isOurs(found)) {
      const text = `the folder for workspaces, ${folder}, is a link, or others may change it: RUNNER_SANDBOX_DIR names another one`;
      throw new AppError('STORE_UNAVAILABLE', text);
    }
  }
  if ((lstatSync(dir).mode & OPEN_TO_OTHERS) !== 0) chmodSync(dir, 0o700);
}

/** A folder of this user that nobody else may change. */
function isOurs(found: Stats): boolean {
  const isOwn = found.uid === (process.geteuid?.() ?? found.uid);
  return found.isDirectory() && isOwn && (found.mode & WRITABLE_BY_OTHERS) === 0;
}

function isHidden(path: string): boolean {
  return path.split(sep).some((part) => part.startsWith('.'));
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
