import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ConcurrencyGroups,
  concurrencySetting,
  type ConcurrencySetting,
} from './concurrency-groups.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

type Member = {
  readonly number: number;
  readonly group: string;
  state: 'waiting' | 'in' | 'evicted' | 'left';
  isAsked: boolean;
  leave: () => void;
};

function joining(
  groups: ConcurrencyGroups,
  members: Member[],
  setting: ConcurrencySetting,
): Member {
  const member: Member = {
    number: members.length,
    group: setting.group.toLowerCase(),
    state: 'waiting',
    isAsked: false,
    leave: () => undefined,
  };
  members.push(member);
  member.leave = groups.join(setting, {
    enter: () => {
      expect(member.state).toBe('waiting');
      member.state = 'in';
    },
    evict: () => {
      if (member.state === 'waiting') member.state = 'evicted';
      else member.isAsked = true;
    },
  });
  return member;
}

const settings = fc.record({
  group: fc.constantFrom('g', 'G', 'h'),
  isCancellingInProgress: fc.boolean(),
  queue: fc.constantFrom('single' as const, 'max' as const),
});
const moves = fc.array(
  fc.oneof(
    settings.map((setting) => ({ kind: 'join' as const, setting })),
    fc.nat().map((pick) => ({ kind: 'leave' as const, pick })),
  ),
  { maxLength: 60, size: 'max' },
);

describe(`concurrency groups (SEED=${SEED})`, () => {
  test('one of a group is in, nobody waits without one, and they enter in order', () => {
    fc.assert(
      fc.property(moves, (script) => {
        const groups = new ConcurrencyGroups();
        const members: Member[] = [];
        for (const move of script) {
          if (move.kind === 'join') joining(groups, members, move.setting);
          else {
            const open = members.filter(({ state }) => state === 'in' || state === 'waiting');
            const chosen = open[move.pick % Math.max(1, open.length)];
            const waitingBefore = members.filter(
              ({ state, group }) => state === 'waiting' && group === chosen?.group,
            );
            const wasIn = chosen?.state === 'in';
            if (chosen !== undefined) chosen.state = 'left';
            chosen?.leave();
            chosen?.leave();
            if (wasIn && waitingBefore[0] !== undefined) expect(waitingBefore[0].state).toBe('in');
          }
          for (const group of ['g', 'h']) {
            const own = members.filter((member) => member.group === group);
            const inside = own.filter(({ state }) => state === 'in');
            expect(inside.length).toBeLessThanOrEqual(1);
            if (own.some(({ state }) => state === 'waiting')) expect(inside).toHaveLength(1);
          }
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  test('queue: max has room for 100; the next one goes', () => {
    const groups = new ConcurrencyGroups();
    const members: Member[] = [];
    const setting = { group: 'g', isCancellingInProgress: false, queue: 'max' } as const;
    for (let count = 0; count < 102; count += 1) joining(groups, members, setting);
    expect(members.map(({ state }) => state)).toEqual([
      'in',
      ...Array.from({ length: 100 }, () => 'waiting'),
      'evicted',
    ]);
  });

  test('the forms of concurrency', () => {
    const plain = { isCancellingInProgress: false, queue: 'single' };
    expect(concurrencySetting('g')).toEqual({ group: 'g', ...plain });
    expect(concurrencySetting({ group: 7 })).toEqual({ group: '7', ...plain });
    expect(concurrencySetting({ group: 'g', 'cancel-in-progress': true, queue: 'max' })).toEqual({
      group: 'g',
      isCancellingInProgress: true,
      queue: 'max',
    });
    expect(concurrencySetting('')).toBeUndefined();
    for (const wrong of [
      { group: ['g'] },
      { group: 'g', 'cancel-in-progress': 'true' },
      { group: 'g', queue: 'all' },
    ]) {
      expect(() => concurrencySetting(wrong)).toThrow('concurrency:');
    }
  });
});
