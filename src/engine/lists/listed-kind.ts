import { EMPTY_NAME, type TupleReader, typedWildcardOf } from '../../model/tuple-reader.ts';
import { NO_ENTITY, type Target } from '../bound/scope.ts';

/** Which subjects a list is of: users, the objects of a namespace themselves, or its usersets of a relation. By name ids. */
export type ListedKind = {
  /** EMPTY_NAME: users. -1: no tuple and no model names it. */
  readonly namespace: number;
  /** EMPTY_NAME: users, or objects themselves. */
  readonly relation: number;
  /** The entity of the typed wildcard of the objects, 0 where no tuple has it. */
  readonly wildcardEntity: number;
};

/** Concrete users. */
export const USERS: ListedKind = {
  namespace: EMPTY_NAME,
  relation: EMPTY_NAME,
  wildcardEntity: 0,
};

/** The kind of a list: '' and '' are users, `relation` '' objects themselves. */
export function listedKindOf(reader: TupleReader, namespace: string, relation: string): ListedKind {
  if (namespace === '') return USERS;
  const wildcardEntity = relation === '' ? typedWildcardOf(reader, namespace) : 0;
  return { namespace: reader.nameId(namespace), relation: reader.nameId(relation), wildcardEntity };
}

/** A subject of this kind, by its entity; 0 is one that no tuple names. What is no user is asked about as such: exactly. */
export function targetOfKind(reader: TupleReader, kind: ListedKind, entity: number): Target {
  const { namespace, relation, wildcardEntity } = kind;
  if (namespace === EMPTY_NAME) {
    const userNode = entity === 0 ? 0 : reader.userNodeOf(entity);
    return { userNode, setEntity: 0, setRelation: 0 };
  }
  const setEntity = entity === 0 ? NO_ENTITY : entity;
  return { userNode: 0, setEntity, setRelation: relation, wildcardEntity, isExact: true };
}
