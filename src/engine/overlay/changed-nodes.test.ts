import { expect, test } from 'vitest';
import { EDGE_QUALIFIED } from '../../model/tuple-reader.ts';
import { ChangedNodes, LIST_REVERSE, LIST_SETS, LIST_USERS } from './changed-nodes.ts';

const QUALIFIER = { expiresAtMs: 5, conditionName: '', conditionParams: '' };
const [NODE, USER, SET] = [7, 20, 30];

test('nothing is changed of what was not', () => {
  const changed = new ChangedNodes();
  expect(changed.edge(NODE, USER)).toBeUndefined();
  expect(changed.listOf(NODE, LIST_USERS)).toBeUndefined();
  expect(changed.growthOf(NODE, LIST_USERS)).toBe(0);
  expect(changed.handleOf(NODE, LIST_USERS)).toBe(-1);
  expect(() => changed.listOfHandle(0)).toThrow('never given');
});

test('an added tuple stands in one list of its node, and in the reverse one of its subject', () => {
  const changed = new ChangedNodes();
  changed.set(NODE, USER, LIST_USERS, false, null);
  changed.set(NODE, SET, LIST_SETS, false, QUALIFIER);
  expect([changed.edge(NODE, USER), changed.edge(NODE, SET)]).toEqual([null, QUALIFIER]);
  expect(changed.edge(NODE, NODE)).toBeUndefined();
  expect(changed.edge(USER, NODE)).toBeUndefined();
  const none = new Map();
  expect(changed.listOf(NODE, LIST_USERS)).toMatchObject({ replaced: none, added: [USER] });
  expect(changed.listOf(NODE, LIST_SETS)).toMatchObject({
    replaced: none,
    added: [(SET | EDGE_QUALIFIED) >>> 0],
  });
  expect(changed.listOf(NODE, LIST_REVERSE)).toBeUndefined();
  expect(changed.listOf(USER, LIST_REVERSE)).toMatchObject({ replaced: none, added: [NODE] });
  expect(changed.listOf(SET, LIST_REVERSE)).toMatchObject({
    added: [(NODE | EDGE_QUALIFIED) >>> 0],
  });
  changed.set(NODE, USER + 1, LIST_USERS, false, null);
  expect(changed.growthOf(NODE, LIST_USERS)).toBe(2);
  expect([changed.growthOf(USER, LIST_REVERSE), changed.growthOf(USER, LIST_USERS)]).toEqual([
    1, 0,
  ]);
});

test('a stored one is replaced where it stands, or taken out', () => {
  const changed = new ChangedNodes();
  changed.set(NODE, USER, LIST_USERS, true, QUALIFIER);
  changed.remove(NODE, SET, LIST_SETS);
  const entry = (USER | EDGE_QUALIFIED) >>> 0;
  expect(changed.listOf(NODE, LIST_USERS)).toEqual({
    replaced: new Map([[USER, entry]]),
    added: [],
    growth: 0,
  });
  expect(changed.listOf(USER, LIST_REVERSE)).toEqual({
    replaced: new Map([[NODE, (NODE | EDGE_QUALIFIED) >>> 0]]),
    added: [],
    growth: 0,
  });
  expect([changed.edge(NODE, USER), changed.edge(NODE, SET)]).toEqual([QUALIFIER, 'removed']);
  const gone = (member: number) => ({ replaced: new Map([[member, 0]]), added: [], growth: -1 });
  expect(changed.listOf(NODE, LIST_SETS)).toEqual(gone(SET));
  expect(changed.listOf(SET, LIST_REVERSE)).toEqual(gone(NODE));
  expect(changed.growthOf(NODE, LIST_SETS)).toBe(-1);
  // What is taken out of one list is in no other one.
  changed.remove(NODE, SET + 1, LIST_SETS);
  expect(changed.listOf(NODE, LIST_SETS)?.replaced).toEqual(
    new Map([SET, SET + 1].map((one) => [one, 0])),
  );
  expect(changed.listOf(SET + 1, LIST_REVERSE)).toEqual(gone(NODE));
});

test('a number stands for each list of each changed node', () => {
  const changed = new ChangedNodes();
  changed.remove(NODE, SET, LIST_SETS);
  changed.set(NODE, USER, LIST_USERS, false, null);
  const seen = new Set<number>();
  for (const node of [NODE, SET, USER]) {
    for (const list of [LIST_USERS, LIST_SETS, LIST_REVERSE] as const) {
      const handle = changed.handleOf(node, list);
      expect(changed.listOfHandle(handle)).toEqual({ node, list });
      expect(handle).toBeGreaterThanOrEqual(0);
      seen.add(handle);
    }
  }
  expect([seen.size, Math.max(...seen)]).toEqual([9, 8]);
  expect(() => changed.listOfHandle(9)).toThrow('never given');
});
