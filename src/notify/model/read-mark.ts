/** What users mark as read. Each call that marks something is a mark of its user, numbered from 1 without gaps. */

/** Which notifications of a user: by id, or everything up to a sequence. */
export type MarkedPart = { readonly ids: readonly string[] } | { readonly upToSequence: number };

export type ReadMark = {
  readonly number: number;
  /** Undefined: more was marked than is known by now. */
  readonly which: MarkedPart | undefined;
};

/** What the live channel carried, up to `head`, and the user has not read. */
export type UnreadState = {
  /** The sequence of the user's newest notification, of whatever channel; 0 without any. */
  readonly head: number;
  readonly unreadCount: number;
  /** The newest mark; 0 without any. */
  readonly reads: number;
};

/** `oldest`: the lowest sequence that is kept; above the head when nothing is. */
export type StreamBounds = UnreadState & { readonly oldest: number };

/** What a call has marked. `reads` is 0 when it was nothing. */
export type Marked = UnreadState & { readonly markedCount: number };

/** Marks in their order; `upTo`: there are no others up to this one. The state is of the same moment. */
export type ReadNews = UnreadState & { readonly marks: readonly ReadMark[]; readonly upTo: number };
