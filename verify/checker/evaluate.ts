import type { Update } from './history.ts';
import { refusalByModes } from './modes.ts';
import {
  type ModelDocument,
  type RewriteDocument,
  type TupleSubject,
  type Universe,
  USERS,
} from './universe.ts';

type SetQuery = Extract<Query, { readonly kind: 'set' }>;

/** Who is looked for: a user, or the text of a userset or object. */
type Target = { readonly user: string } | { readonly set: string };

/** What a read asks; all in one shard. */
export type Query =
  | {
      readonly kind: 'check';
      readonly namespace: string;
      readonly object: string;
      readonly relation: string;
      readonly user: string;
    }
  /** Of a userset, or of an object itself: exactly, or with what its members hold. No wildcard is in it. */
  | {
      readonly kind: 'set';
      readonly namespace: string;
      readonly object: string;
      readonly relation: string;
      readonly set: readonly [namespace: string, object: string, relation: string];
      readonly isExact: boolean;
    }
  /** Under a version of the model that the query names, whichever is in force. */
  | {
      readonly kind: 'named';
      readonly model: number;
      readonly namespace: string;
      readonly object: string;
      readonly relation: string;
      readonly user: string;
    }
  | { readonly kind: 'batch'; readonly items: readonly CheckItem[] }
  | {
      readonly kind: 'list';
      readonly namespace: string;
      readonly relation: string;
      readonly user: string;
    }
  | {
      readonly kind: 'expand';
      readonly namespace: string;
      readonly object: string;
      readonly relation: string;
    }
  /** '' is any. */
  | {
      readonly kind: 'tuples';
      readonly namespace: string;
      readonly object: string;
      readonly relation: string;
      readonly user: string;
    }
  /** By which reason a write is refused for what its updates ask: a write that was refused so has read. */
  | { readonly kind: 'modes'; readonly updates: readonly Update[] };

export type CheckItem = readonly [
  namespace: string,
  object: string,
  relation: string,
  user: string,
];

/**
 * What is stored of each tuple of the universe: 0 nothing, 1 for good, else until that time
 * (milliseconds since the epoch).
 */
export type Stored = readonly number[];

/** A node of Expand in short: what it is, the userset that it stands for, and what lies below. */
export type ShortTree = {
  readonly of?: string | undefined;
  readonly users?: readonly string[] | undefined;
  readonly sets?: readonly string[] | undefined;
  readonly everybody?: true | undefined;
  readonly op?: 'union' | 'intersection' | 'exclusion' | undefined;
  readonly children?: readonly ShortTree[] | undefined;
};

/**
 * The rules of decisions once more, as plainly as can be, for the models of a run: no exclusion lies on a
 * cycle there, nothing is conditional, and no walk reaches a bound. Answers are texts that are equal
 * exactly if the answers are.
 */
export class Evaluator {
  readonly #universe: Universe;
  readonly #byUserset = new Map<string, number[]>();

  constructor(universe: Universe) {
    this.#universe = universe;
    for (const [index, { namespace, object, relation }] of universe.tuples.entries()) {
      const key = usersetText(namespace, object, relation);
      const known = this.#byUserset.get(key);
      if (known === undefined) this.#byUserset.set(key, [index]);
      else known.push(index);
    }
  }

  /** The answer over `stored` with model number `model` at `nowMs` of the wall clock. */
  answer(stored: Stored, model: number, query: Query, nowMs: number): string {
    const asked = query.kind === 'named' ? query.model : model;
    const document = this.#universe.models[asked];
    if (document === undefined) throw new Error(`there is no model ${asked}`);
    const view = new View(this.#universe, this.#byUserset, stored, document, nowMs);
    switch (query.kind) {
      case 'check':
      case 'named':
        return view.isHeld(query.namespace, query.object, query.relation, query.user) ? '1' : '0';
      case 'set':
        return view.isHeldBySet(query) ? '1' : '0';
      case 'batch':
        return query.items.map((item) => (view.isHeld(...item) ? '1' : '0')).join('');
      case 'list':
        return view.list(query.namespace, query.relation, query.user).join(',');
      case 'expand':
        return JSON.stringify(view.expand(query.namespace, query.object, query.relation, []));
      case 'tuples':
        return tuplesText(this.#matching(stored, query));
      case 'modes':
        return refusalByModes(stored, query.updates);
    }
  }

  /** Stored tuples that match, expired ones too. */
  #matching(
    stored: Stored,
    query: Extract<Query, { kind: 'tuples' }>,
  ): readonly (readonly [number, number])[] {
    return this.#universe.tuples.flatMap((tuple, index): (readonly [number, number])[] => {
      const value = stored[index] ?? 0;
      if (value === 0) return [];
      if (query.namespace !== '' && tuple.namespace !== query.namespace) return [];
      if (query.object !== '' && tuple.object !== query.object) return [];
      if (query.relation !== '' && tuple.relation !== query.relation) return [];
      const user = 'user' in tuple.subject ? tuple.subject.user : '';
      return query.user !== '' && user !== query.user ? [] : [[index, value]];
    });
  }
}

/** The text of an answer of ReadRelationTuples: index in the universe, and expiry (1 is none). */
export function tuplesText(found: readonly (readonly [index: number, value: number])[]): string {
  return found
    .toSorted(([a], [b]) => a - b)
    .map(([index, value]) => (value === 1 ? String(index) : `${index}@${value}`))
    .join(',');
}

/** `namespace:object#relation`; without the `#` for an object itself. */
export function usersetText(namespace: string, object: string, relation: string): string {
  return relation === '' ? `${namespace}:${object}` : `${namespace}:${object}#${relation}`;
}

