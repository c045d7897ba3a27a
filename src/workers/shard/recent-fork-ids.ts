const REMEMBERED = 32;

/**
 * The fork ids of the last revisions that one index took in, by which two histories are distinguished where the
 * index has gone on meanwhile. O(1); the first one lies in the object itself, since most shards are read and not written.
 */
export class RecentForkIds {
  #firstRevision = -1;
  #firstForkId = '';
  #revisions: Float64Array | null = null;
  #forkIds: string[] | null = null;

  add(revision: number, forkId: string): void {
    if (this.#revisions === null || this.#forkIds === null) {
      if (this.#firstRevision < 0 || this.#firstRevision === revision) {
        this.#firstRevision = revision;
        this.#firstForkId = forkId;
        return;
      }
      this.#revisions = new Float64Array(REMEMBERED).fill(-1);
      this.#forkIds = [];
      this.#revisions[this.#firstRevision % REMEMBERED] = this.#firstRevision;
      this.#forkIds[this.#firstRevision % REMEMBERED] = this.#firstForkId;
    }
    this.#revisions[revision % REMEMBERED] = revision;
    this.#forkIds[revision % REMEMBERED] = forkId;
  }

  /** Whether `revision` is remembered with another fork id: that is another history. '' is no fork id. */
  contradicts(revision: number, forkId: string): boolean {
    if (forkId === '') return false;
    if (this.#revisions === null || this.#forkIds === null) {
      return this.#firstRevision === revision && this.#firstForkId !== forkId;
    }
    return (
      this.#revisions[revision % REMEMBERED] === revision &&
      this.#forkIds[revision % REMEMBERED] !== forkId
    );
  }

  clear(): void {
    this.#firstRevision = -1;
    this.#firstForkId = '';
    this.#revisions = null;
    this.#forkIds = null;
  }
}
