import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  PRIVATE_ENTITY,
  PRIVATE_NAME,
  PRIVATE_NODE,
  PrivateIds,
} from '../../src/engine/overlay/private-ids.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME, WILDCARD_NODE } from '../../src/model/tuple-reader.ts';

const user = (userId: string): Subject => ({ kind: 'user', userId });
const set = (objectId: string, relation: string, namespace = 'group'): Subject => ({
  kind: 'set',
  namespace,
  objectId,
  relation,
});

/** Over an index that holds one tuple: doc:d#viewer@user:u. */
function ids(): { readonly base: TupleIndex; readonly own: PrivateIds } {
  const base = new TupleIndex();
  const tuple = { namespace: 'doc', objectId: 'd', relation: 'viewer', subject: user('u') };
  base.applyChange('insert', tuple);
  return { base, own: new PrivateIds(base) };
}

describe('what the reader has', () => {
  test('keeps its ids, and becomes nothing of ours', () => {
    const { base, own } = ids();
    const [doc, viewer] = [base.nameId('doc'), base.nameId('viewer')];
    expect([own.internName('doc'), own.nameId('viewer')]).toEqual([doc, viewer]);
    const entity = base.entityId(doc, 'd');
    expect(own.entityId(doc, 'd')).toBe(entity);
    const node = base.nodeId(entity, viewer);
    expect([own.nodeId(entity, viewer), own.internNode('doc', 'd', 'viewer')]).toEqual([
      node,
      node,
    ]);
    expect(own.baseNode('doc', 'd', 'viewer')).toBe(node);
    const userNode = base.nodeId(base.entityId(EMPTY_NAME, 'u'), EMPTY_NAME);
    expect([own.internSubject(user('u')), own.baseSubject(user('u'))]).toEqual([
      userNode,
      userNode,
    ]);
    expect([own.firstNodeOf(entity), own.entitiesOf(doc)]).toEqual([0, []]);
  });

  test('is nothing where it is not there', () => {
    const { base, own } = ids();
    expect(own.nameId('none')).toBe(-1);
    expect(own.entityId(-1, 'd')).toBe(0);
    expect(own.entityId(base.nameId('doc'), 'none')).toBe(0);
    expect(own.nodeId(0, base.nameId('viewer'))).toBe(0);
    const entity = base.entityId(base.nameId('doc'), 'd');
    expect([own.nodeId(entity, -1), own.nodeId(entity, base.nameId('doc'))]).toEqual([0, 0]);
    expect(own.baseNode('none', 'd', 'viewer')).toBe(0);
    expect(own.baseNode('doc', 'none', 'viewer')).toBe(0);
    expect(own.baseNode('doc', 'd', 'none')).toBe(0);
    expect(own.baseSubject(set('d', 'viewer', 'doc'))).toBe(own.baseNode('doc', 'd', 'viewer'));
    expect(own.baseSubject(set('d', 'viewer'))).toBe(0);
    expect(own.baseSubject(user('none'))).toBe(0);
  });
});

describe('what it lacks', () => {
  test('has ids that are none of its own, each one, which are found again', () => {
    const { base, own } = ids();
    const names = ['a', 'b', 'a'].map((name) => own.internName(name));
    expect(names).toEqual([PRIVATE_NAME, PRIVATE_NAME + 1, PRIVATE_NAME]);
    expect([own.nameId('a'), own.nameId('b')]).toEqual([PRIVATE_NAME, PRIVATE_NAME + 1]);
    expect(names.map((name) => own.nameText(name))).toEqual(['a', 'b', 'a']);
    expect(base.nameId('a')).toBe(-1);
  });

  test('names of ours on objects of its own, and the other way round', () => {
    const { base, own } = ids();
    const [doc, viewer] = [base.nameId('doc'), base.nameId('viewer')];
    const entity = base.entityId(doc, 'd');
    const [first, second] = ['fresh', 'newer'].map((name) => own.internNode('doc', 'd', name));
    expect([first, second]).toEqual([PRIVATE_NODE, PRIVATE_NODE + 1]);
    expect(own.nodeId(entity, own.nameId('fresh'))).toBe(first);
    expect(own.nodeId(entity, own.nameId('newer'))).toBe(second);
    expect(own.entityOf(first as number)).toBe(entity);
    expect(own.relationOf(second as number)).toBe(own.nameId('newer'));
    expect(own.internNode('doc', 'd', 'fresh')).toBe(first);

    const other = own.internNode('doc', 'e', 'viewer');
    const [fresh] = own.entitiesOf(doc);
    expect([fresh, own.entityId(doc, 'e')]).toEqual([PRIVATE_ENTITY, PRIVATE_ENTITY]);
    expect(own.nodeId(PRIVATE_ENTITY, viewer)).toBe(other);
    expect(own.nodeId(PRIVATE_ENTITY, doc)).toBe(0);
    expect([own.namespaceOf(PRIVATE_ENTITY), own.entityText(PRIVATE_ENTITY)]).toEqual([doc, 'e']);
    // The same text in another namespace is another object.
    const elsewhere = own.internNode('group', 'e', 'viewer');
    expect([elsewhere === other, own.namespaceOf(own.entityOf(elsewhere))]).toEqual([
      false,
      own.nameId('group'),
    ]);
    expect(own.entitiesOf(doc)).toEqual([PRIVATE_ENTITY]);
    own.internNode('doc', 'f', 'viewer');
    expect(own.entitiesOf(doc).map((one) => own.entityText(one))).toEqual(['e', 'f']);
  });

  test('nodes of an object are gone through from the last one', () => {
    const { own } = ids();
    const [a, other, b, c] = [
      own.internNode('doc', 'd', 'a'),
      own.internNode('doc', 'x', 'a'),
      own.internNode('doc', 'd', 'b'),
      own.internNode('doc', 'd', 'c'),
    ];
    own.internNode('doc', 'd', 'a');
    const entity = own.entityOf(a);
    const walked: number[] = [];
    for (let node = own.firstNodeOf(entity); node !== 0; node = own.nextNodeOf(node)) {
      walked.push(node);
    }
    expect(walked).toEqual([c, b, a]);
    expect([own.firstNodeOf(own.entityOf(other)), own.nextNodeOf(other)]).toEqual([other, 0]);
  });

  test('subjects of each kind', () => {
    const { own } = ids();
    expect(own.internSubject({ kind: 'wildcard' })).toBe(WILDCARD_NODE);
    expect(own.baseSubject({ kind: 'wildcard' })).toBe(WILDCARD_NODE);
    const fresh = own.internSubject(user('fresh'));
    expect(own.entityText(own.entityOf(fresh))).toBe('fresh');
    expect([own.namespaceOf(own.entityOf(fresh)), own.relationOf(fresh)]).toEqual([
      EMPTY_NAME,
      EMPTY_NAME,
    ]);
    const group = own.internSubject(set('g', 'member'));
    expect(own.internNode('group', 'g', 'member')).toBe(group);
  });

  test('what was never given is a fault', () => {
    const { own } = ids();
    expect(() => own.nameText(PRIVATE_NAME)).toThrow('never given');
    expect(() => own.namespaceOf(PRIVATE_ENTITY)).toThrow('never given');
    expect(() => own.entityText(PRIVATE_ENTITY)).toThrow('never given');
  });
});
