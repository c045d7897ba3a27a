import { type Query, usersetText } from './evaluate.ts';
import type { RewriteDocument, Universe } from './universe.ts';

/**
 * Which tuples the answer to a query can depend on, whatever is stored and whichever model is in force:
 * what makes a write relevant for a read. Indexes in the universe.
 */
export class Dependencies {
  readonly #universe: Universe;
  readonly #known = new Map<string, ReadonlySet<number>>();

  constructor(universe: Universe) {
    this.#universe = universe;
  }

  of(query: Query): ReadonlySet<number> {
    const key = JSON.stringify(query);
    let found = this.#known.get(key);
    if (found === undefined) this.#known.set(key, (found = this.#find(query)));
    return found;
  }

  /** Whether one model can answer otherwise than another. */
  dependsOnModel(query: Query): boolean {
    const isDoc = (namespace: string): boolean => namespace === 'doc';
    if (query.kind === 'tuples' || query.kind === 'modes' || query.kind === 'named') return false;
    if (query.kind === 'batch') return query.items.some(([namespace]) => isDoc(namespace));
    return isDoc(query.namespace);
  }

  #find(query: Query): ReadonlySet<number> {
    const { tuples } = this.#universe;
    if (query.kind === 'modes') return new Set(query.updates.map(({ tuple }) => tuple));
    const found = new Set<number>();
    if (query.kind === 'tuples') {
      for (const [index, { namespace, object, relation, subject }] of tuples.entries()) {
        const user = 'user' in subject ? subject.user : '';
        const matches =
          ['', namespace].includes(query.namespace) &&
          ['', object].includes(query.object) &&
          ['', relation].includes(query.relation) &&
          ['', user].includes(query.user);
        if (matches) found.add(index);
      }
      return found;
    }
    const seen = new Set<string>();
    if (query.kind === 'batch') {
      for (const [namespace, object, relation, user] of query.items) {
        this.#walk(namespace, object, relation, user, found, new Set());
      }
    } else if (query.kind === 'list') {
      for (const { namespace, object } of tuples) {
        if (namespace !== query.namespace) continue;
        this.#walk(namespace, object, query.relation, query.user, found, seen);
      }
    } else {
      const isOfUser = query.kind === 'check' || query.kind === 'named';
      const user = isOfUser ? query.user : isExactSet(query) ? NOBODY : '';
      this.#walk(query.namespace, query.object, query.relation, user, found, seen);
      if (query.kind === 'set' && !query.isExact) this.#walk(...query.set, user, found, new Set());
    }
    return found;
  }

  /** `user` '' is any. */
  #walk(
    namespace: string,
    object: string,
    relation: string,
    user: string,
    found: Set<number>,
    seen: Set<string>,
  ): void {
    const key = usersetText(namespace, object, relation);
    if (seen.has(key)) return;
    seen.add(key);
    for (const model of this.#universe.models) {
      const document = model.namespaces[namespace]?.relations[relation] ?? {};
      for (const [tupleset, computed] of readsOf(document)) {
        if (tupleset === undefined) {
          this.#walk(namespace, object, computed ?? '', user, found, seen);
          continue;
        }
        this.#tuplesOf(namespace, object, tupleset || relation, (index) => {
          const { subject } = this.#universe.tuples[index] as Universe['tuples'][number];
          if ('set' in subject) {
            found.add(index);
            const [setNamespace, setObject, setRelation] = subject.set;
            const next = computed ?? setRelation;
            if (next !== '') this.#walk(setNamespace, setObject, next, user, found, seen);
          } else if (computed === undefined) {
            const isOther = 'user' in subject && user !== '' && subject.user !== user;
            if (!isOther) found.add(index);
          }
        });
      }
    }
  }

  #tuplesOf(
    namespace: string,
    object: string,
    relation: string,
    visit: (index: number) => void,
  ): void {
    for (const [index, tuple] of this.#universe.tuples.entries()) {
      const isOne =
        tuple.namespace === namespace && tuple.object === object && tuple.relation === relation;
      if (isOne) visit(index);
    }
  }
}

/** Whom no tuple names. */
const NOBODY = '#';

/** Then no tuple of a user can matter. */
function isExactSet(query: Query): boolean {
  return query.kind === 'set' && query.isExact;
}

/** What a rewrite reads: [undefined, relation] computed, ['', undefined] its own tuples, [tupleset, computed]. */
function readsOf(
  document: RewriteDocument,
): readonly (readonly [tupleset: string | undefined, computed: string | undefined])[] {
  if (document.computed !== undefined) return [[undefined, document.computed]];
  if (document.tuple_to_userset !== undefined) {
    return [[document.tuple_to_userset.tupleset, document.tuple_to_userset.computed]];
  }
  if (document.union !== undefined) return document.union.flatMap(readsOf);
  if (document.intersection !== undefined) return document.intersection.flatMap(readsOf);
  if (document.exclusion !== undefined) {
    return [...readsOf(document.exclusion.include), ...readsOf(document.exclusion.exclude)];
  }
  return [['', undefined]];
}
