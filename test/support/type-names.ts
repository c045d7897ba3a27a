/* Names of types that several files declare. */

/** A file with the names of its types, interfaces and classes. */
export type TypedFile = {
  readonly path: string;
  readonly names: readonly string[];
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
