import { subjectFromText, tupleFromText } from '../../assertions/tuple-text.ts';
import type { Subject } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from './exit-codes.ts';
import type { JsonRecord } from './json-values.ts';

/** A subject of `workspace.v1` in JSON. */
export type SubjectJson =
  | { readonly user_id: string }
  | { readonly wildcard: true }
  | { readonly wildcard_of: string }
  | { readonly set: ObjectJson & { readonly relation?: string } };

export type ObjectJson = { readonly namespace: string; readonly object_id: string };

/**
 * A relation tuple of `workspace.v1` in JSON. Without its condition it is also the item of a check
 * of `gatehouse.v1`.
 */
export type TupleJson = ObjectJson & {
  readonly relation: string;
  readonly subject: SubjectJson;
  readonly expires_at?: string;
  readonly condition_name?: string;
  readonly condition_params?: JsonRecord;
};

/** A subject in JSON. */
export function subjectJson(subject: Subject): SubjectJson {
  switch (subject.kind) {
    case 'user':
      return { user_id: subject.userId };
    case 'wildcard':
      return { wildcard: true };
    case 'wildcardOf':
      return { wildcard_of: subject.namespace };
    case 'set': {
      const { namespace, objectId, relation } = subject;
      return { set: { namespace, object_id: objectId, relation } };
    }
  }
}

/**
 * Parses a tuple or a check, such as `doc:plan#viewer@user:ann`. Errors: INVALID_REQUEST, with the
 * text.
 */
export function tupleJson(text: string): TupleJson {
  const key = tupleFromText(text);
  if ('problem' in key) throw textError(text, key.problem);
  const { namespace, objectId, relation, subject } = key;
  return { namespace, object_id: objectId, relation, subject: subjectJson(subject) };
}

/**
 * Parses a subject, such as `user:ann` or `group:eng#member`. Errors: INVALID_REQUEST, with the
 * text.
 */
export function subjectOfText(text: string): SubjectJson {
  const subject = subjectFromText(text);
  if ('problem' in subject) throw textError(text, subject.problem);
  return subjectJson(subject);
}

/**
 * Parses an object and a relation, such as `doc:plan#viewer`. Errors: INVALID_REQUEST, with the
 * text.
 */
export function usersetJson(text: string): ObjectJson & { readonly relation: string } {
  const hash = text.indexOf('#');
  if (hash < 0) throw textError(text, 'must read namespace:object#relation');
  // Parsed as a check of a placeholder subject.
  const { namespace, object_id, relation } = tupleJson(`${text}@user:*`);
  return { namespace, object_id, relation };
}

/** The text of a tuple in JSON: the inverse of `tupleJson`, without expiry and condition. */
export function textOfTupleJson({
  namespace,
  object_id: id,
  relation,
  subject,
}: TupleJson): string {
  return `${namespace}:${id}#${relation}@${textOfSubjectJson(subject)}`;
}

/** The text of a subject in JSON. */
export function textOfSubjectJson(subject: SubjectJson): string {
  if ('user_id' in subject) return `user:${subject.user_id}`;
  if ('wildcard' in subject) return 'user:*';
  if ('wildcard_of' in subject) return `${subject.wildcard_of}:*`;
  const { namespace, object_id: id, relation = '' } = subject.set;
  if (relation !== '') return `${namespace}:${id}#${relation}`;
  return id === '*' ? `${namespace}:*#` : `${namespace}:${id}`;
}

function textError(text: string, problem: string): AppError {
  return new AppError<CliReason>('INVALID_REQUEST', `${text}: ${problem}`);
}

/** A tuple in readable form: its text, its expiry and its condition. */
export function wordsOfTuple(tuple: TupleJson): string {
  const { expires_at: expiry, condition_name: condition, condition_params: params } = tuple;
  const until = expiry === undefined ? '' : ` until ${expiry}`;
  const name = condition === undefined || condition === '' ? '' : ` if ${condition}`;
  const bound = params === undefined || name === '' ? '' : ` ${JSON.stringify(params)}`;
  return `${textOfTupleJson(tuple)}${until}${name}${bound}`;
}

/** A number with its noun: `1 tuple`, `2 tuples`. */
export function counted(count: number | string, thing: string): string {
  return `${count} ${thing}${String(count) === '1' ? '' : 's'}`;
}
