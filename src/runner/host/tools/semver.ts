import { createRequire } from 'node:module';
import type Semver from 'semver';

let loaded: typeof Semver | undefined;

/** The library for versions: its 47 files are read when a job asks for a tool, and not at the start of each run. */
export function semver(): typeof Semver {
  loaded ??= createRequire(import.meta.url)('semver') as typeof Semver;
  return loaded;
}
