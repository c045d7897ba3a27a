import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { CHECK_ALLOWED, CHECK_DENIED } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { HOT_GENERAL, HOT_PLAIN, HotModel } from '../../src/engine/hot/hot-model.ts';
import {
  MEMBERSHIPS_NONE,
  MembershipCache,
  isMember,
  SUMMARY_OPEN,
} from '../../src/engine/hot/membership-cache.ts';
import {
  ROW_COUNTS,
  ROW_ENTRIES,
  ROW_OPAQUE,
  ObjectCache,
} from '../../src/engine/hot/object-cache.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject, TupleKey } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      folder: {
        relations: {
          parent: {},
          editor: {},
          viewer: {
            union: [
              { this: {} },
              { computed: 'editor' },
              { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
            ],
          },
          blocked: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'blocked' } },
          },
        },
      },
    },
  }),
);

/** `folder:f#viewer@user:u`, `group:g#member@group:h#member`, `folder:f#parent@folder:e`. */
function key(text: string): TupleKey {
  const [object = '', subjectText = ''] = text.split('@');
  const [namespace = '', rest = ''] = object.split(':');
  const [objectId = '', relation = ''] = rest.split('#');
  const [subjectNamespace = '', subjectRest = ''] = subjectText.split(':');
  const [subjectId = '', subjectRelation = ''] = subjectRest.split('#');
  const subject: Subject =
    subjectText === '*'
      ? { kind: 'wildcard' }
      : subjectNamespace === 'user'
        ? { kind: 'user', userId: subjectId }
        : {
            kind: 'set',
            namespace: subjectNamespace,
            objectId: subjectId,
            relation: subjectRelation,
          };
  return { namespace, objectId, relation, subject };
}

function indexOf(...tuples: string[]): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', key(tuple));
  return index;
}

function nodeOf(index: TupleIndex, namespace: string, id: string, relation: string): number {
  const entity = index.entityId(index.nameId(namespace), id);
  return index.nodeId(entity, index.nameId(relation));
}

function cachesOf(index: TupleIndex, bytesMax = 1 << 16) {
  const model = new HotModel(new BoundModel(MODEL, index));
  const memberships = new MembershipCache(index, model, bytesMax);
  return { model, memberships, objects: new ObjectCache(index, model, memberships, bytesMax) };
}

describe('HotModel', () => {
  const index = indexOf('folder:f#viewer@user:u');
  const { model } = cachesOf(index);
  const single = (namespace: string, relation: string): number =>
    model.single(index.nameId(namespace), index.nameId(relation));

  test('a relation of own tuples alone is plain, also one that no model names', () => {
    expect(single('group', 'member')).toBe(HOT_PLAIN);
    expect(single('folder', 'editor')).toBe(HOT_PLAIN);
    expect(model.single(index.pinName('unknown'), index.pinName('relation'))).toBe(HOT_PLAIN);
  });

  test('an exclusion is general', () => {
    expect(single('folder', 'reader')).toBe(HOT_GENERAL);
  });

  test('a union is one state that covers what it is computed from', () => {
    const state = model.states[single('folder', 'viewer')];
    expect(state?.namespace).toBe(index.nameId('folder'));
    expect(state?.weight).toBe(2);
    const action = (relation: string): number => state?.actions[index.nameId(relation)] ?? 0;
    expect(action('viewer')).toBe(1);
    expect(action('editor')).toBe(1);
    expect(action('parent') & 1).toBe(0);
    const target = action('parent') >> 1;
    expect(model.ofTarget(target, index.nameId('folder'))).toBe(single('folder', 'viewer'));
    expect(action('blocked')).toBe(0);
  });
});

