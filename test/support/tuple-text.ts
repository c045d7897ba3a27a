import type { Subject, TupleKey } from '../../src/model/relation-tuple.ts';

/**
 * A tuple from its text: `folder:f#viewer@user:u`, `folder:f#viewer@*`, `group:g#member@group:h#member`;
 * without a relation the subject is the object itself: `folder:f#parent@folder:e`.
 */
export function keyOf(text: string): TupleKey {
  const [object = '', subjectText = ''] = text.split('@');
  const [namespace = '', rest = ''] = object.split(':');
  const [objectId = '', relation = ''] = rest.split('#');
  return { namespace, objectId, relation, subject: subjectOf(subjectText) };
}

function subjectOf(text: string): Subject {
  if (text === '*') return { kind: 'wildcard' };
  const [namespace = '', rest = ''] = text.split(':');
  const [objectId = '', relation = ''] = rest.split('#');
  if (namespace === 'user') return { kind: 'user', userId: objectId };
  return { kind: 'set', namespace, objectId, relation };
}
