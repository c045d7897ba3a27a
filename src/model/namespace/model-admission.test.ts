import { describe, expect, test } from 'vitest';
import type { RelationTuple, Subject } from '../relation-tuple.ts';
import { hasWriteRules, problemOfTuple } from './model-admission.ts';
import { parseModel } from './namespace-model.ts';

const model = parseModel(
  JSON.stringify({
    namespaces: {
      doc: {
        relations: {
          parent: { subjects: ['folder'] },
          banned: { subjects: ['user'] },
          staff: { subjects: ['group:*', 'folder'] },
          viewer: {
            subjects: [
              'user',
              'group#member',
              { type: 'user:*', expires: true },
              { type: 'user', condition: 'not_after', expires: false },
              { type: 'folder#viewer', condition: 'ip_in_cidrs' },
            ],
          },
          guest: { subjects: ['user'] },
          host: {
            subjects: [
              'user',
              { type: 'user', condition: 'not_after' },
              { type: 'user', condition: 'scope_in' },
            ],
          },
          reader: { computed: 'viewer' },
        },
      },
      folder: { open: true, relations: { viewer: {}, owner: { subjects: ['user'] } } },
    },
  }),
);

const ONCE = 1n;
const user: Subject = { kind: 'user', userId: 'alice' };
const everybody: Subject = { kind: 'wildcard' };
const every = (namespace: string): Subject => ({ kind: 'wildcardOf', namespace });
const set = (namespace: string, relation: string): Subject => ({
  kind: 'set',
  namespace,
  objectId: 'x',
  relation,
});

function problem(
  relation: string,
  subject: Subject,
  more: Partial<RelationTuple> = {},
): string | undefined {
  const tuple = { namespace: 'doc', objectId: 'a', relation, subject, ...more };
  const found = problemOfTuple(model, tuple);
  return found === undefined ? undefined : `${found.field}: ${found.message}`;
}

describe('problemOfTuple', () => {
  test.each<[string, Subject, Partial<RelationTuple>]>([
    ['viewer', user, {}],
    ['viewer', user, { expiresAtUs: ONCE }],
    ['viewer', set('group', 'member'), {}],
    ['viewer', everybody, { expiresAtUs: ONCE }],
    ['viewer', user, { conditionName: 'not_after', conditionParams: '{}' }],
    ['viewer', set('folder', 'viewer'), { conditionName: 'ip_in_cidrs' }],
    ['parent', set('folder', ''), {}],
    ['staff', every('group'), {}],
    ['staff', set('folder', ''), {}],
    ['anything', every('ghost'), { namespace: 'unknown' }],
    ['anything', user, { namespace: 'unknown' }],
    ['anything', set('a', 'b'), { namespace: 'folder' }],
    ['viewer', set('a', 'b'), { namespace: 'folder' }],
    ['holder', user, { namespace: 'seat' }],
    ['member', set('group', 'member'), { namespace: 'group' }],
    ['owner', user, { namespace: 'workspace' }],
  ])('admits %s@%o %o', (relation, subject, more) => {
    expect(problem(relation, subject, more)).toBeUndefined();
  });

  test.each<[string, Subject, Partial<RelationTuple>, string]>([
    [
      'baned',
      user,
      {},
      'relation: the model declares no relation "baned" on doc; did you mean "banned"?',
    ],
    ['reader', user, {}, 'relation: no tuples are stored on doc#reader: it follows from others'],
    ['banned', set('group', ''), {}, 'subject: doc#banned admits user, not group'],
    ['banned', set('group', 'member'), {}, 'subject: doc#banned admits user, not group#member'],
    ['banned', everybody, {}, 'subject: doc#banned admits user, not user:*'],
    ['parent', set('folder', 'viewer'), {}, 'subject: doc#parent admits folder, not folder#viewer'],
    ['parent', user, {}, 'subject: doc#parent admits folder, not user'],
    ['parent', every('folder'), {}, 'subject: doc#parent admits folder, not folder:*'],
    ['staff', every('folder'), {}, 'subject: doc#staff admits group:*, folder, not folder:*'],
    ['staff', set('group', ''), {}, 'subject: doc#staff admits group:*, folder, not group'],
    ['staff', everybody, {}, 'subject: doc#staff admits group:*, folder, not user:*'],
    ['banned', every('user'), {}, 'subject: doc#banned admits user, not user:*'],
    [
      'viewer',
      set('group', ''),
      {},
      'subject: doc#viewer admits user, group#member, user:*, folder#viewer, not group',
    ],
    ['viewer', everybody, {}, 'expires_at: doc#viewer admits user:* with an expiry only'],
    [
      'viewer',
      user,
      { conditionName: 'not_after', expiresAtUs: ONCE },
      'expires_at: doc#viewer admits user without an expiry only',
    ],
    [
      'viewer',
      user,
      { conditionName: 'other' },
      'condition_name: doc#viewer admits user without a condition, or with the condition "not_after"',
    ],
    [
      'guest',
      user,
      { conditionName: 'not_after' },
      'condition_name: doc#guest admits user without a condition',
    ],
    [
      'host',
      user,
      { conditionName: 'other' },
      'condition_name: doc#host admits user without a condition, or with the condition "not_after" or "scope_in"',
    ],
    [
      'viewer',
      set('folder', 'viewer'),
      {},
      'condition_name: doc#viewer admits folder#viewer with the condition "ip_in_cidrs"',
    ],
    ['owner', set('a', 'b'), { namespace: 'folder' }, 'subject: folder#owner admits user, not a#b'],
    [
      'membr',
      user,
      { namespace: 'group' },
      'relation: the model declares no relation "membr" on group; did you mean "member"?',
    ],
  ])('refuses %s: %o', (relation, subject, more, message) => {
    expect(problem(relation, subject, more)).toBe(message);
  });

  test('a model that is not typed admits all', () => {
    const untyped = parseModel('{"namespaces":{"doc":{"relations":{"viewer":{}}}}}');
    const tuple = { namespace: 'doc', objectId: 'a', relation: 'vewer', subject: user };
    expect(problemOfTuple(untyped, tuple)).toBeUndefined();
    expect(hasWriteRules(untyped)).toBe(false);
    expect(hasWriteRules(model)).toBe(true);
  });
});
