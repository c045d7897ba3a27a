import { checkNamespace, checkObjectId, checkRelation } from '../../model/names.ts';
import type { RawSubject } from '../../model/raw-tuple.ts';
import { fieldError } from '../../model/reasons.ts';
import { subjectToColumns } from '../../model/relation-tuple.ts';
import { checkSubject } from '../../model/tuple-input.ts';
import type { TupleMatch } from '../../store/sql/reads/match-tuples.ts';

/** A filter as it was sent: '' and an absent subject match everything. */
export type RawFilter = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject?: { readonly kind: RawSubject } | undefined;
};

const EVERYTHING: TupleMatch = { namespace: null, objectId: null, relation: null, subject: null };

/** The tuples that a filter takes; `field` names it in messages. Errors: FIELD_*. */
export function checkTupleFilter(field: string, filter: RawFilter | undefined): TupleMatch {
  if (filter === undefined) return EVERYTHING;
  const { namespace, objectId, relation, subject } = filter;
  if (namespace !== '') checkNamespace(`${field}.namespace`, namespace);
  if (objectId !== '') {
    checkObjectId(`${field}.object_id`, objectId);
    if (namespace === '') throw fieldError(`${field}.object_id`, 'needs a namespace');
  }
  if (relation !== '') checkRelation(`${field}.relation`, relation);
  return {
    namespace: namespace || null,
    objectId: objectId || null,
    relation: relation || null,
    subject:
      subject === undefined
        ? null
        : subjectToColumns(checkSubject(`${field}.subject`, subject.kind)),
  };
}

/** Whether a filter takes every tuple. */
export function isEverything(match: TupleMatch): boolean {
  return Object.values(match).every((value) => value === null);
}
