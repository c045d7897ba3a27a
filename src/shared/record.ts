/** Makes a record for foreign names: `__proto__` is an ordinary name in it, also when assigned. */
export function emptyRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

/** Makes a record with a value for each of a closed set of keys. */
export function recordOf<K extends string, V>(
  keys: readonly K[],
  create: (key: K) => V,
): Record<K, V> {
  // Object.fromEntries loses the keys; every one of them is present.
  return Object.fromEntries(keys.map((key) => [key, create(key)])) as Record<K, V>;
}

/** Entries of what `recordOf` or a literal holds. Object.entries loses the type of the keys. */
export function entriesOf<K extends string, V>(record: Readonly<Record<K, V>>): [K, V][] {
  return Object.entries(record) as [K, V][];
}
