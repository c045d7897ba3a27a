import type { ExpandTree, UsersetRef } from '../../src/model/expand-tree.ts';
import type { Rewrite } from '../../src/model/namespace/model-shape.ts';
import type { NamespaceModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';

/** A tuple with what its qualifier is worth in the request at hand; absent ones are left out. */
export type WeighedTuple = { readonly tuple: RelationTuple; readonly weight: 'true' | 'undecided' };
export type ReferenceValue = 'true' | 'cut' | 'false';
export type ReferenceTarget =
  | { readonly kind: 'user'; readonly userId: string }
  /** `isExact`: no wildcard holds it but that of its own namespace, an object itself. */
  | { readonly kind: 'set'; readonly ref: UsersetRef; readonly isExact?: boolean };

/** A rule to evaluate: a whole userset, or the exclude side of one of its exclusions. */
type Rule = { readonly ref: UsersetRef; readonly rewrite: Rewrite; readonly isExcluding: boolean };
/** How a rule reads others. */
type Reading = {
  readonly target: ReferenceTarget;
  readonly holds: (key: string) => ReferenceValue;
  readonly isExcluded: (key: string) => ReferenceValue;
  readonly undecided: ReferenceValue;
};

const THIS: Rewrite = { op: 'this' };

/**
 * The rules of the contract in their most obvious form, for small worlds: no order, no sharing, no
 * shortcut. Values are those of the well-founded model, by alternating fixpoints over every
 * (object, relation) there is; depth is explicit, by evaluating the whole world once per level.
 */
export class ReferenceEvaluator {
  readonly #model: NamespaceModel;
  /** By object and relation: to look through all for each question took most of the time. */
  readonly #tuples: ReadonlyMap<string, WeighedTuple[]>;
  readonly #rules = new Map<string, Rule>();

  /** `refs`: every userset that can matter, so at least all of the tuples' objects × relations. */
  constructor(model: NamespaceModel, tuples: readonly WeighedTuple[], refs: readonly UsersetRef[]) {
    this.#model = model;
    this.#tuples = Map.groupBy(tuples, ({ tuple }) => keyOf(tuple, false));
    for (const ref of refs) {
      for (const isExcluding of [false, true])
        this.#addRule(keyOf(ref, isExcluding), ref, this.#rewriteOf(ref), isExcluding);
    }
  }

  #addRule(key: string, ref: UsersetRef, rewrite: Rewrite, isExcluding: boolean): void {
    this.#rules.set(key, { ref, rewrite, isExcluding });
    const visit = (part: Rewrite): void => {
      if (part.op === 'union' || part.op === 'intersection') part.children.forEach(visit);
      if (part.op !== 'exclusion') return;
      visit(part.include);
      this.#addRule(excludeKey(key, part), ref, part.exclude, true);
    };
    visit(rewrite);
  }

  /** Value of every userset for a target, without a depth bound. */
  values(target: ReferenceTarget): Map<string, ReferenceValue> {
    let under = new Set<string>();
    let over = new Set(this.#rules.keys());
    for (;;) {
      const nextOver = this.#least(target, 'true', under);
      const nextUnder = this.#least(target, 'false', nextOver);
      const isStable = nextUnder.size === under.size && nextOver.size === over.size;
      [under, over] = [nextUnder, nextOver];
      if (isStable) break;
    }
    const values = new Map<string, ReferenceValue>();
    for (const key of this.#rules.keys()) {
      values.set(key, under.has(key) ? 'true' : over.has(key) ? 'cut' : 'false');
    }
    return values;
  }

  /** Smallest set closed under the rules when what is excluded is read from `excluded`. */
  #least(
    target: ReferenceTarget,
    undecided: ReferenceValue,
    excluded: ReadonlySet<string>,
  ): Set<string> {
    const found = new Set<string>();
    const reading: Reading = {
      target,
      holds: (key) => (found.has(key) ? 'true' : 'false'),
      isExcluded: (key) => (excluded.has(key) ? 'true' : 'false'),
      undecided,
    };
    for (let size = -1; size !== found.size;) {
      size = found.size;
      for (const [key, rule] of this.#rules) {
        if (!found.has(key) && this.#valueOf(key, rule, reading) === 'true') found.add(key);
      }
    }
    return found;
  }

  /** Value of every userset if paths may have `depth` nodes and cycles run into that bound. */
  valuesWithin(target: ReferenceTarget, depth: number): Map<string, ReferenceValue> {
    let values = new Map<string, ReferenceValue>();
    for (let level = 0; level < depth; level++) {
      const previous = values;
      const next = new Map<string, ReferenceValue>();
      // An exclude side is evaluated within its userset, so on the same level.
      const reading: Reading = {
        target,
        holds: (key) => previous.get(key) ?? 'cut',
        isExcluded: (key) => this.#valueOf(key, this.#rules.get(key) as Rule, reading),
        undecided: 'cut',
      };
      for (const [key, rule] of this.#rules) next.set(key, this.#valueOf(key, rule, reading));
      values = next;
    }
    return values;
  }

  /** Check as the contract words it, or of a userset exactly; `valuesOf` chooses the bound. */
  check(
    ref: UsersetRef,
    subject: Subject,
    valuesOf: (target: ReferenceTarget) => ReadonlyMap<string, ReferenceValue>,
    isExact = false,
  ): boolean {
    const key = keyOf(ref, false);
    if (subject.kind === 'wildcard' || subject.kind === 'wildcardOf') return false;
    if (subject.kind === 'user') return valuesOf(subject).get(key) === 'true';
    const { namespace, objectId, relation } = subject;
    const set = { namespace, objectId, relation };
    if (isExact) {
      const target: ReferenceTarget = { kind: 'set', ref: set, isExact };
      return isSameRef(set, ref) || valuesOf(target).get(key) === 'true';
    }
    if (valuesOf({ kind: 'set', ref: set }).get(key) === 'true') return true;
    for (const userId of this.usersBelow(set, false)) {
      const values = valuesOf({ kind: 'user', userId });
      const isMember = values.get(keyOf(set, false)) === 'true';
      if (isMember && values.get(key) === 'true') return true;
    }
    return false;
  }

  #valueOf(key: string, rule: Rule, reading: Reading): ReferenceValue {
    const { ref, isExcluding } = rule;
    const { target, undecided } = reading;
    const isWhole = key === keyOf(ref, isExcluding);
    if (isWhole && target.kind === 'set' && isSameRef(target.ref, ref)) return 'true';
    const weigh = ({ weight }: WeighedTuple, value: ReferenceValue): ReferenceValue =>
      weight === 'true' ? value : least(value, undecided);
    const evaluate = (rewrite: Rewrite): ReferenceValue => {
      switch (rewrite.op) {
        case 'this':
          return this.#tuplesOf(ref, ref.relation)
            .map((one) => weigh(one, this.#subjectValue(one.tuple.subject, rule, reading)))
            .reduce(greatest, 'false');
        case 'computed':
          return reading.holds(keyOf({ ...ref, relation: rewrite.relation }, isExcluding));
        case 'tupleToUserset':
          return this.#tuplesOf(ref, rewrite.tupleset)
            .map((one) => {
              const { subject } = one.tuple;
              if (subject.kind !== 'set') return 'false';
              const next = { ...refOf(subject), relation: rewrite.computed };
              return weigh(one, reading.holds(keyOf(next, isExcluding)));
            })
            .reduce(greatest, 'false');
        case 'union':
          return rewrite.children.map(evaluate).reduce(greatest, 'false');
        case 'intersection':
          return rewrite.children.map(evaluate).reduce(least, 'true');
        case 'exclusion':
          return least(
            evaluate(rewrite.include),
            negate(reading.isExcluded(excludeKey(key, rewrite))),
          );
      }
    };
    return evaluate(rule.rewrite);
  }

  #subjectValue(subject: Subject, rule: Rule, { target, holds }: Reading): ReferenceValue {
    switch (subject.kind) {
      case 'user':
        return target.kind === 'user' && target.userId === subject.userId ? 'true' : 'false';
      case 'wildcard':
        if (target.kind === 'user') return 'true';
        return rule.isExcluding && target.isExact !== true ? 'true' : 'false';
      case 'wildcardOf':
        return isHeldByWildcard(subject.namespace, target, rule.isExcluding) ? 'true' : 'false';
      case 'set': {
        const ref = refOf(subject);
        if (target.kind === 'set' && isSameRef(target.ref, ref)) return 'true';
        return ref.relation === '' ? 'false' : holds(keyOf(ref, rule.isExcluding));
      }
    }
  }

  /** Concrete users stored below a userset, exclude sides apart; if asked for, also by tuples that could not be decided. */
  usersBelow(root: UsersetRef, withUndecided: boolean): Set<string> {
    const users = new Set<string>();
    const seen = new Set<string>();
    const visit = (ref: UsersetRef): void => {
      if (ref.relation === '' || seen.has(keyOf(ref, false))) return;
      seen.add(keyOf(ref, false));
      const walk = (rewrite: Rewrite): void => {
        if (rewrite.op === 'computed') visit({ ...ref, relation: rewrite.relation });
        if (rewrite.op === 'union' || rewrite.op === 'intersection') rewrite.children.forEach(walk);
        if (rewrite.op === 'exclusion') walk(rewrite.include);
        if (rewrite.op !== 'this' && rewrite.op !== 'tupleToUserset') return;
        const relation = rewrite.op === 'this' ? ref.relation : rewrite.tupleset;
        for (const { tuple, weight } of this.#tuplesOf(ref, relation)) {
          if (weight !== 'true' && !withUndecided) continue;
          const { subject } = tuple;
          if (subject.kind === 'user' && rewrite.op === 'this') users.add(subject.userId);
          if (subject.kind !== 'set') continue;
          visit(
            rewrite.op === 'this'
              ? refOf(subject)
              : { ...refOf(subject), relation: rewrite.computed },
          );
        }
      };
      walk(this.#rewriteOf(ref));
    };
    visit(root);
    return users;
  }

  /** Expand as the contract words it; conditional tuples count as `weight` undecided: left out. */
  expand(ref: UsersetRef, depthMax: number, path: readonly UsersetRef[] = []): ExpandTree {
    const below = [...path, ref];
    if (path.some((above) => isSameRef(above, ref)) || below.length > depthMax) {
      return { type: 'leaf', expanded: ref, userIds: [], sets: [ref], wildcard: false };
    }
    const computed = (relation: string): ExpandTree =>
      this.expand({ ...ref, relation }, depthMax, below);
    const build = (rewrite: Rewrite): ExpandTree => {
      switch (rewrite.op) {
        case 'this':
          return this.#leafOf(ref);
        case 'computed':
          return computed(rewrite.relation);
        case 'tupleToUserset': {
          const objects = new Map<string, UsersetRef>();
          for (const { subject } of this.#certainTuples(ref, rewrite.tupleset)) {
            if (subject.kind !== 'set') continue;
            const next = { ...refOf(subject), relation: rewrite.computed };
            objects.set(keyOf(next, false), next);
          }
          const children = [...objects.values()].sort(compareRefs);
          return {
            type: 'union',
            children: children.map((next) => this.expand(next, depthMax, below)),
          };
        }
        case 'union':
        case 'intersection':
          return { type: rewrite.op, children: rewrite.children.map(build) };
        case 'exclusion':
          return {
            type: 'exclusion',
            include: build(rewrite.include),
            exclude: build(rewrite.exclude),
          };
      }
    };
    const rewrite = this.#rewriteOf(ref);
    if (rewrite.op === 'computed') {
      return { type: 'union', expanded: ref, children: [computed(rewrite.relation)] };
    }
    return { ...build(rewrite), expanded: ref };
  }

  #leafOf(ref: UsersetRef): ExpandTree {
    const subjects = this.#certainTuples(ref, ref.relation).map((tuple) => tuple.subject);
    const wildcardsOf = subjects.flatMap((one) =>
      one.kind === 'wildcardOf' ? [one.namespace] : [],
    );
    return {
      type: 'leaf',
      userIds: subjects.flatMap((one) => (one.kind === 'user' ? [one.userId] : [])).sort(bytes),
      sets: subjects.flatMap((one) => (one.kind === 'set' ? [refOf(one)] : [])).sort(compareRefs),
      wildcard: subjects.some((one) => one.kind === 'wildcard'),
      ...(wildcardsOf.length === 0 ? {} : { wildcardsOf: wildcardsOf.sort(bytes) }),
    };
  }

  #certainTuples(ref: UsersetRef, relation: string): RelationTuple[] {
    return this.#tuplesOf(ref, relation)
      .filter(({ weight }) => weight === 'true')
      .map(({ tuple }) => tuple);
  }

  #tuplesOf(ref: UsersetRef, relation: string): WeighedTuple[] {
    return this.#tuples.get(keyOf({ ...ref, relation }, false)) ?? [];
  }

  #rewriteOf(ref: UsersetRef): Rewrite {
    return this.#model.namespaces.get(ref.namespace)?.get(ref.relation) ?? THIS;
  }
}

