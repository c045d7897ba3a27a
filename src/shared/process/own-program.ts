import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An image may hold the sources alone. */
const SOURCE_CACHE = fileURLToPath(new URL('../../../scripts/source-cache.mjs', import.meta.url));
let options: readonly string[] | undefined;

/**
 * Options of a Node.js that is to run a program of this package. Where the cache of sources is there it is
 * used: a program whose types are taken out at its start takes twice as long. Cost: one look at the disk.
 */
export function ownProgramOptions(): readonly string[] {
  options ??= ['--no-warnings', ...(existsSync(SOURCE_CACHE) ? ['--import', SOURCE_CACHE] : [])];
  return options;
}
