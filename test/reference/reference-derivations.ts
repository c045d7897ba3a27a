import type { UsersetRef } from '../../src/model/expand-tree.ts';
import type { Derivation } from '../../src/model/explanation.ts';
import type { Rewrite } from '../../src/model/namespace/model-shape.ts';
import type { NamespaceModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import {
  excludeKey,
  isHeldByWildcard,
  keyOf,
  type ReferenceTarget,
  type ReferenceValue,
  type WeighedTuple,
} from './reference-evaluator.ts';

/** Fewest nodes of a derivation, and how long such a one can hold at best. */
export type ShortestDerivation = { readonly size: number; readonly untilMs: number };

const NONE: ShortestDerivation = { size: Number.POSITIVE_INFINITY, untilMs: 0 };
const THIS: Rewrite = { op: 'this' };

/**
 * What a derivation is, in its most obvious form: a checker that a tree follows from stored tuples by the
 * rules of the model, and the size of the smallest one by a fixpoint over every userset there is. What is
 * excluded is read from the values that the reference evaluator found.
 */
export class ReferenceDerivations {
  readonly #model: NamespaceModel;
  readonly #tuples: readonly RelationTuple[];
  readonly #values: ReadonlyMap<string, ReferenceValue>;
  readonly #target: ReferenceTarget;
  readonly #isExcluding: boolean;

  /** `values`: of `target`; `isExcluding`: what is derived stands on the exclude side of an exclusion. */
  constructor(
    model: NamespaceModel,
    tuples: readonly WeighedTuple[],
    values: ReadonlyMap<string, ReferenceValue>,
    target: ReferenceTarget,
    isExcluding = false,
  ) {
    this.#model = model;
    this.#tuples = tuples.filter(({ weight }) => weight === 'true').map(({ tuple }) => tuple);
    this.#values = values;
    this.#target = target;
    this.#isExcluding = isExcluding;
  }

  /** Of every userset, by its key. */
  shortest(refs: readonly UsersetRef[]): ReadonlyMap<string, ShortestDerivation> {
    let known = new Map<string, ShortestDerivation>();
    for (let isChanged = true; isChanged;) {
      isChanged = false;
      const next = new Map<string, ShortestDerivation>();
      for (const ref of refs) {
        const key = this.#keyOf(ref);
        const found = this.#isTarget(ref)
          ? { size: 1, untilMs: Number.POSITIVE_INFINITY }
          : this.#shortestOf(this.#rewriteOf(ref), ref, known);
        next.set(key, found);
        const before = known.get(key) ?? NONE;
        if (found.size !== before.size || found.untilMs !== before.untilMs) isChanged = true;
      }
      known = next;
    }
    return known;
  }

  #shortestOf(
    rewrite: Rewrite,
    ref: UsersetRef,
    known: ReadonlyMap<string, ShortestDerivation>,
  ): ShortestDerivation {
    const of = (next: UsersetRef): ShortestDerivation => known.get(this.#keyOf(next)) ?? NONE;
    switch (rewrite.op) {
      case 'this':
        return this.#tuplesOf(ref, ref.relation)
          .map((tuple) => {
            if (this.#isNamed(tuple.subject)) return above(tuple, []);
            const { subject } = tuple;
            if (subject.kind !== 'set' || subject.relation === '') return NONE;
            return above(tuple, [of(refOf(subject))]);
          })
          .reduce(better, NONE);
      case 'computed':
        return above(undefined, [of({ ...ref, relation: rewrite.relation })]);
      case 'tupleToUserset':
        return this.#tuplesOf(ref, rewrite.tupleset)
          .map((tuple) => {
            if (tuple.subject.kind !== 'set') return NONE;
            return above(tuple, [of({ ...refOf(tuple.subject), relation: rewrite.computed })]);
          })
          .reduce(better, NONE);
      case 'union':
        return rewrite.children
          .map((child) => this.#shortestOf(child, ref, known))
          .reduce(better, NONE);
      case 'intersection': {
        const parts = rewrite.children.map((child) => this.#shortestOf(child, ref, known));
        return parts.length === 1 ? (parts[0] as ShortestDerivation) : above(undefined, parts);
      }
      case 'exclusion':
        if (!this.#isRefuted(this.#keyOf(ref), rewrite)) return NONE;
        return above(undefined, [this.#shortestOf(rewrite.include, ref, known)]);
    }
  }

  /**
   * What is wrong with a tree, or '' if it derives `ref` step by step. `part`: a part of its rewrite that is to
   * be derived; `ruleKey`: the rule that the part belongs to, where it is on the exclude side of another part.
   */
  problemOf(
    ref: UsersetRef,
    tree: Derivation,
    part?: Rewrite,
    ruleKey: string = this.#keyOf(ref),
  ): string {
    if (!isSameRef(ref, tree))
      return `${keyOf(tree, false)} stands where ${keyOf(ref, false)} should`;
    if (tree.step === 'identity') {
      return part === undefined && this.#isTarget(ref) && tree.children.length === 0
        ? ''
        : 'is not the subject itself';
    }
    return this.#follows(part ?? this.#rewriteOf(ref), ref, tree, ruleKey);
  }

  #follows(rewrite: Rewrite, ref: UsersetRef, tree: Derivation, ruleKey: string): string {
    const { step, children } = tree;
    const wrong = `${keyOf(ref, false)} does not follow by ${step}`;
    const only = children.length === 1 ? (children[0] as Derivation) : undefined;
    switch (rewrite.op) {
      case 'this':
        return this.#followsFromTuple(ref, tree, only) ? this.#below(tree, only) : wrong;
      case 'computed':
        if (step !== 'computed' || tree.tuple !== undefined || only === undefined) return wrong;
        return this.problemOf({ ...ref, relation: rewrite.relation }, only);
      case 'tupleToUserset': {
        const tuple = this.#stored(tree.tuple);
        if (step !== 'tupleToUserset' || tuple === undefined || only === undefined) return wrong;
        const isOfTupleset = isSameRef(tuple, { ...ref, relation: rewrite.tupleset });
        if (!isOfTupleset || tuple.subject.kind !== 'set') return wrong;
        return this.problemOf({ ...refOf(tuple.subject), relation: rewrite.computed }, only);
      }
      case 'union': {
        const problems = rewrite.children.map((child) => this.#follows(child, ref, tree, ruleKey));
        return problems.includes('') ? '' : problems.join('; ');
      }
      case 'intersection': {
        const [first] = rewrite.children;
        if (rewrite.children.length === 1 && first !== undefined) {
          return this.#follows(first, ref, tree, ruleKey);
        }
        const isWhole = step === 'intersection' && children.length === rewrite.children.length;
        if (!isWhole) return wrong;
        const problems = rewrite.children.map((child, i) =>
          this.problemOf(ref, children[i] as Derivation, child, ruleKey),
        );
        return problems.find((problem) => problem !== '') ?? '';
      }
      case 'exclusion':
        if (step !== 'exclusion' || only === undefined) return wrong;
        if (!this.#isRefuted(ruleKey, rewrite)) return `${keyOf(ref, false)} excludes the subject`;
        return this.problemOf(ref, only, rewrite.include, ruleKey);
    }
  }

  #followsFromTuple(ref: UsersetRef, tree: Derivation, only: Derivation | undefined): boolean {
    const tuple = this.#stored(tree.tuple);
    if (tuple === undefined || !isSameRef(tuple, ref)) return false;
    if (tree.step === 'direct') return tree.children.length === 0 && this.#isNamed(tuple.subject);
    return tree.step === 'userset' && tuple.subject.kind === 'set' && only !== undefined;
  }

  #below({ tuple }: Derivation, only: Derivation | undefined): string {
    if (only === undefined || tuple?.subject.kind !== 'set') return '';
    return this.problemOf(refOf(tuple.subject), only);
  }

  /** The tuple if it is stored just so, and counts. */
  #stored(tuple: RelationTuple | undefined): RelationTuple | undefined {
    return this.#tuples.find((one) => tuple !== undefined && textOf(one) === textOf(tuple));
  }

  #isNamed(subject: Subject): boolean {
    const target = this.#target;
    if (subject.kind === 'wildcard') return target.kind === 'user' || this.#isExcluding;
    if (subject.kind === 'wildcardOf')
      return isHeldByWildcard(subject.namespace, target, this.#isExcluding);
    if (subject.kind === 'user') return target.kind === 'user' && target.userId === subject.userId;
    return target.kind === 'set' && isSameRef(target.ref, refOf(subject));
  }

  #isTarget(ref: UsersetRef): boolean {
    return this.#target.kind === 'set' && isSameRef(this.#target.ref, ref);
  }

  #isRefuted(ruleKey: string, rewrite: Extract<Rewrite, { op: 'exclusion' }>): boolean {
    return this.#values.get(excludeKey(ruleKey, rewrite)) === 'false';
  }

  #keyOf(ref: UsersetRef): string {
    return keyOf(ref, this.#isExcluding);
  }

  #rewriteOf(ref: UsersetRef): Rewrite {
    return this.#model.namespaces.get(ref.namespace)?.get(ref.relation) ?? THIS;
  }

  #tuplesOf(ref: UsersetRef, relation: string): RelationTuple[] {
    return this.#tuples.filter((tuple) => isSameRef(tuple, { ...ref, relation }));
  }
}

/** Nodes of a tree. */
export function sizeOf({ children }: Derivation): number {
  return children.reduce((size, child) => size + sizeOf(child), 1);
}

/** Usersets on the longest path of a tree: operands of an operator are of the same userset. */
export function depthOf({ step, children }: Derivation): number {
  const below = Math.max(0, ...children.map(depthOf));
  return step === 'intersection' || step === 'exclusion' ? below : below + 1;
}

/** Earliest expiry in a tree, in milliseconds. */
export function expiryOf({ tuple, children }: Derivation): number {
  return Math.min(expiryMs(tuple), ...children.map(expiryOf));
}

function expiryMs(tuple: RelationTuple | undefined): number {
  const { expiresAtUs } = tuple ?? {};
  return expiresAtUs === undefined ? Number.POSITIVE_INFINITY : Number(expiresAtUs) / 1000;
}

function above(
  tuple: RelationTuple | undefined,
  parts: readonly ShortestDerivation[],
): ShortestDerivation {
  const size = parts.reduce((sum, part) => sum + part.size, 1);
  const untilMs = parts.reduce((ms, part) => Math.min(ms, part.untilMs), expiryMs(tuple));
  return Number.isFinite(size) ? { size, untilMs } : NONE;
}

function better(a: ShortestDerivation, b: ShortestDerivation): ShortestDerivation {
  if (a.size !== b.size) return a.size < b.size ? a : b;
  return a.untilMs >= b.untilMs ? a : b;
}

function textOf(tuple: RelationTuple): string {
  const { namespace, objectId, relation, subject } = tuple;
  const { expiresAtUs, conditionName = '', conditionParams = '' } = tuple;
  const payload = [String(expiresAtUs), conditionName, conditionParams];
  const named =
    subject.kind === 'user' ? subject.userId : subject.kind === 'set' ? refOf(subject) : '*';
  return JSON.stringify([namespace, objectId, relation, subject.kind, named, ...payload]);
}

function refOf({ namespace, objectId, relation }: UsersetRef): UsersetRef {
  return { namespace, objectId, relation };
}

function isSameRef(a: UsersetRef, b: UsersetRef): boolean {
  return a.namespace === b.namespace && a.objectId === b.objectId && a.relation === b.relation;
}