/** A typed wildcard is every object of its namespace; where it excludes, it counts against every userset but exact ones. */
export function isHeldByWildcard(
  namespace: string,
  target: ReferenceTarget,
  isExcluding: boolean,
): boolean {
  if (target.kind === 'user') return false;
  if (target.ref.relation === '') return target.ref.namespace === namespace;
  return isExcluding && target.isExact !== true;
}

const RANK = { false: 0, cut: 1, true: 2 } as const;

function least(a: ReferenceValue, b: ReferenceValue): ReferenceValue {
  return RANK[a] <= RANK[b] ? a : b;
}

function greatest(a: ReferenceValue, b: ReferenceValue): ReferenceValue {
  return RANK[a] >= RANK[b] ? a : b;
}

function negate(value: ReferenceValue): ReferenceValue {
  return value === 'cut' ? 'cut' : value === 'true' ? 'false' : 'true';
}

/** Name of a userset's rule; `isExcluding` apart, for a wildcard holds sets only on exclude sides. */
export function keyOf(ref: UsersetRef, isExcluding: boolean): string {
  return `${ref.namespace}:${ref.objectId}#${ref.relation}${isExcluding ? '~' : ''}`;
}

const partIds = new Map<Rewrite, number>();
/** Rewrite objects are shared by the objects of a namespace, not by its relations. */
export function excludeKey(key: string, part: Rewrite): string {
  let id = partIds.get(part);
  if (id === undefined) partIds.set(part, (id = partIds.size));
  return `${key} - ${id}`;
}

function refOf(set: Extract<Subject, { kind: 'set' }>): UsersetRef {
  return { namespace: set.namespace, objectId: set.objectId, relation: set.relation };
}

function isSameRef(a: UsersetRef, b: UsersetRef): boolean {
  return a.namespace === b.namespace && a.objectId === b.objectId && a.relation === b.relation;
}

function bytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function compareRefs(a: UsersetRef, b: UsersetRef): number {
  return (
    bytes(a.namespace, b.namespace) ||
    bytes(a.objectId, b.objectId) ||
    bytes(a.relation, b.relation)
  );
}
