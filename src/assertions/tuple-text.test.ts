import { describe, expect, test } from 'vitest';
import { type Subject, subjectText } from '../model/relation-tuple.ts';
import { subjectFromText, textOfTuple, tupleFromText } from './tuple-text.ts';

const set = (namespace: string, objectId: string, relation = ''): Subject => ({
  kind: 'set',
  namespace,
  objectId,
  relation,
});

describe('a subject and its text', () => {
  test.each<[string, Subject]>([
    ['user:ann', { kind: 'user', userId: 'ann' }],
    ['user:*', { kind: 'wildcard' }],
    ['folder:*', { kind: 'wildcardOf', namespace: 'folder' }],
    ['folder:*#', set('folder', '*')],
    ['folder:*#viewer', set('folder', '*', 'viewer')],
    ['folder:a*', set('folder', 'a*')],
    ['folder:plans', set('folder', 'plans')],
    ['folder:a:b#viewer', set('folder', 'a:b', 'viewer')],
  ])('%s', (text, subject) => {
    expect(subjectFromText(text)).toEqual(subject);
    expect(subjectText(subject)).toBe(text);
    const key = { namespace: 'doc', objectId: 'd', relation: 'viewer', subject };
    expect(tupleFromText(textOfTuple(key))).toEqual(key);
  });

  test.each(['folder:', 'folder:plans#', 'Folder:*', ':*', '*', `${'n'.repeat(65)}:*`, 'folder'])(
    'is refused: %s',
    (text) => {
      expect(subjectFromText(text)).toHaveProperty('problem');
    },
  );
});
