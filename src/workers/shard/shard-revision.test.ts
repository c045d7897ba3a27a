import { expect, test } from 'vitest';
import type { CarriedChanges } from '../../model/packed-changes.ts';
import type { ReadJob } from '../jobs/job.ts';
import type { ShardIndex } from './ports.ts';
import { ShardRevision } from './shard-revision.ts';

/** An index at revision 5 of epoch 2, taken in with the settings of version 3, and what was applied to it. */
function begun(): { readonly revision: ShardRevision; readonly applied: string[] } {
  const applied: string[] = [];
  const revision = new ShardRevision();
  const index = { apply: (changes: string) => void applied.push(changes) };
  revision.begin(index as unknown as ShardIndex, {
    epoch: 2,
    revision: 5,
    forkId: '50',
    settingsVersion: 3,
    retainedFrom: 0,
  });
  return { revision, applied };
}

const change = (revision: number, settingsVersion = 3) => ({
  revision,
  forkId: String(revision * 10),
  settingsVersion,
  changes: `changes ${revision}`,
});

const job = (minRevision: number, forkId = '', epoch = 2, settingsVersion = 3): ReadJob =>
  ({ minRevision, scope: { epoch, forkId, settingsVersion } }) as unknown as ReadJob;

test('a change moves it on, and raises its settings, never lowers them', () => {
  const { revision, applied } = begun();
  expect(revision.settingsVersion).toBe(3);
  for (const [seq, version, wanted] of [
    [6, 2, 3],
    [7, 5, 5],
    [8, 4, 5],
  ] as const) {
    revision.apply(change(seq, version));
    expect(revision.position).toEqual({ epoch: 2, revision: seq, forkId: String(seq * 10) });
    expect(revision.settingsVersion).toBe(wanted);
  }
  expect(applied).toEqual(['changes 6', 'changes 7', 'changes 8']);
});

test('what is not loaded takes no change, and stays where it was', () => {
  const { revision, applied } = begun();
  revision.drop();
  expect(() => revision.apply(change(6))).toThrow('the shard is not loaded');
  expect([revision.index, revision.position.revision, applied]).toEqual([null, 5, []]);
});

test('a change that the index refuses moves nothing', () => {
  const revision = new ShardRevision();
  const index = {
    apply: () => {
      throw new Error('damaged');
    },
  };
  const headRevision = { epoch: 1, revision: 0, forkId: '0', settingsVersion: 1, retainedFrom: 0 };
  revision.begin(index as unknown as ShardIndex, headRevision);
  expect(() => revision.apply(change(1))).toThrow('damaged');
  expect([revision.position.revision, revision.contradicts(1, '11')]).toEqual([0, false]);
});

test('an index that was dropped remembers none of its stamps', () => {
  const { revision } = begun();
  expect(revision.contradicts(5, '51')).toBe(true);
  revision.drop();
  expect(revision.contradicts(5, '51')).toBe(false);
});

test.each([
  ['at it', job(5), 'serve'],
  ['at it, with its stamp', job(5, '50'), 'serve'],
  ['below it', job(4), 'serve'],
  ['below it, with a stamp that nobody remembers', job(4, '41'), 'serve'],
  ['with newer settings', job(5, '', 2, 4), 'serve'],
  ['above it', job(6), 'wait'],
  ['above it, with older settings', job(6, '', 2, 2), 'wait'],
  ['of a later epoch', job(5, '', 3), 'wait'],
  ['of a later epoch, from its start', job(0, '', 3), 'wait'],
  ['of an earlier epoch', job(5, '', 1), 'epochOver'],
  ['of an earlier epoch, further on', job(9, '', 1), 'epochOver'],
  ['of another history', job(5, '51'), 'diverged'],
  ['of another history, with older settings', job(5, '51', 2, 2), 'diverged'],
  ['with older settings', job(5, '', 2, 2), 'settingsOld'],
  ['with its stamp and older settings', job(5, '50', 2, 2), 'settingsOld'],
] as const)('a job %s', (_what, asked, verdict) => {
  const { revision } = begun();
  expect(revision.judge(asked)).toBe(verdict);
  expect(revision.canServe(asked)).toBe(verdict === 'serve');
  revision.drop();
  expect(revision.judge(asked)).toBe('wait');
  expect(revision.canServe(asked)).toBe(false);
});

test('stamps of earlier seqs count as well', () => {
  const { revision } = begun();
  for (const seq of [6, 7, 8]) revision.apply(change(seq));
  expect(revision.judge(job(6, '60'))).toBe('serve');
  expect(revision.judge(job(6, '61'))).toBe('diverged');
  expect(revision.judge(job(5, '51'))).toBe('diverged');
});

test.each([
  ['the same place', {}, false],
  ['the same place, of which something else was lost', { isLost: true }, false],
  ['a lost part, and a head below', { isLost: true, revision: 4, forkId: '40' }, true],
  ['a lost part, and a head with the same stamp elsewhere', { isLost: true, revision: 4 }, true],
  ['a lost part, and another stamp at the same seq', { isLost: true, forkId: '51' }, true],
  ['a lost part, and a later epoch at the same place', { isLost: true, epoch: 3 }, true],
  ['a lost part of an earlier epoch', { isLost: true, epoch: 1, revision: 4, forkId: '40' }, false],
  ['a lost part of an earlier epoch, at the same place', { isLost: true, epoch: 1 }, false],
  ['changes after it', { revision: 9, forkId: '90', afterRevision: 5, forkIdAtStart: '50' }, false],
  [
    'changes after another history',
    { revision: 9, forkId: '90', afterRevision: 5, forkIdAtStart: '51' },
    true,
  ],
  [
    'changes of a later epoch, which begins anew',
    { epoch: 3, revision: 9, forkId: '90', afterRevision: 5, forkIdAtStart: '51' },
    false,
  ],
  [
    'changes of an earlier epoch',
    { epoch: 1, revision: 9, forkId: '90', afterRevision: 5, forkIdAtStart: '51' },
    false,
  ],
] as const)('carried changes of %s: another history: %s', (_what, more, isOther) => {
  const carried: CarriedChanges = {
    projectId: 'p',
    tenantId: 't',
    epoch: 2,
    revision: 5,
    forkId: '50',
    isLost: false,
    afterRevision: 0,
    forkIdAtStart: '',
    changes: [],
    ...more,
  };
  const { revision } = begun();
  expect(revision.isOtherThan(carried)).toBe(isOther);
  revision.drop();
  expect(revision.isOtherThan(carried)).toBe(false);
});
