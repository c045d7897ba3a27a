import { type RelationTuple, type Subject, tupleIdentity } from '../../model/relation-tuple.ts';
import type { BoundModel, Op } from '../bound/bound-model.ts';
import type { PairTable } from '../bound/pair-table.ts';
import type { Steps } from '../general/gate-system.ts';
import type { DenialGraph, Vertex } from './denial-graph.ts';
import type { ExplainContext } from './explain-ground.ts';
import { HeldUsersets } from './held-usersets.ts';
import { admittedTuple, subjectsOfObject } from './remedy-candidates.ts';
import { relationsRead, RemedyLeafSearch } from './remedy-leaves.ts';
import { sureLeaves } from './sure-remedies.ts';
import { tupleOfEdge } from './tuple-of-edge.ts';

/** By namespace and tupleset ("5 7"): the relations that some rewrite searches for behind its tuples. */
export type EveryWalk = ReadonlyMap<string, ReadonlySet<number>>;

const known = new WeakMap<BoundModel, EveryWalk>();

/** The walks of all rewrites, on whichever side of an operator. O(model) once for each model. */
export function everyWalk(model: BoundModel): EveryWalk {
  const found = known.get(model);
  if (found !== undefined) return found;
  const all = new Map<string, Set<number>>();
  const visit = (namespace: number, { walks, children }: Op): void => {
    for (let i = 0; i < walks.length; i += 2) {
      const key = `${namespace} ${walks[i]}`;
      const relations = all.get(key) ?? new Set();
      all.set(key, relations.add(walks[i + 1] as number));
    }
    for (const child of children) visit(namespace, child);
  };
  for (const { namespace, root } of model.programs) visit(namespace, root);
  known.set(model, all);
  return all;
}

/** Tuples each of which alone would make a deny an allow. */
export type Remedies = {
  readonly tuples: readonly RelationTuple[];
  /** Others may exist: a bound was reached, or the read budget. */
  readonly isTruncated: boolean;
};

/** Most are dropped before they are evaluated: some ten microseconds. */
const CANDIDATES_PER_YIELD = 32;

type SearchedUserset = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
};

/**
 * Remedies of a deny, each certain from the graph, or verified by a whole evaluation with that tuple added. First tuples that would
 * hold but for their expiry or condition, then tuples that name the subject, nearest to the object
 * first. Only where there is none of these, tuples that lead to something the subject holds already.
 */
export class RemedySearch {
  readonly #context: ExplainContext;
  readonly #graph: DenialGraph;
  readonly #tried = new Set<string>();
  readonly #tuples: RelationTuple[] = [];
  #remediesMax = 0;
  #candidates = 0;
  #isTruncated = false;
  #isBarred = false;
  /** Enough were found, or the read budget ended. */
  #isStopped = false;

  constructor(context: ExplainContext, graph: DenialGraph) {
    this.#context = context;
    this.#graph = graph;
  }

