import { describe, expect, test } from 'vitest';
import { BACKSTOP_CYCLE, BACKSTOP_DEPTH } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { checkBoth, createIndex, finish, READS_DEFAULT } from './support.ts';

const NOW_MS = 1_700_000_000_000;
const MODEL = JSON.stringify({
  namespaces: {
    doc: {
      relations: {
        viewer: {},
        banned: {},
        reader: { exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } } },
        both: { intersection: [{ computed: 'viewer' }, { computed: 'banned' }] },
      },
    },
    gate: {
      relations: {
        extra: {},
        pass: {
          intersection: [
            { this: {} },
            {
              union: [
                { computed: 'extra' },
                { tuple_to_userset: { tupleset: 'parent', computed: 'pass' } },
              ],
            },
          ],
        },
        parent: {},
      },
    },
  },
});

class Shard {
  readonly index = createIndex();
  readonly evaluator: Evaluator;

  constructor(depthMax = 256) {
    const options = { depthMax, membershipBytesMax: 1 << 20 };
    this.evaluator = new Evaluator(this.index.reader, parseModel(MODEL), options, systemClock);
  }

  put(object: string, relation: string, subject: string): void {
    const [namespace = '', objectId = ''] = object.split(':');
    this.index.insert({ namespace, objectId, relation, subject: subjectOf(subject) });
  }

  check(object: string, relation: string, subject: string, reads = READS_DEFAULT): boolean {
    const [namespace = '', objectId = ''] = object.split(':');
    const input = { namespace, objectId, relation, subject: subjectOf(subject), contextJson: '' };
    return checkBoth(this.evaluator, this.index.reader, input, NOW_MS, reads);
  }

  /** Backstops of the general path. */
  backstopsOf(object: string, relation: string, subject: string): number {
    const [namespace = '', objectId = ''] = object.split(':');
    const input = { namespace, objectId, relation, subject: subjectOf(subject), contextJson: '' };
    const task = this.evaluator.startCheck(input, NOW_MS, READS_DEFAULT);
    finish(task);
    return task.backstops;
  }

  list(namespace: string, relation: string, userId: string): readonly string[] {
    const query = { namespace, relation, userId };
    return finish(this.evaluator.startListObjects(query, NOW_MS, READS_DEFAULT));
  }
}

function subjectOf(text: string): Subject {
  if (text === '*') return { kind: 'wildcard' };
  const match = /^(\w+):(.+)#(\w*)$/.exec(text);
  if (match === null) return { kind: 'user', userId: text };
  const [, namespace = '', objectId = '', relation = ''] = match;
  return { kind: 'set', namespace, objectId, relation };
}

