import { checkNamespace, checkObjectId, checkRelation, checkUserId } from '../model/names.ts';
import { type Subject, subjectText, type TupleKey } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';

/** Problem with the text of a tuple or query. */
export type TextProblem = { readonly problem: string };

const FORM = 'must read namespace:object#relation@subject';

/**
 * Parses a tuple: `doc:readme#viewer@user:alice`. Other subjects are `@user:*` for every user, `@group:eng#member` for
 * a userset, `@folder:plans` for the object itself and `@folder:*` for every folder. `@folder:*#` is the folder whose
 * id is `*`. `user:` always begins a concrete user. Ids hold no `#`, and names neither `:` nor `@`, so each text has
 * one meaning.
 */
export function tupleFromText(text: string): TupleKey | TextProblem {
  const colon = text.indexOf(':');
  const hash = text.indexOf('#', colon);
  const at = text.indexOf('@', hash);
  if (colon < 0 || hash < 0 || at < 0) return { problem: FORM };
  const subject = subjectFromText(text.slice(at + 1));
  if ('problem' in subject) return subject;
  const key = {
    namespace: text.slice(0, colon),
    objectId: text.slice(colon + 1, hash),
    relation: text.slice(hash + 1, at),
    subject,
  };
  const problem = nameProblem(() => {
    checkNamespace('the namespace', key.namespace);
    checkObjectId('the object', key.objectId);
    checkRelation('the relation', key.relation);
  });
  return problem === undefined ? key : { problem };
}

/** Parses an object: `doc:readme`. */
export function objectFromText(
  text: string,
): { readonly namespace: string; readonly objectId: string } | TextProblem {
  const colon = text.indexOf(':');
  if (colon < 0) return { problem: 'must read namespace:object' };
  const object = { namespace: text.slice(0, colon), objectId: text.slice(colon + 1) };
  const problem = nameProblem(() => {
    checkNamespace('the namespace', object.namespace);
    checkObjectId('the object', object.objectId);
  });
  return problem === undefined ? object : { problem };
}

/** Parses a subject, in the form that it has in a tuple. */
export function subjectFromText(text: string): Subject | TextProblem {
  if (text === 'user:*') return { kind: 'wildcard' };
  if (text.startsWith('user:')) {
    const userId = text.slice('user:'.length);
    const problem = nameProblem(() => checkUserId('the user', userId));
    return problem === undefined ? { kind: 'user', userId } : { problem };
  }
  const hash = text.indexOf('#');
  if (text.endsWith(':*')) {
    const namespace = text.slice(0, -2);
    const problem = nameProblem(() => checkNamespace("the subject's namespace", namespace));
    return problem === undefined ? { kind: 'wildcardOf', namespace } : { problem };
  }
  const object = objectFromText(hash < 0 ? text : text.slice(0, hash));
  if ('problem' in object)
    return {
      problem: 'the subject must read user:…, namespace:object#relation or namespace:object',
    };
  const relation = hash < 0 ? '' : text.slice(hash + 1);
  const isItself = hash < 0 || (object.objectId === '*' && relation === '');
  const problem = isItself
    ? undefined
    : nameProblem(() => checkRelation("the subject's relation", relation));
  return problem === undefined ? { kind: 'set', ...object, relation } : { problem };
}

/** Text of a tuple or query: inverse of `tupleFromText`. */
export function textOfTuple({ namespace, objectId, relation, subject }: TupleKey): string {
  return `${namespace}:${objectId}#${relation}@${subjectText(subject)}`;
}

function nameProblem(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}
