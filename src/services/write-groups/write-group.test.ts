import { describe, expect, test } from 'vitest';
import { packChange } from '../../model/packed-changes.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import { argumentsOfResend, planGroup, readGroupResults, type ShardWrite } from './write-group.ts';

let made = 0;
function write(shard: string, ...updates: readonly string[]): ShardWrite {
  const number = ++made;
  const [projectId = '', tenantId = ''] = shard.split('/');
  return {
    shard: { projectId, tenantId },
    updates: updates.map(changeOf),
    meta: { rpc: 'rpc', actingUserId: null, requestId: `r${number}`, deadlineMs: Infinity },
    commitId: `c${number}`,
    forkId: `${number}00`,
  };
}

/** `+doc:a#viewer@u` or `-doc:a#viewer@group:g#member`. */
function changeOf(text: string): TupleChange {
  const [, sign, namespace = '', objectId = '', relation = '', subjectText = ''] =
    /^([+-])(\w+):(\w+)#(\w+)@(.+)$/.exec(text) ?? [];
  const set = /^(\w+):(\w+)#(\w*)$/.exec(subjectText);
  const subject =
    set === null
      ? ({ kind: 'user', userId: subjectText } as const)
      : ({
          kind: 'set',
          namespace: set[1] ?? '',
          objectId: set[2] ?? '',
          relation: set[3] ?? '',
        } as const);
  const tuple = { namespace, objectId, relation, subject };
  return sign === '+' ? { op: 'insert', tuple } : { op: 'delete', tuple };
}

/** Which writes of a group have an effect for sure, and which the database decides. */
function effectsOf(...writes: readonly ShardWrite[]) {
  const plan = planGroup(writes);
  return plan.changes.map((text) =>
    text === null ? null : (JSON.parse(text) as unknown[]).length,
  );
}

