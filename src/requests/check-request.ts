import type { CheckRequest, SubjectSet } from '../gen/workspace/v1/authz_service_pb.ts';
import { canonicalJson } from '../model/canonical-json.ts';
import {
  checkJson,
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkTenantId,
  checkUserId,
} from '../model/names.ts';
import { type AuthzReason, fieldError } from '../model/reasons.ts';
import type { CheckQuery, Subject } from '../model/relation-tuple.ts';
import { type AppError, errorWithoutStack } from '../shared/app-error.ts';
import type { JsonObject } from '../shared/json.ts';

/** The fields that Check, Expand and BatchCheckItem share. */
type ObjectRelation = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
};

/**
 * Checks the object and the relation of a request. Errors: FIELD_REQUIRED, FIELD_INVALID naming the first bad field.
 */
export function checkObjectRelation(request: ObjectRelation): void {
  checkNamespace('namespace', request.namespace);
  checkObjectId('object_id', request.objectId);
  checkRelation('relation', request.relation);
}

/** Checks the arguments of a Check. Errors: FIELD_REQUIRED, FIELD_INVALID naming the first bad field. */
export function checkQueryFromProto(request: CheckRequest): CheckQuery {
  checkObjectRelation(request);
  const subject = subjectFromProto(request);
  const contextJson = request.context === undefined ? '' : structText('context', request.context);
  checkTenantId('tenant_id', request.tenantId);
  return {
    namespace: request.namespace,
    objectId: request.objectId,
    relation: request.relation,
    subject,
    contextJson,
  };
}

function subjectFromProto(request: CheckRequest): Subject {
  if (request.subjectUserId !== '') {
    if (request.subjectSet !== undefined) {
      throw fieldError('subject_set', 'must be absent when subject_user_id is given');
    }
    checkUserId('subject_user_id', request.subjectUserId);
    return { kind: 'user', userId: request.subjectUserId };
  }
  if (request.subjectSet === undefined) throw subjectMissing();
  return subjectSetFromProto('subject_set', request.subjectSet);
}

/** The FIELD_REQUIRED error of a Check, or of a batch item, that names no subject. */
export function subjectMissing(): AppError {
  const field = 'subject_user_id';
  const problem = `${field}: is required, or a subject_set`;
  return errorWithoutStack<AuthzReason>('FIELD_REQUIRED', problem, { field });
}

/** Checks a userset. An empty relation denotes the object itself. Errors: FIELD_REQUIRED, FIELD_INVALID. */
function subjectSetFromProto(field: string, set: SubjectSet): Subject {
  checkNamespace(`${field}.namespace`, set.namespace);
  checkObjectId(`${field}.object_id`, set.objectId);
  if (set.relation !== '') checkRelation(`${field}.relation`, set.relation);
  const { namespace, objectId, relation } = set;
  return { kind: 'set', namespace, objectId, relation };
}

/** Canonical JSON text of a Struct. Errors: FIELD_INVALID naming the member. */
export function structText(field: string, struct: JsonObject): string {
  checkJson(field, struct);
  return canonicalJson(struct);
}
