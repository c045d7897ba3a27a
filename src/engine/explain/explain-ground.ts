import type { UsersetRef } from '../../model/expand-tree.ts';
import type { Derivation } from '../../model/explanation.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import { type CheckQuery, type RelationTuple, tupleIdentity } from '../../model/relation-tuple.ts';
import { EMPTY_NAME, type TupleReader, typedWildcardOf } from '../../model/tuple-reader.ts';
import type { Scope, Target } from '../bound/scope.ts';
import type { GeneralEvaluator } from '../general-evaluator.ts';
import type { EdgeIds } from './leaf-walk.ts';
import type { Proof } from './proof.ts';
import { toMicroseconds, tupleOfEdge } from './tuple-of-edge.ts';

/** The read budget of an explanation, in those of the evaluation that it explains. */
const EXPLANATION_BUDGETS = 4;

/** Ground of an explanation: one index at one revision. */
export type ExplainGround = {
  /** Decides as Check does, over the reader with what the request carries. */
  readonly evaluator: GeneralEvaluator;
  /** The same as if this tuple were stored; what the request carries counts before it. */
  readonly withTuple: (tuple: RelationTuple) => GeneralEvaluator;
  readonly model: NamespaceModel;
  readonly contextual: readonly RelationTuple[];
  readonly nowMs: number;
  readonly readBudget: number;
};

/** State that the parts of one explanation share: the query by ids, the budget, and the way back to words. */
export class ExplainContext {
  readonly ground: ExplainGround;
  readonly query: CheckQuery;
  readonly evaluator: GeneralEvaluator;
  readonly entity: number;
  readonly relation: number;
  readonly target: Target;
  readonly nowUs: bigint;
  /** A tuple that only names who is asked about, for a reader that knew one of them not; null: it knows all. */
  readonly mention: EdgeIds | null;
  readonly #contextual: ReadonlySet<string>;
  #readsLeft: number;
  #reads = 0;

  constructor(ground: ExplainGround, query: CheckQuery) {
    this.ground = ground;
    this.query = query;
    this.nowUs = toMicroseconds(ground.nowMs);
    this.#readsLeft = ground.readBudget * EXPLANATION_BUDGETS;
    this.#contextual = new Set(ground.contextual.map(tupleIdentity));
    this.evaluator = knowingAll(ground, query);
    const { reader } = this.evaluator;
    this.entity = entityOf(reader, query);
    this.relation = reader.nameId(query.relation);
    this.target = targetOf(reader, query);
    const subject = subjectNode(reader, this.target);
    const isMentioned = this.evaluator !== ground.evaluator;
    const node = reader.nodeId(this.entity, this.relation);
    this.mention = isMentioned ? { node, subject } : null;
  }

  get reader(): TupleReader {
    return this.evaluator.reader;
  }

  /** Reads of the explanation so far. */
  get reads(): number {
    return this.#reads;
  }

  get isSpent(): boolean {
    return this.#readsLeft <= 0;
  }

  /** A scope for one part, with the reads that are left; pass it to `spend` afterwards. */
  scope(nowMs = this.ground.nowMs): Scope {
    const { namespace, relation, contextJson } = this.query;
    const left = Math.max(1, this.#readsLeft);
    return this.evaluator.scope(`${namespace}#${relation}`, contextJson, nowMs, left);
  }

  /** Counts the reads of a part; at least one. */
  spend(reads: number): void {
    this.#reads += reads;
    this.#readsLeft -= Math.max(1, reads);
  }

  get readsLeft(): number {
    return this.#readsLeft;
  }

  refOf(entity: number, relation: number): UsersetRef {
    const { reader } = this;
    return {
      namespace: reader.nameText(reader.namespaceOf(entity)),
      objectId: reader.entityText(entity),
      relation: reader.nameText(relation),
    };
  }

  /** The request itself carries a tuple with its identity. */
  isContextual(tuple: RelationTuple): boolean {
    return this.#contextual.size > 0 && this.#contextual.has(tupleIdentity(tuple));
  }

  /** A proof in words. Cost: O(nodes). */
  derivationOf({ entity, relation, step, tuple: edge, children }: Proof): Derivation {
    const tuple = edge === null ? undefined : tupleOfEdge(this.reader, edge);
    return {
      ...this.refOf(entity, relation),
      step,
      tuple,
      contextual: tuple !== undefined && this.isContextual(tuple),
      children: children.map((child) => this.derivationOf(child)),
    };
  }
}

/** The evaluator over a reader that knows the object, the relation and the subject, if only in name. */
function knowingAll({ evaluator, withTuple }: ExplainGround, query: CheckQuery): GeneralEvaluator {
  const { reader } = evaluator;
  const { namespace, objectId, relation, subject } = query;
  const isSubjectKnown =
    subject.kind === 'user'
      ? reader.entityId(EMPTY_NAME, subject.userId) !== 0
      : subject.kind === 'set' &&
        entityOf(reader, subject) !== 0 &&
        reader.nameId(subject.relation) >= 0;
  const isKnown = entityOf(reader, query) !== 0 && reader.nameId(relation) > 0 && isSubjectKnown;
  if (isKnown) return evaluator;
  // An unknown name is in no tuple, so this one is new, and it has never counted.
  return withTuple({ namespace, objectId, relation, subject, expiresAtUs: 0n });
}

function entityOf(
  reader: TupleReader,
  object: { readonly namespace: string; readonly objectId: string },
): number {
  const namespace = reader.nameId(object.namespace);
  return namespace > 0 ? reader.entityId(namespace, object.objectId) : 0;
}

function targetOf(reader: TupleReader, { subject, isExact }: CheckQuery): Target {
  if (subject.kind === 'set') {
    const setRelation = reader.nameId(subject.relation);
    const setEntity = entityOf(reader, subject);
    const wildcardEntity = typedWildcardOf(reader, subject.namespace);
    return { userNode: 0, setEntity, setRelation, wildcardEntity, isExact };
  }
  const userId = subject.kind === 'user' ? subject.userId : '';
  const user = userId === '' ? 0 : reader.entityId(EMPTY_NAME, userId);
  return {
    userNode: user === 0 ? 0 : reader.nodeId(user, EMPTY_NAME),
    setEntity: 0,
    setRelation: 0,
  };
}

function subjectNode(reader: TupleReader, target: Target): number {
  const { userNode, setEntity, setRelation } = target;
  return setEntity === 0 ? userNode : reader.nodeId(setEntity, setRelation);
}
