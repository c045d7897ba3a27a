import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { HotModel } from '../../src/engine/hot/hot-model.ts';
import {
  MEMBERSHIPS_NONE,
  MembershipCache,
  isMember,
  SLOT_OFFSET,
  SUMMARY_OPEN,
} from '../../src/engine/hot/membership-cache.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { keyOf } from '../support/tuple-text.ts';

const MODEL = parseModel(
  JSON.stringify({ schema_version: 1, namespaces: { group: { relations: { member: {} } } } }),
);
const FIRST_BYTES = 8192;
const PAGE_BYTES = 1024;

function indexOf(...tuples: readonly string[]): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  return index;
}

function closuresOf(index: TupleIndex, bytesMax = 1 << 16): MembershipCache {
  return new MembershipCache(index, new HotModel(new BoundModel(MODEL, index)), bytesMax);
}

const userOf = (index: TupleIndex, id: string): number =>
  index.nodeId(index.entityId(EMPTY_NAME, id), EMPTY_NAME);
const groupOf = (index: TupleIndex, id: string): number =>
  index.nodeId(index.entityId(index.nameId('group'), id), index.nameId('member'));

/** Users u0, u1, …, each in `count` groups of his own that something names. */
function crowd(users: number, count: number): TupleIndex {
  const index = new TupleIndex();
  for (let i = 0; i < users; i++) {
    for (let k = 0; k < count; k++) {
      index.applyChange('insert', keyOf(`group:g${i}-${k}#member@user:u${i}`));
      index.applyChange('insert', keyOf(`folder:f#viewer@group:g${i}-${k}#member`));
    }
  }
  return index;
}

test('a closure ends before the next one and begins after the one before it', () => {
  const full = 0xffff_ffff;
  // The nodes 7, 9 and 11 of another closure, one closure with the node 5, and the head of a third.
  const arena = Uint32Array.of(7, 9, 11, 1, full, full, 5, 42, full, full);
  const asked = [5, 7, 9, 11, 1, full, 42];
  expect(asked.filter((node) => isMember(arena, 3, node))).toEqual([5]);
});

test('a closure leaves those that were built before it whole', () => {
  const index = crowd(3, 4);
  const memberships = closuresOf(index);
  const starts = [0, 1, 2].map((i) => memberships.membershipsOf(userOf(index, `u${i}`)));
  for (const [user, start] of starts.entries()) {
    for (let i = 0; i < 3; i++) {
      for (let k = 0; k < 4; k++) {
        const isIn = isMember(memberships.arena, start, groupOf(index, `g${i}-${k}`));
        expect([user, i, k, isIn]).toEqual([user, i, k, i === user]);
      }
    }
  }
});

test('closures as large as can be fill the room to its end, and are whole', () => {
  const index = crowd(30, 64);
  const memberships = closuresOf(index);
  for (let i = 0; i < 30; i++) {
    const start = memberships.membershipsOf(userOf(index, `u${i}`));
    for (let k = 0; k < 64; k++) {
      const isIn = isMember(memberships.arena, start, groupOf(index, `g${i}-${k}`));
      expect([i, k, isIn]).toEqual([i, k, true]);
    }
  }
});

test('a user in no group has a closure, the same one each time', () => {
  const index = indexOf('folder:f#viewer@user:u', 'folder:f#viewer@user:v');
  const memberships = closuresOf(index);
  const first = memberships.membershipsOf(userOf(index, 'u'));
  expect(first).toBe(0);
  expect(memberships.membershipsOf(userOf(index, 'v'))).toBe(3);
  expect(memberships.membershipsOf(userOf(index, 'u'))).toBe(first);
});

test('the slot that is read ahead tells where the closure lies', () => {
  const index = crowd(2, 1);
  const memberships = closuresOf(index);
  for (const id of ['u0', 'u1']) {
    const user = userOf(index, id);
    const start = memberships.membershipsOf(user);
    expect(memberships.slots[memberships.homeOf(user)]).toBe(user);
    expect(memberships.slots[memberships.homeOf(user) + SLOT_OFFSET]).toBe(start);
  }
});

