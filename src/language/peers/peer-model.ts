/**
 * The common form of the models of OpenFGA and SpiceDB, which their readers pass to the one
 * importer. Names are the peer's own.
 */

/** Place of something in the imported files, in words that follow "in". */
export type Place = string;

/** A remark about something, with its place. */
export type PeerRemark = { readonly place: Place; readonly text: string };

export type PeerModel = {
  readonly types: readonly PeerType[];
  readonly conditions: readonly PeerCondition[];
  /** Parts that the reader could not express: the model is refused. */
  readonly problems: readonly PeerRemark[];
  /** Parts whose form differs here, with the same meaning. */
  readonly notes: readonly PeerRemark[];
};

export type PeerType = {
  readonly name: string;
  readonly place: Place;
  readonly relations: readonly PeerRelation[];
};

export type PeerRelation = {
  readonly name: string;
  readonly place: Place;
  readonly rule: PeerRule;
  /** Subjects that may be stored on it; empty for a relation that stores nothing. */
  readonly subjects: readonly PeerSubjectType[];
};

export type PeerRule =
  /** No subject. */
  | { readonly op: 'nil' }
  | { readonly op: 'this' }
  | { readonly op: 'computed'; readonly relation: string }
  | { readonly op: 'walk'; readonly tupleset: string; readonly computed: string }
  | { readonly op: 'union' | 'intersection'; readonly children: readonly PeerRule[] }
  | { readonly op: 'exclusion'; readonly include: PeerRule; readonly exclude: PeerRule };

export type PeerSubjectType = {
  readonly type: string;
  /** '' is the object itself, '*' every object of the type. */
  readonly relation: string;
  readonly condition: string | undefined;
  readonly expires: boolean;
};

export type PeerCondition = {
  readonly name: string;
  readonly place: Place;
  /** Types in the notation of both peers: `list<string>`. */
  readonly parameters: readonly (readonly [name: string, type: string])[];
  readonly expression: string;
};

/**
 * An object or a subject. `relation` is '' for the object itself; with that, the `id` '*' is the
 * wildcard.
 */
export type PeerReference = {
  readonly type: string;
  readonly id: string;
  readonly relation: string;
};

export type PeerTuple = {
  readonly object: PeerReference;
  readonly relation: string;
  readonly subject: PeerReference;
  readonly condition: string | undefined;
  /** The condition's values that the tuple holds. */
  readonly context: unknown;
  /** RFC 3339. */
  readonly expiresAt: string | undefined;
  readonly place: Place;
};

/** A check with its expected answer. */
export type PeerCheck = {
  readonly object: PeerReference;
  readonly relation: string;
  readonly subject: PeerReference;
  readonly context: unknown;
  readonly isAllowed: boolean;
  readonly place: Place;
};

/** A list of objects with its expected content: all ids, in any order. */
export type PeerList = {
  readonly type: string;
  readonly relation: string;
  readonly subject: PeerReference;
  readonly context: unknown;
  readonly ids: readonly string[];
  readonly place: Place;
};

export type PeerTest = {
  readonly name: string;
  readonly tuples: readonly PeerTuple[];
  readonly checks: readonly PeerCheck[];
  readonly lists: readonly PeerList[];
};

/** Tuples and tests of a model, from a peer's file. */
export type PeerSuite = {
  readonly tuples: readonly PeerTuple[];
  readonly tests: readonly PeerTest[];
  /** Assertions that cannot be made here, each with the reason. */
  readonly unsupported: readonly PeerRemark[];
};
