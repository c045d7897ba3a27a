/** Requested part of a list. */
export type ListPage = {
  /** Returns only ids after this one, in UTF-8 byte order; '' starts at the first. */
  readonly after: string;
  /** Maximum number of ids; Infinity for all. */
  readonly idsMax: number;
};

/**
 * Subjects of one kind that hold a relation. These are users or, if requested, objects of a namespace, or objects whose
 * usersets hold it. The ids of a page are the next ones of all its lists together.
 */
export type SubjectPage = {
  /** Users who hold it. Complete without `wildcard`; with it, only users whom a grant names. Sorted. */
  readonly userIds: readonly string[];
  /** Whether everyone holds it who is in none of the lists. */
  readonly wildcard: boolean;
  /** Users who do not hold it, unlike everyone who is in none of the lists. Sorted. */
  readonly excludedUserIds: readonly string[];
  /** Users for whom it could not be decided, in the same sense as `userIds`. Sorted. */
  readonly undecidedUserIds: readonly string[];
  /** Whether it could not be decided for everyone who is in none of the lists. */
  readonly isWildcardUndecided: boolean;
  /** Greatest id of the page, if more ids follow; '' after the last. */
  readonly next: string;
};