test('closures take half of the bytes, and the bytes are those of the arrays', () => {
  const index = crowd(600, 1);
  const memberships = closuresOf(index);
  expect(memberships.bytes).toBe(FIRST_BYTES);
  expect(memberships.arena.byteLength + memberships.slots.byteLength).toBe(FIRST_BYTES);
  for (let i = 0; i < 600; i++) {
    memberships.membershipsOf(userOf(index, `u${i}`));
    expect(memberships.arena.byteLength + memberships.slots.byteLength).toBe(memberships.bytes);
  }
  expect(memberships.bytes).toBe(1 << 15);
});

test('summaries take half of the bytes and then start anew, and stay right', () => {
  const index = new TupleIndex();
  const count = 12_000;
  for (let i = 0; i < count; i++) index.applyChange('insert', keyOf(`group:g${i}#member@user:u`));
  // Room for eight pages also where fewer bytes are asked for.
  const memberships = closuresOf(index, 1);
  const pagesOf = (i: number): number => {
    expect([i, memberships.summaryOf(groupOf(index, `g${i}`))]).toEqual([i, 1]);
    return (memberships.bytes - FIRST_BYTES) / PAGE_BYTES;
  };
  // From the last page down: those before it do not exist yet.
  const seen: number[] = [];
  for (let i = count - 1; i >= 0; i -= 100) {
    const pages = pagesOf(i);
    if (seen.at(-1) !== pages) seen.push(pages);
  }
  expect(seen.slice(0, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 1, 2]);
  const before = memberships.bytes;
  pagesOf(0);
  pagesOf(1);
  expect(memberships.bytes).toBe(before);
});

test('measuring one node leaves what is known of those beside it', () => {
  const index = indexOf('group:a#member@user:u', 'group:b#member@user:u');
  const memberships = closuresOf(index);
  expect(memberships.summaryOf(groupOf(index, 'a'))).toBe(1);
  index.applyChange('insert', keyOf('group:a#member@group:b#member'));
  expect(memberships.summaryOf(groupOf(index, 'b'))).toBe(1);
  expect(memberships.summaryOf(groupOf(index, 'a'))).toBe(1);
});

test('the height is that of the highest part, wherever it stands', () => {
  const parts = ['group:a#member@group:c#member', 'group:c#member@user:u', 'group:b#member@user:u'];
  const top = ['group:top#member@group:a#member', 'group:top#member@group:b#member'];
  for (const tuples of [
    [...parts, ...top],
    [...parts.toReversed(), ...top.toReversed()],
    [...top, ...parts],
    [...top.toReversed(), ...parts],
  ]) {
    const index = indexOf(...tuples);
    expect(closuresOf(index).summaryOf(groupOf(index, 'top'))).toBe(3);
  }
});

test.each([
  [256, 1],
  [257, SUMMARY_OPEN],
])('a group with %i objects, which count for nothing, has the height %i', (count, height) => {
  const index = new TupleIndex();
  for (let i = 0; i < count; i++) {
    index.applyChange('insert', keyOf(`group:a#member@folder:f${i}#`));
  }
  expect(closuresOf(index).summaryOf(groupOf(index, 'a'))).toBe(height);
});

test('a grant that expires leaves the closure as it is, unless it is one of a group that is named', () => {
  for (const qualified of ['folder:other#viewer@user:u', 'group:apart#member@user:u']) {
    const index = indexOf('group:g#member@user:u', 'folder:f#viewer@group:g#member');
    index.applyChange('insert', { ...keyOf(qualified), expiresAtUs: 1n });
    const memberships = closuresOf(index);
    const start = memberships.membershipsOf(userOf(index, 'u'));
    expect(start).not.toBe(MEMBERSHIPS_NONE);
    expect(isMember(memberships.arena, start, groupOf(index, 'g'))).toBe(true);
  }
  const index = indexOf(
    'group:g#member@user:u',
    'folder:f#viewer@group:g#member',
    'folder:f#viewer@group:late#member',
  );
  index.applyChange('insert', { ...keyOf('group:late#member@user:u'), expiresAtUs: 1n });
  expect(closuresOf(index).membershipsOf(userOf(index, 'u'))).toBe(MEMBERSHIPS_NONE);
});
