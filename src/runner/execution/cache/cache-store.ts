/** Caches of the project. */
export interface CacheStore {
  readonly dir: string;
}
