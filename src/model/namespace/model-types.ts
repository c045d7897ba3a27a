import { SEAT_NAMESPACE } from '../names.ts';
import type { NamespaceModel, Rewrite, SubjectType } from './model-shape.ts';

/** Number of lookups after which the search stops: more than any written model needs. */
const LOOKUPS_MAX = 1_000_000;

/**
 * Kinds of subjects as a set of bits: users, the wildcard, typed wildcards, and for each namespace its objects and its
 * usersets. A userset counts as itself and as the subjects that it holds.
 */
export type Kinds = bigint;

/** Empty set: no subject can hold the relation. */
export const NO_KINDS: Kinds = 0n;
const USER: Kinds = 1n;
const WILDCARD: Kinds = 2n;
/** Any typed wildcard. The objects of its namespace have a separate bit. */
const TYPED_WILDCARD: Kinds = 4n;
const FIRST_OBJECT_BIT = 3;

/**
 * Kinds of subjects that can hold each relation of a model, derived from the subjects that relations admit. A relation
 * without declared subjects can hold any kind. Never too few: an empty set is certain, a large one is not.
 */
export class ModelTypes {
  readonly #model: NamespaceModel;
  readonly #bits = new Map<string, number>();
  readonly #any: Kinds;
  readonly #kinds = new Map<string, Kinds>();
  readonly #users = new Map<string, Set<string>>();
  #asking = '';
  #lookups = 0;

  /** Computes all kinds. Cost: O(model) for most models, and bounded for all. */
  constructor(model: NamespaceModel) {
    this.#model = model;
    for (const name of [SEAT_NAMESPACE, ...model.namespaces.keys()]) {
      this.#bits.set(name, FIRST_OBJECT_BIT + 2 * this.#bits.size);
    }
    this.#any = (1n << BigInt(FIRST_OBJECT_BIT + 2 * this.#bits.size)) - 1n;
    this.#solve();
  }

  /** Whether the result is complete. False if the model is too large. */
  get isComplete(): boolean {
    return this.#lookups <= LOOKUPS_MAX;
  }

  /** Kinds of subjects that a rewrite of a namespace's relation can hold. */
  ofRewrite(namespace: string, relation: string, rewrite: Rewrite): Kinds {
    switch (rewrite.op) {
      case 'this':
        return this.#ofStored(namespace, relation);
      case 'computed':
        return this.#ofRelation(namespace, rewrite.relation);
      case 'tupleToUserset':
        return this.#ofWalk(namespace, rewrite.tupleset, rewrite.computed);
      case 'union':
        return rewrite.children.reduce(
          (all, child) => all | this.ofRewrite(namespace, relation, child),
          NO_KINDS,
        );
      case 'intersection':
        return rewrite.children.reduce(
          (common, child) => common & this.ofRewrite(namespace, relation, child),
          this.#any,
        );
      case 'exclusion':
        return this.ofRewrite(namespace, relation, rewrite.include);
    }
  }

  /** Kinds of subjects that hold a relation through a tuple with such a subject. */
  ofType(type: SubjectType): Kinds {
    this.#lookups++;
    const bit = this.#bits.get(type.namespace);
    switch (type.kind) {
      case 'user':
        return USER;
      case 'wildcard':
        return USER | WILDCARD;
      case 'object':
        return bit === undefined ? this.#any : 1n << BigInt(bit);
      case 'wildcardOf':
        return bit === undefined ? this.#any : TYPED_WILDCARD | (1n << BigInt(bit));
      case 'userset':
        if (bit === undefined) return this.#any;
        return (1n << BigInt(bit + 1)) | this.#ofRelation(type.namespace, type.relation);
    }
  }

  #ofStored(namespace: string, relation: string): Kinds {
    const types = this.#model.subjects.get(namespace)?.get(relation);
    if (types === undefined) return this.#any;
    return types.reduce((all, type) => all | this.ofType(type), NO_KINDS);
  }

  #ofWalk(namespace: string, tupleset: string, computed: string): Kinds {
    const types = this.#model.subjects.get(namespace)?.get(tupleset);
    if (types === undefined) return this.#any;
    let all = NO_KINDS;
    for (const type of types) {
      // A walk follows no wildcards.
      const isFollowed = type.kind === 'object' || type.kind === 'userset';
      if (isFollowed) all |= this.#ofRelation(type.namespace, computed);
    }
    return all;
  }

  #ofRelation(namespace: string, relation: string): Kinds {
    this.#lookups++;
    if (namespace === SEAT_NAMESPACE) return USER;
    const key = keyOf(namespace, relation);
    const kinds = this.#kinds.get(key);
    // An undeclared relation has stored tuples of any kind.
    if (kinds === undefined) return this.#any;
    if (this.#asking !== '') this.#users.get(key)?.add(this.#asking);
    return kinds;
  }

  /** Computes the least solution: a relation is evaluated again when one that it reads has grown. */
  #solve(): void {
    const relations = new Map<string, readonly [string, string, Rewrite]>();
    for (const [namespace, rewrites] of this.#model.namespaces) {
      for (const [relation, rewrite] of rewrites) {
        const key = keyOf(namespace, relation);
        relations.set(key, [namespace, relation, rewrite]);
        this.#kinds.set(key, NO_KINDS);
        this.#users.set(key, new Set());
      }
    }
    const waiting = new Set(relations.keys());
    for (const key of waiting) {
      // The loop also visits what is added to the set meanwhile; an entry that is added again comes last.
      waiting.delete(key);
      if (!this.isComplete) break;
      this.#asking = key;
      const [namespace, relation, rewrite] = relations.get(key) as [string, string, Rewrite];
      const kinds = this.ofRewrite(namespace, relation, rewrite);
      if (kinds === this.#kinds.get(key)) continue;
      this.#kinds.set(key, kinds);
      for (const user of this.#users.get(key) as Set<string>) waiting.add(user);
    }
    this.#asking = '';
  }
}

/** Whether a subject that `include` can hold can also be held by `exclude`. */
export function canExclude(include: Kinds, exclude: Kinds): boolean {
  // In `exclude`, the wildcard also covers subjects that are no users, and a typed one covers every userset.
  if ((exclude & WILDCARD) !== 0n) return include !== NO_KINDS;
  if ((exclude & TYPED_WILDCARD) !== 0n && holdsUsersets(include)) return true;
  return (include & exclude & ~TYPED_WILDCARD) !== NO_KINDS;
}

/** Whether a set has usersets. Bits of objects and usersets alternate. */
function holdsUsersets(kinds: Kinds): boolean {
  for (let rest = kinds >> BigInt(FIRST_OBJECT_BIT + 1); rest !== 0n; rest >>= 2n) {
    if ((rest & 1n) !== 0n) return true;
  }
  return false;
}

function keyOf(namespace: string, relation: string): string {
  return `${namespace}#${relation}`;
}
