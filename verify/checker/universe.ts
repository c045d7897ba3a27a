/**
 * The small world that a run reads and writes: which tuples there can be, and between which models a
 * project changes. Small, so that operations meet: a fault shows only where a read and a write touch
 * the same tuples at the same time.
 */

/** Who a tuple grants to: a user, everybody ('*'), or a userset `namespace:object#relation`. */
export type TupleSubject =
  | { readonly user: string }
  | { readonly wildcard: true }
  | { readonly set: readonly [namespace: string, object: string, relation: string] };

/** Identity of a tuple that may be written, without its tenant. */
export type UniverseTuple = {
  readonly namespace: string;
  readonly object: string;
  readonly relation: string;
  readonly subject: TupleSubject;
};

/** A rewrite as `model_json` has it. */
export type RewriteDocument = {
  readonly this?: object;
  readonly computed?: string;
  readonly tuple_to_userset?: { readonly tupleset: string; readonly computed: string };
  readonly union?: readonly RewriteDocument[];
  readonly intersection?: readonly RewriteDocument[];
  readonly exclusion?: { readonly include: RewriteDocument; readonly exclude: RewriteDocument };
};

/** A model as `model_json` has it. */
export type ModelDocument = {
  readonly namespaces: Readonly<
    Record<string, { readonly relations: Readonly<Record<string, RewriteDocument>> }>
  >;
};

export type Universe = {
  readonly tuples: readonly UniverseTuple[];
  readonly models: readonly ModelDocument[];
};

export const USERS = ['u0', 'u1', 'u2', 'u3'] as const;
export const DOCS = ['d0', 'd1', 'd2'] as const;
export const FOLDERS = ['f0', 'f1'] as const;
export const GROUPS = ['g0', 'g1'] as const;
/** A write turns some of these, so that two states in a row never look the same. */
export const MARKS = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'] as const;
/** Whoever holds a mark; deprovisioned by nobody. */
export const MARKER = 'marker';
export const LEASES = ['l0', 'l1'] as const;

const THIS: RewriteDocument = {};
const VIEWERS: readonly RewriteDocument[] = [
  THIS,
  { computed: 'editor' },
  { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
];

function modelOf(viewer: RewriteDocument): ModelDocument {
  return {
    namespaces: {
      doc: { relations: { viewer, editor: THIS, banned: THIS, parent: THIS } },
      folder: { relations: { viewer: THIS } },
      group: { relations: { member: THIS } },
      mark: { relations: { at: THIS, seen: { computed: 'at' } } },
    },
  };
}

/** Answers differ between any two of these for most states of the tuples. */
export const MODELS: readonly ModelDocument[] = [
  modelOf({ union: VIEWERS }),
  modelOf({ union: [THIS, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }] }),
  modelOf({ exclusion: { include: { union: VIEWERS }, exclude: { computed: 'banned' } } }),
  modelOf({ intersection: [{ union: VIEWERS }, { computed: 'editor' }] }),
];

/** All tuples and models of a run. */
export function createUniverse(): Universe {
  const tuples: UniverseTuple[] = [];
  const add = (namespace: string, object: string, relation: string, subject: TupleSubject): void =>
    void tuples.push({ namespace, object, relation, subject });
  const memberOf = (group: string): TupleSubject => ({ set: ['group', group, 'member'] });
  for (const mark of MARKS) add('mark', mark, 'at', { user: MARKER });
  for (const [index, doc] of DOCS.entries()) {
    for (const user of USERS) add('doc', doc, 'viewer', { user });
    for (const user of USERS.slice(0, 2)) add('doc', doc, 'editor', { user });
    for (const user of USERS.slice(1, 3)) add('doc', doc, 'banned', { user });
    for (const group of GROUPS) add('doc', doc, 'viewer', memberOf(group));
    add('doc', doc, 'parent', { set: ['folder', FOLDERS[index % 2] ?? 'f0', ''] });
  }
  add('doc', 'd0', 'viewer', { wildcard: true });
  for (const folder of FOLDERS) {
    for (const user of USERS.slice(2)) add('folder', folder, 'viewer', { user });
    add('folder', folder, 'viewer', memberOf('g0'));
  }
  for (const group of GROUPS) {
    for (const user of USERS) add('group', group, 'member', { user });
  }
  add('group', 'g0', 'member', memberOf('g1'));
  for (const lease of LEASES) {
    for (const user of USERS.slice(0, 2)) add('lease', lease, 'held', { user });
  }
  return { tuples, models: MODELS };
}
