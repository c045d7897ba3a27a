import { readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, resolve } from 'node:path';

/** What a program consists of. */
export type Reachable = {
  /** Absolute paths of files: of modules, and of what `new URL('…', import.meta.url)` names beside one. */
  readonly files: ReadonlySet<string>;
  /** Names of the packages that they import, at their start or later. */
  readonly packages: ReadonlySet<string>;
};

/** Forms in which a module names another one or a file beside it. Bundlers know the third as well. */
const NAMED = [
  /^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?['"]([^'"]+)['"]/gm,
  /\bimport\(['"]([^'"]+)['"]\)/g,
  /\bnew URL\(['"]([^'"]+)['"], import\.meta\.url\)/g,
  /\bcreateRequire\(import\.meta\.url\)\(['"]([^'"]+)['"]\)/g,
];

/**
 * Follows the imports of modules, sources or compiled, from `entries`, absolute paths. What is named and is no file there is left out, unless it is a
 * module: then this throws. Cost: each module is read once.
 */
export function reachableFrom(entries: readonly string[]): Reachable {
  const files = new Set<string>();
  const packages = new Set<string>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (files.has(path)) continue;
    files.add(path);
    if (!/\.[jt]s$/.test(path)) continue;
    for (const name of namesIn(readFileSync(path, 'utf8'))) {
      if (name.startsWith('.')) {
        const named = resolve(dirname(path), fileName(path, name));
        const isFile = statSync(named, { throwIfNoEntry: false })?.isFile() === true;
        if (isFile) waiting.push(named);
        else if (named.endsWith('.js'))
          throw new Error(`${path} names ${name}, which is not there`);
      } else if (!isBuiltin(name)) {
        packages.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
      }
    }
  }
  return { files, packages };
}

/** Declarations name modules by their sources. */
function fileName(importer: string, name: string): string {
  return importer.endsWith('.d.ts') ? name.replace(/\.ts$/, '.d.ts') : name;
}

function namesIn(text: string): readonly string[] {
  return NAMED.flatMap((form) => Array.from(text.matchAll(form), ([, name = '']) => name));
}