describe('graphs that kill naive evaluators, within the default budget', () => {
  test('1,000 groups in one cycle', () => {
    const shard = new Shard();
    for (let i = 0; i < 1000; i++) {
      shard.put(`group:g${i}`, 'member', `group:g${(i + 1) % 1000}#member`);
    }
    shard.put('group:g100', 'member', 'near');
    shard.put('group:g900', 'member', 'far');
    shard.put('doc:d', 'viewer', 'group:g0#member');
    expect(shard.check('doc:d', 'viewer', 'near')).toBe(true);
    expect(shard.check('doc:d', 'viewer', 'far')).toBe(false); // more than 256 nodes away
    expect(shard.check('doc:d', 'viewer', 'stranger')).toBe(false);
    expect(shard.list('doc', 'viewer', 'near')).toEqual(['d']);
    expect(shard.list('doc', 'viewer', 'far')).toEqual([]);
    expect(shard.check('doc:d', 'viewer', 'group:g900#member')).toBe(true); // holds `near`
  });

  test('a ban over the cycle that the depth bound cuts denies', () => {
    const shard = new Shard();
    for (let i = 0; i < 1000; i++) {
      shard.put(`group:g${i}`, 'member', `group:g${(i + 1) % 1000}#member`);
    }
    shard.put('doc:d', 'banned', 'group:g0#member');
    shard.put('doc:d', 'viewer', 'someone');
    expect(shard.check('doc:d', 'reader', 'someone')).toBe(false);
    expect(shard.backstopsOf('doc:d', 'reader', 'someone') & BACKSTOP_DEPTH).toBe(BACKSTOP_DEPTH);
  });

  test('a clique of 50 groups', () => {
    const shard = new Shard();
    for (let i = 0; i < 50; i++) {
      for (let k = 0; k < 50; k++) {
        if (i !== k) shard.put(`group:g${i}`, 'member', `group:g${k}#member`);
      }
    }
    shard.put('group:g49', 'member', 'inside');
    shard.put('doc:d', 'viewer', 'group:g0#member');
    shard.put('doc:e', 'viewer', 'outside');
    shard.put('doc:e', 'banned', 'group:g0#member');
    expect(shard.check('doc:d', 'viewer', 'inside')).toBe(true);
    expect(shard.check('doc:d', 'viewer', 'outside')).toBe(false);
    expect(shard.check('doc:e', 'reader', 'outside')).toBe(true);
    expect(shard.list('group', 'member', 'inside')).toHaveLength(50);
  });

  test('a clique of 50 through intersections', () => {
    const shard = new Shard();
    for (let i = 0; i < 50; i++) {
      shard.put(`gate:g${i}`, 'pass', 'user');
      for (let k = 0; k < 50; k++) if (i !== k) shard.put(`gate:g${i}`, 'parent', `gate:g${k}#`);
    }
    expect(shard.check('gate:g0', 'pass', 'user')).toBe(false); // nothing founds the circle
    expect(shard.backstopsOf('gate:g0', 'pass', 'user') & BACKSTOP_CYCLE).toBe(BACKSTOP_CYCLE);
    shard.put('gate:g7', 'extra', 'user');
    expect(shard.check('gate:g0', 'pass', 'user')).toBe(true);
    expect(shard.list('gate', 'pass', 'user')).toHaveLength(50);
  });

  test('2^16 paths through groups, and through intersections', () => {
    const shard = new Shard();
    for (let i = 0; i < 16; i++) {
      for (const side of ['l', 'r']) {
        shard.put(`group:t${i}`, 'member', `group:${side}${i}#member`);
        shard.put(`group:${side}${i}`, 'member', `group:t${i + 1}#member`);
        shard.put(`gate:t${i}`, 'parent', `gate:${side}${i}#`);
        shard.put(`gate:${side}${i}`, 'parent', `gate:t${i + 1}#`);
        shard.put(`gate:${side}${i}`, 'pass', 'end');
      }
      shard.put(`gate:t${i}`, 'pass', 'end');
    }
    shard.put('group:t16', 'member', 'end');
    shard.put('gate:t16', 'pass', 'end');
    shard.put('gate:t16', 'extra', 'other');
    expect(shard.check('group:t0', 'member', 'end', 200)).toBe(true);
    expect(shard.check('group:t0', 'member', 'nobody', 200)).toBe(false);
    expect(shard.backstopsOf('group:t0', 'member', 'nobody')).toBe(0);
    expect(shard.check('gate:t0', 'pass', 'end', 400)).toBe(false);
    shard.put('gate:t16', 'extra', 'end');
    expect(shard.check('gate:t0', 'pass', 'end', 400)).toBe(true);
  });

  test('a deny over a set of 100,000 members', () => {
    const shard = new Shard();
    for (let i = 0; i < 100_000; i++) shard.put('group:all', 'member', `u${i}`);
    for (let i = 0; i < 1000; i++) shard.put('doc:d', 'viewer', `v${i}`);
    shard.put('doc:d', 'banned', 'v1');
    shard.put('doc:e', 'viewer', 'group:all#member');
    shard.put('doc:e', 'viewer', 'vip');
    shard.put('doc:e', 'banned', 'group:all#member');
    expect(shard.check('doc:d', 'viewer', 'group:all#member')).toBe(false);
    expect(shard.check('doc:d', 'reader', 'group:all#member')).toBe(false);
    expect(shard.check('doc:e', 'reader', 'vip')).toBe(true);
    expect(shard.check('doc:e', 'reader', 'u99999')).toBe(false);
    shard.put('doc:d', 'viewer', 'u5');
    expect(shard.check('doc:d', 'viewer', 'group:all#member')).toBe(true);
    expect(shard.check('doc:d', 'reader', 'group:all#member')).toBe(true);
  });

  test('two blocked groups that contain each other block nobody else', () => {
    const shard = new Shard();
    shard.put('doc:d', 'banned', 'group:a#member');
    shard.put('group:a', 'member', 'group:b#member');
    shard.put('group:b', 'member', 'group:a#member');
    shard.put('group:b', 'member', 'bad');
    for (const user of ['good', 'bad']) shard.put('doc:d', 'viewer', user);
    expect(shard.check('doc:d', 'reader', 'good')).toBe(true);
    expect(shard.check('doc:d', 'reader', 'bad')).toBe(false);
  });

  test('an exhausted budget names relation and limit', () => {
    const shard = new Shard();
    for (let i = 0; i < 200; i++) shard.put(`group:g${i}`, 'member', `group:g${i + 1}#member`);
    const attempt = (): boolean => shard.check('group:g0', 'member', 'nobody', 100);
    expect(attempt).toThrow(/group#member.*100/);
  });
});

describe('the depth bound', () => {
  /** A chain of `nodes` usersets; the last one holds the user directly. */
  function chain(nodes: number): Shard {
    const shard = new Shard();
    for (let i = 1; i < nodes; i++) shard.put(`group:g${i}`, 'member', `group:g${i + 1}#member`);
    shard.put(`group:g${nodes}`, 'member', 'user');
    return shard;
  }

  test.each([
    [255, true],
    [256, true],
    [257, false],
  ])('a chain of %i nodes: %s', (nodes, allowed) => {
    const shard = chain(nodes);
    expect(shard.check('group:g1', 'member', 'user')).toBe(allowed);
    expect(shard.list('group', 'member', 'user').includes('g1')).toBe(allowed);
    expect(shard.list('group', 'member', 'user')).toHaveLength(Math.min(nodes, 256));
    const backstops = shard.backstopsOf('group:g1', 'member', 'user');
    expect(backstops).toBe(allowed ? 0 : BACKSTOP_DEPTH);
  });

  test('a ban at the bound excludes, and beyond it denies everybody', () => {
    // doc#reader and doc#banned are nodes of the path too.
    const within = chain(254);
    const beyond = chain(255);
    for (const shard of [within, beyond]) {
      shard.put('doc:d', 'banned', 'group:g1#member');
      for (const user of ['user', 'other']) shard.put('doc:d', 'viewer', user);
      expect(shard.check('doc:d', 'reader', 'user')).toBe(false);
    }
    expect(within.check('doc:d', 'reader', 'other')).toBe(true);
    expect(beyond.check('doc:d', 'reader', 'other')).toBe(false);
  });

  test('a way round over fewer nodes counts, whichever is seen first', () => {
    const shard = chain(300);
    shard.put('group:g1', 'member', 'group:g200#member');
    expect(shard.check('group:g1', 'member', 'user')).toBe(true);
    expect(shard.list('group', 'member', 'user')).toContain('g1');
  });

  test('intersections carry the remaining depth', () => {
    for (const [nodes, allowed] of [
      [254, true],
      [255, false],
    ] as const) {
      const shard = chain(nodes);
      shard.put('doc:d', 'viewer', 'user');
      shard.put('doc:d', 'banned', 'group:g1#member');
      expect(shard.check('doc:d', 'both', 'user')).toBe(allowed);
      expect(shard.list('doc', 'both', 'user')).toEqual(allowed ? ['d'] : []);
    }
  });
});