describe('ClosureCache', () => {
  const groups = [
    'group:a#member@group:b#member',
    'group:b#member@group:c#member',
    'group:c#member@user:u',
    'folder:f#viewer@group:a#member',
  ];

  test('holds the groups of a user and of those above them', () => {
    const index = indexOf(...groups, 'group:lonely#member@user:u');
    const { memberships } = cachesOf(index);
    const start = memberships.membershipsOf(nodeOf(index, '', 'u', ''));
    for (const [group, held] of [
      ['a', true],
      ['b', true],
      ['c', true],
      ['lonely', false], // nothing refers to it
    ] as const) {
      const node = nodeOf(index, 'group', group, 'member');
      expect([group, isMember(memberships.arena, start, node)]).toEqual([group, held]);
    }
    expect(isMember(memberships.arena, start, nodeOf(index, 'folder', 'f', 'viewer'))).toBe(false);
  });

  test('a summary is the height; cycles, wildcards and qualified edges leave it open', () => {
    const index = indexOf(...groups, 'group:w#member@*', 'group:x#member@group:y#member');
    index.applyChange('insert', key('group:y#member@group:x#member'));
    index.applyChange('insert', { ...key('group:q#member@group:c#member'), expiresAtUs: 1n });
    const { memberships } = cachesOf(index);
    const height = (group: string): number =>
      memberships.summaryOf(nodeOf(index, 'group', group, 'member'));
    expect([height('a'), height('b'), height('c')]).toEqual([3, 2, 1]);
    expect([height('w'), height('x'), height('q')]).toEqual([
      SUMMARY_OPEN,
      SUMMARY_OPEN,
      SUMMARY_OPEN,
    ]);
    expect(memberships.summaryOf(nodeOf(index, 'folder', 'f', 'viewer'))).toBe(SUMMARY_OPEN);
  });

  test('a user with a qualified edge has no closure', () => {
    const index = indexOf(...groups);
    index.applyChange('insert', { ...key('group:b#member@user:u'), expiresAtUs: 1n });
    const { memberships } = cachesOf(index);
    expect(memberships.membershipsOf(nodeOf(index, '', 'u', ''))).toBe(MEMBERSHIPS_NONE);
  });

  test('stays within its bytes and right however many users there are', () => {
    const index = indexOf('folder:f#viewer@group:g0#member');
    for (let i = 0; i < 3000; i++) {
      index.applyChange('insert', key(`group:g${i % 7}#member@user:u${i}`));
      if (i < 7) index.applyChange('insert', key(`folder:f${i}#viewer@group:g${i}#member`));
    }
    const { memberships } = cachesOf(index);
    for (let i = 0; i < 6000; i++) {
      const start = memberships.membershipsOf(nodeOf(index, '', `u${i % 3000}`, ''));
      const node = nodeOf(index, 'group', `g${(i % 3000) % 7}`, 'member');
      expect(isMember(memberships.arena, start, node)).toBe(true);
    }
    expect(memberships.bytes).toBeLessThanOrEqual(1 << 16);
  });
});

describe('ObjectCache', () => {
  test('a line tells users, groups and parents; a wildcard makes it opaque', () => {
    const index = indexOf(
      'folder:f#editor@user:u',
      'folder:f#viewer@group:g#member',
      'folder:f#parent@folder:e',
      'folder:open#viewer@*',
    );
    const { model, objects } = cachesOf(index);
    const folder = index.nameId('folder');
    const viewer = model.single(folder, index.nameId('viewer'));
    const state = model.states[viewer];
    if (state === undefined) throw new Error('no state');
    const at = objects.rowOf(index.entityId(folder, 'f'), state);
    expect(objects.bytes).toBe(objects.lines.byteLength);
    expect(objects.lines[at + ROW_COUNTS]).toBe(1 | (1 << 16) | (1 << 24));
    expect([...objects.lines.subarray(at + ROW_ENTRIES, at + ROW_ENTRIES + 4)]).toEqual([
      nodeOf(index, '', 'u', ''),
      nodeOf(index, 'group', 'g', 'member'),
      index.entityId(folder, 'e'),
      viewer,
    ]);
    const open = objects.rowOf(index.entityId(folder, 'open'), state);
    expect(objects.lines[open + ROW_COUNTS]).toBe(ROW_OPAQUE);
  });
});

describe('caches of an evaluator over changes', () => {
  test('each change is seen by the next check, with caches warm before it', () => {
    const index = indexOf(
      'folder:f#parent@folder:e',
      'folder:e#viewer@group:a#member',
      'group:a#member@group:b#member',
      'group:b#member@user:u',
      'group:b#member@user:other',
      'folder:other#viewer@user:u',
    );
    const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
    const evaluator = new Evaluator(index, MODEL, options, systemClock);
    const check = (): number => {
      const entity = index.entityId(index.nameId('folder'), 'f');
      const user = index.entityId(EMPTY_NAME, 'u');
      return evaluator.checkUser(entity, index.nameId('viewer'), user, 0, 10_000);
    };
    const steps: readonly (readonly ['insert' | 'delete', string, number])[] = [
      ['delete', 'group:b#member@user:u', CHECK_DENIED],
      ['insert', 'group:b#member@user:u', CHECK_ALLOWED],
      ['delete', 'group:a#member@group:b#member', CHECK_DENIED],
      ['insert', 'folder:f#viewer@user:u', CHECK_ALLOWED],
      ['delete', 'folder:f#viewer@user:u', CHECK_DENIED],
      ['insert', 'group:a#member@group:b#member', CHECK_ALLOWED],
      ['delete', 'folder:f#parent@folder:e', CHECK_DENIED],
      ['insert', 'folder:f#viewer@*', CHECK_ALLOWED],
      ['delete', 'folder:f#viewer@*', CHECK_DENIED],
      ['insert', 'folder:f#viewer@group:b#member', CHECK_ALLOWED],
    ];
    expect(check()).toBe(CHECK_ALLOWED);
    for (const [op, tuple, answer] of steps) {
      index.applyChange(op, key(tuple));
      expect([tuple, check(), check()]).toEqual([tuple, answer, answer]);
    }
    // More changes than the index remembers, none of which concerns the answer but the last.
    for (let i = 0; i < 200; i++) index.applyChange('insert', key(`group:n${i}#member@user:n`));
    expect(check()).toBe(CHECK_ALLOWED);
    for (let i = 0; i < 200; i++) index.applyChange('delete', key(`group:n${i}#member@user:n`));
    index.applyChange('delete', key('folder:f#viewer@group:b#member'));
    expect(check()).toBe(CHECK_DENIED);
  });
});