  /** Errors: none of the budget. */
  *search(root: number, remediesMax: number): Steps<Remedies> {
    this.#remediesMax = remediesMax;
    const { subject } = this.#context.query;
    const found = yield* new RemedyLeafSearch(this.#graph).search(root);
    for (const edge of found.dormant) {
      if (this.#isStopped) break;
      const tuple = tupleOfEdge(this.#context.reader, edge);
      yield* this.#try(tuple, tuple.subject);
    }
    const isSure = yield* this.#sureLeaves(root);
    const leaves = found.leaves.map((leaf) => this.#graph.at(leaf));
    for (const [index, { op, entity, relation }] of leaves.entries()) {
      if (this.#isStopped) break;
      if (op?.hasThis !== true) continue;
      const userset = this.#context.refOf(entity, relation);
      const isSureHere = isSure.has(found.leaves[index] as number);
      yield* this.#try(userset, subject, isSureHere);
      yield* this.#try(userset, wildcardFor(subject), isSureHere);
    }
    if (this.#tuples.length === 0 && !this.#isStopped) yield* this.#tryLinks(leaves);
    if (found.isTruncated || this.#isStopped) this.#isTruncated = true;
    if (this.#tuples.length === 0 && this.#isBarred) this.#isTruncated = true;
    return { tuples: this.#tuples, isTruncated: this.#isTruncated };
  }

  /**
   * Leaves at which one tuple certainly suffices for a user; none for a set, which takes more than one tuple to know.
   */
  *#sureLeaves(root: number): Steps<ReadonlySet<number>> {
    const { query, evaluator } = this.#context;
    if (query.subject.kind !== 'user' || this.#remediesMax === 0) return new Set();
    return yield* sureLeaves(this.#graph, root, evaluator.depthMax);
  }

  /** Tuples that lead from a leaf to what the subject holds. */
  *#tryLinks(leaves: readonly Vertex[]): Steps<void> {
    const { target } = this.#context;
    // The usersets that include a userset are not searched.
    if (target.setEntity !== 0) this.#isTruncated = true;
    if (target.setEntity !== 0 || leaves.length === 0 || this.#context.isSpent) return;
    const scope = this.#context.scope();
    const held = new HeldUsersets(scope);
    try {
      yield* held.collect(target.userNode);
    } catch (error) {
      if (!scope.isExhausted) throw error;
      this.#isTruncated = true;
    }
    this.#context.spend(scope.reads);
    yield* this.#tryHeld(leaves, held.usersets);
    if (this.#tuples.length === 0) yield* this.#tryTwofold(leaves, held.usersets);
  }

  /** Tuples by which a leaf follows from a userset that is held. */
  *#tryHeld(leaves: readonly Vertex[], usersets: PairTable): Steps<void> {
    for (let at = 0; at < usersets.size; at++) {
      const [entity, relation] = [usersets.firstOf(at), usersets.secondOf(at)];
      const { namespace, objectId, relation: name } = this.#context.refOf(entity, relation);
      for (const leaf of leaves) {
        if (this.#isStopped) return;
        const { walks, hasThis } = leaf.op ?? { walks: [], hasThis: false };
        if (hasThis) {
          const subject: Subject = { kind: 'set', namespace, objectId, relation: name };
          yield* this.#try(this.#context.refOf(leaf.entity, leaf.relation), subject);
        }
        for (let i = 0; i < walks.length; i += 2) {
          if (walks[i + 1] !== relation) continue;
          const userset = this.#context.refOf(leaf.entity, walks[i] as number);
          const { model } = this.#context.ground;
          for (const subject of subjectsOfObject(model, userset, { namespace, objectId })) {
            yield* this.#try(userset, subject);
          }
        }
      }
    }
  }

  /** Tuples that count more than once on the way; those that count themselves where no object is a remedy. */
  *#tryTwofold(leaves: readonly Vertex[], usersets: PairTable): Steps<void> {
    for (const isWalked of [true, false]) {
      for (const { userset, subject } of this.#twofold(leaves, usersets, isWalked)) {
        if (this.#isStopped) return;
        yield* this.#try(userset, subject);
      }
      if (this.#tuples.length > 0) return;
    }
  }

  /**
   * Behind the leaf that reads such a tuple another leaf of the same object reads it, too, and the last of them leads to what
   * is held: without one that does, a tuple more changes nothing. The last one walks (`isWalked`), or the tuple itself counts.
   */
  *#twofold(
    leaves: readonly Vertex[],
    usersets: PairTable,
    isWalked: boolean,
  ): Generator<{ readonly userset: SearchedUserset; readonly subject: Subject }, void, undefined> {
    const { ground, evaluator, reader } = this.#context;
    const walks = everyWalk(evaluator.model);
    for (let at = 0; at < usersets.size; at++) {
      const held = this.#context.refOf(usersets.firstOf(at), usersets.secondOf(at));
      for (const { entity, relation, op } of leaves) {
        for (const read of relationsRead(relation, op)) {
          const userset = this.#context.refOf(entity, read);
          if (!isWalked) yield { userset, subject: { kind: 'set', ...held } };
          const behind = walks.get(`${reader.namespaceOf(entity)} ${read}`);
          if (!isWalked || behind?.has(usersets.secondOf(at)) !== true) continue;
          const isCounted = op?.hasThis === true && read === relation;
          for (const subject of subjectsOfObject(ground.model, userset, held, isCounted)) {
            yield { userset, subject };
          }
        }
      }
    }
  }

  /** Adds the tuple if it is a remedy, unless a bound was reached. If not `isSure`, evaluates the query with it. */
  *#try(userset: SearchedUserset, subject: Subject, isSure = false): Steps<void> {
    const { ground, nowUs, query } = this.#context;
    const { namespace, objectId, relation } = userset;
    const key = { namespace, objectId, relation, subject };
    if (++this.#candidates % CANDIDATES_PER_YIELD === 0) yield;
    // An object itself holds nobody.
    if (relation === '') return;
    // A wildcard is for where the model admits it and not the subject itself.
    const isWildcard = subject.kind === 'wildcard' || subject.kind === 'wildcardOf';
    if (isWildcard && !this.#isOnlyForAll(userset)) return;
    const tuple = admittedTuple(ground.model, key, nowUs);
    if (tuple === 'barred') this.#isBarred = true;
    if (tuple === undefined || tuple === 'barred') return;
    const identity = tupleIdentity(tuple);
    if (this.#tried.has(identity)) return;
    this.#tried.add(identity);
    if (this.#tuples.length >= this.#remediesMax || this.#context.isSpent) {
      this.#isStopped = true;
      return;
    }
    // Tuples of the request take precedence over stored ones.
    if (isSure && !this.#context.isContextual(tuple)) {
      this.#tuples.push(tuple);
      return;
    }
    const { readsLeft } = this.#context;
    const check = ground.withTuple(tuple).startCheck(query, ground.nowMs, readsLeft);
    try {
      while (check.run(0) === 'more') yield;
    } catch (error) {
      if ((check.reads ?? 0) <= readsLeft) throw error;
      this.#context.spend(readsLeft);
      this.#isStopped = true;
      return;
    }
    this.#context.spend(check.reads ?? 0);
    if (check.result()) this.#tuples.push(tuple);
    yield;
  }

  #isOnlyForAll(userset: SearchedUserset): boolean {
    const { ground, nowUs, query } = this.#context;
    const { namespace, objectId, relation } = userset;
    if (isUserset(query.subject) || ground.model.subjects.size === 0) return false;
    const key = { namespace, objectId, relation, subject: query.subject };
    return admittedTuple(ground.model, key, nowUs) === undefined;
  }
}

/** Whether a subject is a userset, which no wildcard includes. */
function isUserset(subject: Subject): boolean {
  return subject.kind === 'set' && subject.relation !== '';
}

/** The wildcard that holds a subject; of a userset it is never tried. */
function wildcardFor(subject: Subject): Subject {
  if (subject.kind !== 'set') return { kind: 'wildcard' };
  return { kind: 'wildcardOf', namespace: subject.namespace };
}
