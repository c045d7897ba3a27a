/** Makes a record for names of others: `__proto__` is a name like any, when it is assigned, too. */
export function emptyRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}
