import type { Question as ProtoQuestion } from '../gen/gatehouse/v1/query_service_pb.ts';
import type { Subject as ProtoSubject } from '../gen/workspace/v1/authz_service_pb.ts';
import { fieldError } from '../model/field-error.ts';
import { checkNamespace, checkObjectId, checkRelation, requiredError } from '../model/names.ts';
import type { Subject } from '../model/relation-tuple.ts';
import { checkSubject } from '../model/tuple-input.ts';
import type { Query } from '../protocol/queries.ts';

/** A query; `field` is its place in the request. Errors: FIELD_REQUIRED, FIELD_INVALID naming the first bad field. */
export function queryFromProto(field: string, query: ProtoQuestion | undefined): Query {
  if (query === undefined) throw requiredError(field);
  const { namespace, objectId, relation } = query;
  checkNamespace(`${field}.namespace`, namespace);
  checkObjectId(`${field}.object_id`, objectId);
  checkRelation(`${field}.relation`, relation);
  const subject = askedSubject(`${field}.subject`, query.subject);
  return { namespace, objectId, relation, subject };
}

/** Who is asked about: a user or a userset, of which an empty relation names the object itself. Errors: FIELD_*. */
export function askedSubject(field: string, subject: ProtoSubject | undefined): Subject {
  const checked = checkSubject(field, subject?.kind);
  if (checked.kind !== 'user' && checked.kind !== 'set')
    throw fieldError(field, 'must be a user or a set');
  return checked;
}
