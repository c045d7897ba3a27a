/**
 * Glossary. A *relation tuple* says that a *subject* has a *relation* on an *object*
 * (`namespace:object_id#relation@subject`). A subject is a concrete user, a *userset*, the public *wildcard* or a
 * *typed wildcard*. A userset is `namespace:object_id#relation`; with an empty relation it is the object itself. The
 * public wildcard is every user; a typed wildcard (`namespace:*`) is every object of a namespace. A *shard* is one
 * (project, tenant); its *revision* counts committed writes. A worker's *watermark* is the revision that it has
 * applied. A *rewrite* is the rule of a relation in a namespace *model*. A *consistency token* names a shard, its epoch
 * and a revision.
 */
export type Subject =
  | { readonly kind: 'user'; readonly userId: string }
  | {
      readonly kind: 'set';
      readonly namespace: string;
      readonly objectId: string;
      /** '' denotes the object itself. */
      readonly relation: string;
    }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'wildcardOf'; readonly namespace: string };

/** Identity of a tuple inside its shard. */
export type TupleKey = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject;
};

/** Data of a tuple besides its identity; writing the tuple again replaces all of it. */
export type TuplePayload = {
  /** Time of expiry in microseconds since the epoch; undefined never expires. Expired means now >= expiresAtUs. */
  readonly expiresAtUs?: bigint | undefined;
  readonly conditionName?: string | undefined;
  /** Canonical JSON text (RFC 8785) of an object. Present only with a conditionName. */
  readonly conditionParams?: string | undefined;
};

export type RelationTuple = TupleKey & TuplePayload;

/** One effective change of a shard. Lists of changes are in the order of their commits. */
export type TupleChange = { readonly op: 'insert' | 'delete'; readonly tuple: RelationTuple };

/** Namespace column of wildcards, a name that no tuple can use. */
export const WILDCARD_NAMESPACE = '*';

/**
 * A subject as three text columns: user ('', id, ''), wildcard ('*', '', ''), typed wildcard ('*', ns, ''), set (ns,
 * id, rel). `*` is a legal id, so the namespace identifies wildcards.
 */
export type SubjectColumns = readonly [namespace: string, id: string, relation: string];

/** Columns of a subject, as the database and packed changes store it. */
export function subjectToColumns(subject: Subject): SubjectColumns {
  switch (subject.kind) {
    case 'user':
      return ['', subject.userId, ''];
    case 'wildcard':
      return [WILDCARD_NAMESPACE, '', ''];
    case 'wildcardOf':
      return [WILDCARD_NAMESPACE, subject.namespace, ''];
    case 'set':
      return [subject.namespace, subject.objectId, subject.relation];
  }
}

/** Identifies a tuple inside its shard. Equal only for equal keys, since no part can contain a NUL. */
export function tupleIdentity({ namespace, objectId, relation, subject }: TupleKey): string {
  return `${namespace}\0${objectId}\0${relation}\0${subjectToColumns(subject).join('\0')}`;
}

/** Inverse of `subjectToColumns`. Trusts its input: it comes from our own tables. */
export function subjectFromColumns(namespace: string, id: string, relation: string): Subject {
  if (namespace === '') return { kind: 'user', userId: id };
  if (namespace === WILDCARD_NAMESPACE) {
    return id === '' ? { kind: 'wildcard' } : { kind: 'wildcardOf', namespace: id };
  }
  return { kind: 'set', namespace, objectId: id, relation };
}

/** A (project, tenant): the unit of isolation, sequence and ownership by a worker. */
export type ShardKey = { readonly projectId: string; readonly tenantId: string };

/** Arguments of Check. */
export type CheckQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject; // never the wildcard
  /** JSON text of the context object; '' when absent. */
  readonly contextJson: string;
  /**
   * Whether a userset holds only what is granted to it itself, not what its members hold (docs/queries.md). Absent
   * means both count.
   */
  readonly isExact?: boolean | undefined;
};

/**
 * Formats a subject: `user:alice`, `user:*` for every user, `group:eng#member`, `folder:1` for the object itself,
 * `group:*` for every object of a namespace. An object whose id is `*` is `group:*#`, so that a text has one meaning.
 */
export function subjectText(subject: Subject): string {
  switch (subject.kind) {
    case 'user':
      return `user:${subject.userId}`;
    case 'wildcard':
      return 'user:*';
    case 'wildcardOf':
      return `${subject.namespace}:*`;
    case 'set': {
      const { namespace, objectId, relation } = subject;
      if (relation !== '') return `${namespace}:${objectId}#${relation}`;
      return objectId === '*' ? `${namespace}:*#` : `${namespace}:${objectId}`;
    }
  }
}
