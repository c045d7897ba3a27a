import type { Subject } from './relation-tuple.ts';

/**
 * A subject as people write it: `user:alice`, `user:*` for every user, `group:eng#member`, `folder:1` for the object itself,
 * `group:*` for every object of a namespace. An object whose id is `*` is `group:*#`, so that a text has one meaning.
 */
export function subjectText(subject: Subject): string {
  switch (subject.kind) {
    case 'user':
      return `user:${subject.userId}`;
    case 'wildcard':
      return 'user:*';
    case 'wildcardOf':
      return `${subject.namespace}:*`;
    case 'set': {
      const { namespace, objectId, relation } = subject;
      if (relation !== '') return `${namespace}:${objectId}#${relation}`;
      return objectId === '*' ? `${namespace}:*#` : `${namespace}:${objectId}`;
    }
  }
}