class View {
  readonly #universe: Universe;
  readonly #byUserset: ReadonlyMap<string, readonly number[]>;
  readonly #stored: Stored;
  readonly #model: ModelDocument;
  readonly #nowMs: number;

  constructor(
    universe: Universe,
    byUserset: ReadonlyMap<string, readonly number[]>,
    stored: Stored,
    model: ModelDocument,
    nowMs: number,
  ) {
    this.#universe = universe;
    this.#byUserset = byUserset;
    this.#stored = stored;
    this.#model = model;
    this.#nowMs = nowMs;
  }

  isHeld(namespace: string, object: string, relation: string, user: string): boolean {
    return this.#holds(namespace, object, relation, { user }, []);
  }

  isHeldBySet({ namespace, object, relation, set, isExact }: SetQuery): boolean {
    if (this.#holds(namespace, object, relation, { set: usersetText(...set) }, [])) return true;
    if (isExact || set[2] === '') return false;
    return USERS.some(
      (user) => this.isHeld(...set, user) && this.isHeld(namespace, object, relation, user),
    );
  }

  list(namespace: string, relation: string, user: string): readonly string[] {
    const { tuples } = this.#universe;
    const objects = tuples.filter((tuple) => tuple.namespace === namespace);
    return [...new Set(objects.map(({ object }) => object))]
      .filter((object) => this.isHeld(namespace, object, relation, user))
      .sort();
  }

  /** `path` is what this question came through: asked again there, it adds nothing. */
  #holds(
    namespace: string,
    object: string,
    relation: string,
    target: Target,
    path: readonly string[],
  ): boolean {
    const key = usersetText(namespace, object, relation);
    if ('set' in target && target.set === key) return true;
    if (path.includes(key)) return false;
    const below = [...path, key];
    const holds = (document: RewriteDocument): boolean => {
      if (document.computed !== undefined) {
        return this.#holds(namespace, object, document.computed, target, below);
      }
      if (document.tuple_to_userset !== undefined) {
        const { tupleset, computed } = document.tuple_to_userset;
        return this.#subjects(namespace, object, tupleset).some(
          (subject) =>
            'set' in subject &&
            this.#holds(subject.set[0], subject.set[1], computed, target, below),
        );
      }
      if (document.union !== undefined) return document.union.some(holds);
      if (document.intersection !== undefined) return document.intersection.every(holds);
      if (document.exclusion !== undefined) {
        return holds(document.exclusion.include) && !holds(document.exclusion.exclude);
      }
      return this.#subjects(namespace, object, relation).some((subject) => {
        if ('user' in subject) return 'user' in target && subject.user === target.user;
        // It stands for users alone; what excludes has none in these models.
        if ('wildcard' in subject) return 'user' in target;
        if ('set' in target && usersetText(...subject.set) === target.set) return true;
        return subject.set[2] !== '' && this.#holds(...subject.set, target, below);
      });
    };
    return holds(this.#rewriteOf(namespace, relation));
  }

  expand(namespace: string, object: string, relation: string, path: readonly string[]): ShortTree {
    const of = usersetText(namespace, object, relation);
    if (path.includes(of)) return { of, users: [], sets: [of] };
    const below = [...path, of];
    const build = (document: RewriteDocument): ShortTree => {
      if (document.computed !== undefined) {
        return this.expand(namespace, object, document.computed, below);
      }
      if (document.tuple_to_userset !== undefined) {
        const { tupleset, computed } = document.tuple_to_userset;
        const sets = this.#subjects(namespace, object, tupleset).flatMap((subject) =>
          'set' in subject ? [subject.set] : [],
        );
        const byText = sets.toSorted((a, b) => (`${a[0]}:${a[1]}` < `${b[0]}:${b[1]}` ? -1 : 1));
        const children = byText.map(([ns, id]) => this.expand(ns, id, computed, below));
        return { op: 'union', children };
      }
      if (document.union !== undefined) return { op: 'union', children: document.union.map(build) };
      if (document.intersection !== undefined) {
        return { op: 'intersection', children: document.intersection.map(build) };
      }
      if (document.exclusion !== undefined) {
        const { include, exclude } = document.exclusion;
        return { op: 'exclusion', children: [build(include), build(exclude)] };
      }
      return this.#leaf(namespace, object, relation);
    };
    const document = this.#rewriteOf(namespace, relation);
    // The node stands for the relation asked for, the one below it for the computed one.
    if (document.computed !== undefined) return { of, op: 'union', children: [build(document)] };
    return { of, ...build(document) };
  }

  #leaf(namespace: string, object: string, relation: string): ShortTree {
    const subjects = this.#subjects(namespace, object, relation);
    const users = subjects.flatMap((one) => ('user' in one ? [one.user] : [])).sort();
    const sets = subjects.flatMap((one) => ('set' in one ? [usersetText(...one.set)] : [])).sort();
    const everybody = subjects.some((one) => 'wildcard' in one);
    return { users, sets, ...(everybody ? { everybody } : {}) };
  }

  /** Subjects of what is stored and not expired. */
  #subjects(namespace: string, object: string, relation: string): readonly TupleSubject[] {
    const subjects: TupleSubject[] = [];
    for (const index of this.#byUserset.get(usersetText(namespace, object, relation)) ?? []) {
      const value = this.#stored[index] ?? 0;
      const tuple = this.#universe.tuples[index];
      if (tuple !== undefined && (value === 1 || value > this.#nowMs)) subjects.push(tuple.subject);
    }
    return subjects;
  }

  #rewriteOf(namespace: string, relation: string): RewriteDocument {
    return this.#model.namespaces[namespace]?.relations[relation] ?? {};
  }
}
