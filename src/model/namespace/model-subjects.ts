import { modelError, nameOf, objectOf, refuseUnknown, suggestion } from '../model-json.ts';
import type { SubjectType } from './model-shape.ts';

/** Maximum number of entries in one list of subjects. */
export const MODEL_SUBJECTS_MAX = 64;
const USER = 'user';
const WILDCARD = 'user:*';

const user: SubjectType = {
  kind: 'user',
  namespace: '',
  relation: '',
  condition: '',
  expires: undefined,
};
const groupMembers: SubjectType = {
  ...user,
  kind: 'userset',
  namespace: 'group',
  relation: 'member',
};
const people = [user, groupMembers];

/** Subjects admitted by the built-in namespaces that a typed document does not define. */
export const BUILT_IN_SUBJECTS: ReadonlyMap<
  string,
  ReadonlyMap<string, readonly SubjectType[]>
> = new Map([
  [
    'workspace',
    new Map([
      ['owner', people],
      ['admin', people],
      ['member', people],
      ['guest', people],
    ]),
  ],
  ['group', new Map([['member', people]])],
]);

/** Parses the `subjects` of a relation. Errors: MODEL_INVALID. Cost: O(entries). */
export function parseSubjects(value: unknown, path: string): readonly SubjectType[] {
  if (!Array.isArray(value)) throw modelError(path, 'must be a list');
  if (value.length === 0) throw modelError(path, 'must not be empty');
  if (value.length > MODEL_SUBJECTS_MAX) {
    throw modelError(path, `holds more than ${MODEL_SUBJECTS_MAX} entries`);
  }
  const types = value.map((entry, index) => parseSubject(entry, `${path}[${index}]`));
  const positions = new Map<string, number>();
  types.forEach((type, index) => {
    const key = `${subjectText(type)} ${type.condition} ${type.expires}`;
    const first = positions.get(key);
    if (first !== undefined) {
      throw modelError(`${path}[${index}]`, `is the same as entry [${first}]`);
    }
    positions.set(key, index);
  });
  return types;
}

/** Formats a type as documents do: `user`, `user:*`, `group`, `group:*`, `group#member`. */
export function subjectText(type: SubjectType): string {
  switch (type.kind) {
    case 'user':
      return USER;
    case 'wildcard':
      return WILDCARD;
    case 'object':
      return type.namespace;
    case 'wildcardOf':
      return `${type.namespace}:*`;
    case 'userset':
      return `${type.namespace}#${type.relation}`;
  }
}

function parseSubject(value: unknown, path: string): SubjectType {
  if (typeof value === 'string') return { ...parseType(value, path), condition: '' };
  const document = objectOf(value, path);
  refuseUnknown(document, ['type', 'condition', 'expires'], path);
  const text = document['type'];
  if (text === undefined) throw modelError(`${path}.type`, 'is required');
  if (typeof text !== 'string') throw modelError(`${path}.type`, 'must be a string');
  const type = parseType(text, `${path}.type`);
  const hasCondition = Object.hasOwn(document, 'condition');
  const condition = hasCondition ? nameOf(document['condition'], `${path}.condition`) : '';
  if (!Object.hasOwn(document, 'expires')) return { ...type, condition };
  const expires = document['expires'];
  if (typeof expires !== 'boolean') throw modelError(`${path}.expires`, 'must be true or false');
  return { ...type, condition, expires };
}

function parseType(text: string, path: string): SubjectType {
  if (text === USER) return user;
  if (text === WILDCARD) return { ...user, kind: 'wildcard' };
  if (text.endsWith(':*')) {
    return { ...user, kind: 'wildcardOf', namespace: nameOf(text.slice(0, -2), path) };
  }
  if (text.includes(':')) {
    const forms = 'user, user:*, NAMESPACE, NAMESPACE:* or NAMESPACE#RELATION';
    throw modelError(path, `must be ${forms}${suggestion(text, [USER, WILDCARD])}`);
  }
  const at = text.indexOf('#');
  const namespace = nameOf(at < 0 ? text : text.slice(0, at), path);
  if (at < 0) return { ...user, kind: 'object', namespace };
  return { ...user, kind: 'userset', namespace, relation: nameOf(text.slice(at + 1), path) };
}
