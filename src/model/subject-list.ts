/** Bounds of a page of a list. */
export type ListPage = {
  /** Only ids after this one, in UTF-8 byte order; '' is from the first on. */
  readonly after: string;
  /** At most so many ids; Infinity is all. */
  readonly idsMax: number;
};

/**
 * Holders of a relation, of one kind: users, objects of a namespace, or objects whose usersets hold it. A
 * page has the next ids of all its lists together.
 */
export type SubjectPage = {
  /** Users who hold it: all of them, or with `wildcard` those whom a grant names. Sorted. */
  readonly userIds: readonly string[];
  /** Whether everybody holds it who is in none of the lists. */
  readonly wildcard: boolean;
  /** Users who do not hold it, unlike everybody who is in none of the lists. Sorted. */
  readonly excludedUserIds: readonly string[];
  /** Users for whom it could not be decided, as of `userIds`. Sorted. */
  readonly undecidedUserIds: readonly string[];
  /** Whether it could not be decided for everybody who is in none of the lists. */
  readonly isWildcardUndecided: boolean;
  /** The greatest id of a page after which others follow; '' after the last. */
  readonly next: string;
};
