import { problemOfCondition } from '../../model/conditions/condition-admission.ts';
import type { NamespaceModel, SubjectType } from '../../model/namespace/model-shape.ts';
import {
  EMPTY_NAME,
  type TupleReader,
  WILDCARD_NAME,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import type { EdgeAdmission } from '../bound/evaluator-api.ts';

/** Types that a relation admits, by the kind of subject; each list has the alternatives of condition and expiry. */
type RelationTypes = {
  readonly users: readonly SubjectType[];
  readonly wildcard: readonly SubjectType[];
  /** By namespace: its typed wildcard. */
  readonly wildcardsOf: ReadonlyMap<string, readonly SubjectType[]>;
  /** By ids of namespace and relation; the relation is EMPTY_NAME for objects themselves. */
  readonly sets: ReadonlyMap<number, ReadonlyMap<number, readonly SubjectType[]>>;
};

type NamespaceTypes = {
  /** Whether relations without subjects hold anything. */
  readonly isOpen: boolean;
  readonly relations: ReadonlyMap<number, RelationTypes>;
};

const NOBODY: readonly SubjectType[] = [];

/**
 * The stored tuples that a typed model admits, by the ids of one reader: those that `problemOfTuple` would let be
 * written. The names of the model are pinned, so that it is valid as long as the reader's names are. O(model) to make.
 */
export class Admission implements EdgeAdmission {
  readonly #namespaces = new Map<number, NamespaceTypes>();
  readonly #model: NamespaceModel;

  constructor(model: NamespaceModel, reader: TupleReader) {
    this.#model = model;
    for (const name of model.namespaces.keys()) {
      const types = new Map<number, RelationTypes>();
      for (const [relation, subjects] of model.subjects.get(name) ?? []) {
        types.set(reader.pinName(relation), compiled(subjects, reader));
      }
      this.#namespaces.set(reader.pinName(name), {
        isOpen: model.open.has(name),
        relations: types,
      });
    }
  }

  /** Whether the tuple (node, subject), which is stored, is admitted. */
  admits(reader: TupleReader, node: number, subject: number, isQualified: boolean): boolean {
    const namespace = this.#namespaces.get(reader.namespaceOf(reader.entityOf(node)));
    // The model has no rule for a namespace that it does not declare.
    if (namespace === undefined) return !isQualified || this.#decides(reader, node, subject);
    const types = namespace.relations.get(reader.relationOf(node));
    if (types === undefined) {
      // Like writes: an open namespace has no rule for relations without subjects.
      return namespace.isOpen && (!isQualified || this.#decides(reader, node, subject));
    }
    const alternatives = alternativesOf(types, reader, subject);
    if (!isQualified) {
      return alternatives.some(({ condition, expires }) => condition === '' && expires !== true);
    }
    const { conditionName, expiresAtMs } = reader.qualifier(node, subject);
    const doesExpire = expiresAtMs !== Number.POSITIVE_INFINITY;
    const isOfType = alternatives.some(
      ({ condition, expires }) =>
        condition === conditionName && (expires === undefined || expires === doesExpire),
    );
    return isOfType && this.#decides(reader, node, subject);
  }

  /** Whether the tuple's condition is one that the model can decide. */
  #decides(reader: TupleReader, node: number, subject: number): boolean {
    const { conditions } = this.#model;
    if (conditions.size === 0) return true;
    const { conditionName, conditionParams } = reader.qualifier(node, subject);
    if (conditionName === '') return true;
    const condition = { conditionName, conditionParams };
    return problemOfCondition(conditions, condition) === undefined;
  }
}

function compiled(subjects: readonly SubjectType[], reader: TupleReader): RelationTypes {
  const wildcardsOf = new Map<string, SubjectType[]>();
  const sets = new Map<number, Map<number, SubjectType[]>>();
  for (const type of subjects) {
    if (type.kind === 'wildcardOf') getOrAdd(wildcardsOf, type.namespace, newList).push(type);
    if (type.kind !== 'object' && type.kind !== 'userset') continue;
    const ofNamespace = getOrAdd(sets, reader.pinName(type.namespace), newMap);
    const relation = type.relation === '' ? EMPTY_NAME : reader.pinName(type.relation);
    getOrAdd(ofNamespace, relation, newList).push(type);
  }
  return {
    users: subjects.filter(({ kind }) => kind === 'user'),
    wildcard: subjects.filter(({ kind }) => kind === 'wildcard'),
    wildcardsOf,
    sets,
  };
}

function alternativesOf(
  types: RelationTypes,
  reader: TupleReader,
  subject: number,
): readonly SubjectType[] {
  if (subject === WILDCARD_NODE) return types.wildcard;
  const entity = reader.entityOf(subject);
  const namespace = reader.namespaceOf(entity);
  if (namespace === EMPTY_NAME) return types.users;
  if (namespace === WILDCARD_NAME) {
    return types.wildcardsOf.get(reader.entityText(entity)) ?? NOBODY;
  }
  return types.sets.get(namespace)?.get(reader.relationOf(subject)) ?? NOBODY;
}

const newList = (): SubjectType[] => [];
const newMap = (): Map<number, SubjectType[]> => new Map();

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