describe('planGroup', () => {
  test('an insert counts, a deletion only where the group itself inserted before', () => {
    const tuple = 'doc:a#viewer@u';
    expect(effectsOf(write('p/t', `+${tuple}`))).toEqual([1]);
    expect(effectsOf(write('p/t', `-${tuple}`))).toEqual([null]);
    expect(effectsOf(write('p/t', `+${tuple}`), write('p/t', `-${tuple}`))).toEqual([1, 1]);
    const twice = [write('p/t', `+${tuple}`), write('p/t', `-${tuple}`), write('p/t', `-${tuple}`)];
    expect(effectsOf(...twice)).toEqual([1, 1, null]);
    expect(effectsOf(...twice, write('p/t', `+${tuple}`), write('p/t', `-${tuple}`))).toEqual([
      1,
      1,
      null,
      1,
      1,
    ]);
  });

  test.each([
    ['+doc:a#viewer@u', '-doc:b#viewer@u'],
    ['+doc:a#viewer@u', '-file:a#viewer@u'],
    ['+doc:a#viewer@u', '-doc:a#editor@u'],
    ['+doc:a#viewer@u', '-doc:a#viewer@v'],
    ['+doc:a#viewer@doc:u#m', '-doc:a#viewer@group:u#m'],
    ['+doc:a#viewer@doc:u#m', '-doc:a#viewer@doc:v#m'],
    ['+doc:a#viewer@doc:u#m', '-doc:a#viewer@doc:u#n'],
    ['+doc:a#viewer@doc:u#m', '-doc:a#viewer@u'],
  ])('%s says nothing of %s', (inserted, deleted) => {
    expect(effectsOf(write('p/t', inserted), write('p/t', deleted))).toEqual([1, null]);
    expect(effectsOf(write('p/t', inserted), write('p/t', inserted.replace('+', '-')))).toEqual([
      1, 1,
    ]);
  });

  test('nor does the same tuple in another shard', () => {
    for (const other of ['p/other', 'other/t', 'pt/', 'p/']) {
      const writes = [write('p/t', '+doc:a#viewer@u'), write(other, '-doc:a#viewer@u')];
      expect(effectsOf(...writes)).toEqual([1, null]);
    }
  });

  test('a write of which one update is unsure is left to the database as a whole', () => {
    expect(effectsOf(write('p/t', '+doc:a#viewer@u', '-doc:b#viewer@u'))).toEqual([null]);
    // Nothing is left of the second deletion for sure, so that the insert alone is the change.
    expect(
      effectsOf(
        write('p/t', '+doc:b#viewer@u'),
        write('p/t', '-doc:b#viewer@u'),
        write('p/t', '+doc:a#viewer@u', '-doc:b#viewer@u'),
      ),
    ).toEqual([1, 1, 1]);
  });

  test('shards are locked in sorted order, and each counts its own seqs', () => {
    const writes = [
      write('q/a', '+doc:a#viewer@u'),
      write('p/b', '+doc:a#viewer@u'),
      write('p/a', '-doc:a#viewer@u'),
      write('q/a', '+doc:b#viewer@u'),
      write('p/b', '-doc:c#viewer@u'),
    ];
    const plan = planGroup(writes, (projectId) => (projectId === 'p' ? 7 : 0));
    expect(plan.shardOfWrite).toEqual([3, 2, 1, 3, 2]);
    expect(plan.offsets).toEqual([1, 1, 0, 2, 1]);
    const [isResend, projects, tenants, rules, counts, forkIds, shardOf] = plan.values;
    expect([isResend, projects, tenants]).toEqual([false, '{"p","p","q"}', '{"a","b","a"}']);
    expect(rules).toBe('{7,7,0}');
    expect([counts, shardOf]).toEqual(['{0,1,2}', '{3,2,1,3,2}']);
    // The fork id of a shard is that of its last write that has an effect for sure.
    const forkIdOf = (back: number): string => `${made - back}00`;
    expect(forkIds).toBe(`{0,${forkIdOf(3)},${forkIdOf(1)}}`);
  });

  test('only the last state of a tuple is stored, with what it carries', () => {
    const carried: TupleChange = {
      op: 'insert',
      tuple: {
        ...changeOf('+doc:a#viewer@u').tuple,
        expiresAtUs: 17n,
        conditionName: 'age_at_least',
        conditionParams: '{"min_age":18}',
      },
    };
    const plan = planGroup([
      write('p/t', '+doc:a#viewer@u', '+doc:b#viewer@group:g#member', '+doc:c#viewer@u'),
      { ...write('p/t'), updates: [carried, changeOf('-doc:c#viewer@u')] },
    ]);
    const written = plan.values.slice(-17, -7);
    expect(written).toEqual([
      '{2,1}',
      '{"doc","doc"}',
      '{"a","b"}',
      '{"viewer","viewer"}',
      '{"","group"}',
      '{"u","g"}',
      '{"","member"}',
      '{17,NULL}',
      '{"age_at_least",NULL}',
      '{"{\\"min_age\\":18}",NULL}',
    ]);
    const deleted = plan.values.slice(-7);
    expect(deleted).toEqual(['{1}', '{"doc"}', '{"c"}', '{"viewer"}', '{""}', '{"u"}', '{""}']);
  });

  test('updates of unsure writes are given with what is known of each', () => {
    const plan = planGroup([
      write('p/t', '+doc:a#viewer@u'),
      write('p/t', '-doc:a#viewer@u'),
      write('p/t', '-doc:a#viewer@u', '+doc:b#viewer@u', '-doc:c#viewer@group:g#member'),
    ]);
    const [writes, effects] = plan.values.slice(15, 17);
    expect([writes, effects]).toEqual(['{3,3,3}', '{0,1,-1}']);
    const packed = ['-doc:a#viewer@u', '+doc:b#viewer@u', '-doc:c#viewer@group:g#member']
      .map((text) => packChange(changeOf(text)))
      .map((text) => text.replaceAll('"', '\\"'));
    expect(plan.values[17]).toBe(`{"${packed.join('","')}"}`);
    expect(plan.values.slice(18, 24)).toEqual([
      '{"doc","doc","doc"}',
      '{"a","b","c"}',
      '{"viewer","viewer","viewer"}',
      '{"","","group"}',
      '{"u","u","g"}',
      '{"","","member"}',
    ]);
    expect(plan.values.slice(13, 14)).toEqual(['{t,t,f}']);
  });

  test('several updates of one write are one change', () => {
    expect(effectsOf(write('p/t', '+doc:a#viewer@u', '+doc:b#viewer@u'))).toEqual([2]);
  });

  test('each write is told by its commit id, its stamp and who made it', () => {
    const writes = [write('p/t', '+doc:a#viewer@u'), write('q/t', '-doc:a#viewer@u')];
    const named = { ...(writes[0] as ShardWrite) };
    const first = { ...named, meta: { ...named.meta, rpc: 'Other', actingUserId: 'anne' } };
    const plan = planGroup([first, writes[1] as ShardWrite]);
    const [a, b] = [made - 1, made];
    expect(plan.values.slice(7, 12)).toEqual([
      `{c${a},c${b}}`,
      `{${a}00,${b}00}`,
      '{"Other","rpc"}',
      '{"anne",NULL}',
      `{"r${a}","r${b}"}`,
    ]);
    // A shard without an effect for sure keeps the fork id that it has.
    expect(plan.values.slice(4, 6)).toEqual(['{1,0}', `{${a}00,0}`]);
    expect(plan.values[14]).toBe(`{"${(plan.changes[0] ?? '').replaceAll('"', '\\"')}",NULL}`);
  });

  test('what is sent again is the same but for its mark', () => {
    const plan = planGroup([write('p/t', '+doc:a#viewer@u')]);
    expect(argumentsOfResend(plan)).toEqual([true, ...plan.values.slice(1)]);
  });
});

describe('readGroupResults', () => {
  const planned = () =>
    planGroup([
      write('q/t', '+doc:a#viewer@u'),
      write('p/t', '-doc:a#viewer@u'),
      write('q/t', '+doc:b#viewer@u'),
    ]);
  type Row = Parameters<typeof readGroupResults>[1];
  const row: Row = {
    was_applied: false,
    epochs: '7,8',
    bases: '40,90',
    offsets: null,
    effects: null,
    made_changes: null,
    settings: '3,5',
  };

  test('each write has the seq of its shard at its place', () => {
    const plan = planned();
    const results = readGroupResults(plan, row);
    expect(results.map(({ epoch, revision }) => [epoch, revision])).toEqual([
      [8, 91],
      [7, 40],
      [8, 92],
    ]);
    expect(results.map(({ settingsVersion }) => settingsVersion)).toEqual([5, 3, 5]);
    const [first, , third] = plan.changes;
    expect(results.map(({ changes }) => changes)).toEqual([first, null, third]);
    expect([first, third]).toEqual([expect.any(String), expect.any(String)]);
  });

  test('where the database decided, its word counts', () => {
    const plan = planned();
    const decided = { offsets: '1,1,2', effects: '1,1,0', made_changes: [null, '[9]', null] };
    const results = readGroupResults(plan, { ...row, ...decided });
    expect(results.map(({ revision, changes }) => [revision, changes])).toEqual([
      [91, plan.changes[0]],
      [41, '[9]'],
      [92, null],
    ]);
  });

  test('no row of a group is a fault, not a result', () => {
    const plan = planned();
    expect(() => readGroupResults(plan, { ...row, epochs: null })).toThrow('row of a group');
    expect(() => readGroupResults(plan, { ...row, bases: null })).toThrow('row of a group');
  });
});
