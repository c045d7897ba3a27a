import { describe, expect, test } from 'vitest';
import { type ListEnd, listObjects } from '../../src/engine/lists/list-objects.ts';
import { StepsTask } from '../../src/engine/lists/steps-task.ts';
import { evaluatorOf, listed, NOW_MS, READS } from './banned-docs.ts';
import { finish } from './support.ts';

describe('what a list says of undecided objects', () => {
  const maybe = 'with consent_granted';

  test('is said by the page in whose range they are', () => {
    const evaluator = evaluatorOf([
      ...['b', 'd', 'f', 'h'].map((id) => `doc:${id}#viewer@user:u`),
      // c: reached by a condition alone; e: denied for one; g: denied for certain.
      `doc:c#viewer@user:u ${maybe}`,
      'doc:e#viewer@user:u',
      `doc:e#revoked@user:u ${maybe}`,
      'doc:g#viewer@user:u',
      'doc:g#revoked@user:u',
    ]);
    const pages: unknown[] = [];
    let after = '';
    do {
      const { ids, next, isUndecided } = listed(evaluator, 'can_view', { idsMax: 1, after });
      pages.push([ids.join(), isUndecided]);
      after = next;
    } while (after !== '');
    expect(pages).toEqual([
      ['b', false],
      ['d', true],
      ['f', true],
      ['h', false],
    ]);
    const whole = listed(evaluator, 'can_view');
    expect([whole.ids, whole.isUndecided]).toEqual([['b', 'd', 'f', 'h'], true]);
    const decidedAll = listed(evaluator, 'can_view', { contextJson: '{"consent":false}' });
    expect([decidedAll.ids, decidedAll.isUndecided]).toEqual([['b', 'd', 'e', 'f', 'h'], false]);
  });

  test.each([
    [4, ['a'], false],
    [3, [], true],
    [2, [], true],
  ])('counts what lies beyond a depth bound of %i', (depthMax, wanted, isUndecided) => {
    const tuples = [
      'doc:a#parent@folder:1#x',
      'folder:1#parent@folder:2#x',
      'folder:2#viewer@group:g#member',
      'group:g#member@user:u',
    ];
    const list = listed(evaluatorOf(tuples, depthMax), 'viewer');
    expect([list.ids, list.isUndecided]).toEqual([wanted, isUndecided]);
  });

  test('counts what members of a userset might hold, and denials that a second search finds undecided', () => {
    const subject = { kind: 'set', namespace: 'group', objectId: 'g', relation: 'member' } as const;
    const listOf = (tuples: readonly string[]) => {
      const { general } = evaluatorOf(tuples);
      const scope = general.scope('any', '', NOW_MS, READS);
      const page = { after: '', idsMax: Infinity };
      const query = { namespace: 'doc', relation: 'can_view', subject, contextJson: '', page };
      const ids: string[] = [];
      const task = new StepsTask(
        scope,
        listObjects(general, scope, query, (id) => ids.push(id)),
      );
      return [ids, finish<ListEnd>(task).isUndecided];
    };
    const certain = ['group:g#member@user:u', 'doc:a#viewer@user:u'];
    expect(listOf(certain)).toEqual([['a'], false]);
    expect(listOf([...certain, 'doc:b#viewer@user:v'])).toEqual([['a'], false]);
    const member = [...certain, `group:g#member@user:v ${maybe}`, 'doc:b#viewer@user:v'];
    expect(listOf(member)).toEqual([['a'], true]);
    const ban = [...certain, 'doc:b#viewer@user:u', `doc:b#revoked@user:u ${maybe}`];
    expect(listOf(ban)).toEqual([['a'], true]);
  });

  test('is assumed where the budget ends before it is known', () => {
    const evaluator = evaluatorOf([
      'doc:a#viewer@user:u',
      `group:g#member@user:u ${maybe}`,
      ...Array.from({ length: 300 }, (_, i) => `folder:${i}#open@group:g#member`),
      ...Array.from({ length: 300 }, (_, i) => `folder:${i}#revoked@group:g#member`),
      ...Array.from({ length: 300 }, (_, i) => `doc:x${i}#parent@folder:${i}#x`),
    ]);
    const known = listed(evaluator, 'inherited');
    expect([known.ids, known.isUndecided]).toEqual([[], true]);
    const list = listed(evaluator, 'viewer', { reads: 20 });
    expect([list.ids, list.isUndecided]).toEqual([['a'], true]);
    const enough = listed(evaluator, 'viewer');
    expect([enough.ids, enough.isUndecided]).toEqual([['a'], false]);
  });
});

describe('a page whose budget ends within it', () => {
  const evaluator = evaluatorOf([
    ...Array.from({ length: 60 }, (_, i) => `doc:${100 + i}#viewer@user:u`),
    // Each rests on groups of its own: four reads.
    ...Array.from({ length: 60 }, (_, i) => `doc:${100 + i}#revoked@group:a${i}#member`),
    ...Array.from({ length: 60 }, (_, i) => `group:a${i}#member@group:b${i}#member`),
    ...Array.from({ length: 60 }, (_, i) => `group:b${i}#member@user:${i >= 40 ? 'u' : 'v'}`),
  ]);
  const advice =
    "raise the project's max_check_reads, or take pages: gatehouse.v1.QueryService/ListObjects with a smaller page_size";

  test('is shorter, and the next one goes on', () => {
    const whole = listed(evaluator, 'can_view');
    expect(whole.ids).toHaveLength(40);
    const reads = Math.ceil(whole.reads * 0.75);
    const ids: string[] = [];
    let pages = 0;
    for (let after = ''; pages === 0 || after !== ''; pages++) {
      const page = listed(evaluator, 'can_view', { reads, idsMax: 1_000, after });
      expect(page.ids.length).toBeGreaterThan(0);
      expect(page.isUndecided).toBe(false);
      ids.push(...page.ids);
      after = page.next;
    }
    expect(ids).toEqual(whole.ids);
    expect(pages).toBeGreaterThan(1);
  });

  test('is an error where it has no object yet, or is to have all of them', () => {
    const { reads } = listed(evaluator, 'viewer');
    const message = `evaluation of doc#can_view exceeded the read budget of ${reads + 1}: ${advice}`;
    expect(() => listed(evaluator, 'can_view', { reads: reads + 1, idsMax: 5 })).toThrow(message);
    const most = listed(evaluator, 'can_view').reads - 1;
    expect(() => listed(evaluator, 'can_view', { reads: most })).toThrow(advice);
    const task = evaluator.startListObjects(
      { namespace: 'doc', relation: 'can_view', userId: 'u' },
      NOW_MS,
      reads + 1,
    );
    expect(() => finish(task)).toThrow(message);
  });

  test('says that pages do not help where the way back alone takes too much', () => {
    expect(() => listed(evaluator, 'can_view', { reads: 10, idsMax: 1 })).toThrow(
      "exceeded the read budget of 10: raise the project's max_check_reads; a smaller page_size does not help",
    );
  });
});
