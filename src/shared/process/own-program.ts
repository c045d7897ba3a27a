import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Loader of cached sources. An image may hold the sources alone. */
const SOURCE_CACHE = fileURLToPath(new URL('../../../scripts/source-cache.mjs', import.meta.url));
let options: readonly string[] | undefined;

/**
 * Options of a Node.js process that runs a program of this package. Uses the cache of sources if it
 * exists: a program whose types are removed at its start takes twice as long. Cost: one access to
 * the disk.
 */
export function ownProgramOptions(): readonly string[] {
  options ??= ['--no-warnings', ...(existsSync(SOURCE_CACHE) ? ['--import', SOURCE_CACHE] : [])];
  return options;
}
