import { createRequire } from 'node:module';

type Semver = typeof import('semver');

let loaded: Semver | undefined;

/** The library for versions: its 47 files are read when a job asks for a tool, and not at the start of each run. */
export function semver(): Semver {
  loaded ??= createRequire(import.meta.url)('semver') as Semver;
  return loaded;
}
