/* Names of types that several files declare, and files that see two declarations of one name. */
import { dirname } from 'node:path/posix';

/** A file with the names of its types, interfaces and classes, and the files that it imports. */
export type TypedFile = {
  readonly path: string;
  readonly names: readonly string[];
  readonly imports: readonly string[];
};

/** Names of the types, interfaces and classes that a source declares at its top. */
export function typeNamesOf(source: string): readonly string[] {
  const found = source.matchAll(
    /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) (\w+)/gm,
  );
  return [...found].map(([, name = '']) => name);
}

/** Names with the files that declare them, of those that more than one does. */
export function declaredTwice(files: readonly TypedFile[]): ReadonlyMap<string, readonly string[]> {
  const byName = new Map<string, string[]>();
  for (const { path, names } of files) {
    for (const name of new Set(names)) byName.set(name, [...(byName.get(name) ?? []), path]);
  }
  return new Map([...byName].filter(([, paths]) => paths.length > 1));
}

/**
 * Names of which one file sees two declarations: its own, those of what it imports, and of what the files of
 * its own folder import on the way. `name: path, path`, once for each pair. O(files × imports of a folder).
 */
export function seenTwice(files: readonly TypedFile[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const faults = new Set<string>();
  for (const file of files) {
    const declaredBy = new Map<string, string>();
    for (const path of pathsSeen(file, byPath)) {
      for (const name of byPath.get(path)?.names ?? []) {
        const other = declaredBy.get(name) ?? path;
        declaredBy.set(name, other);
        if (other !== path) faults.add(`${name}: ${[other, path].toSorted().join(', ')}`);
      }
    }
  }
  return [...faults].toSorted();
}

function pathsSeen(file: TypedFile, byPath: ReadonlyMap<string, TypedFile>): ReadonlySet<string> {
  const seen = new Set([file.path]);
  const folder = dirname(file.path);
  for (const path of seen) {
    if (dirname(path) !== folder) continue;
    for (const target of byPath.get(path)?.imports ?? []) seen.add(target);
  }
  return seen;
}
