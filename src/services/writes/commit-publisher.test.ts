import { expect, test } from 'vitest';
import { indexOver, rowAt } from '../../../test/support/read-index.ts';
import type { CommittedChange } from '../../model/packed-changes.ts';
import type { TupleAudit } from '../ports.ts';
import type { WriteResult } from '../write-groups/write-group.ts';
import { CommitPublisher, type PublishedWrite } from './commit-publisher.ts';

const write = (tenantId: string, forkId: string): PublishedWrite => ({
  shard: { projectId: 'p', tenantId },
  forkId,
  meta: {
    rpc: 'WriteRelationTuples',
    actingUserId: tenantId === 'a' ? 'anne' : null,
    requestId: `r${forkId}`,
    deadlineMs: Infinity,
  },
});
const result = (revision: number, changes: string | null): WriteResult => ({
  epoch: 3,
  revision,
  changes,
  settingsVersion: 2,
});

/** Everybody who is notified of commits, in one list, each with the head revision of the shard at that time. */
async function audience(options: { audit: boolean; hints: boolean }) {
  const { headRevisions, index } = indexOver([
    (asks) => Promise.resolve(asks.map((_, at) => rowAt(at, 0, { epoch: 3 }))),
  ]);
  for (const tenant of ['a', 'b']) await index.load('p', tenant);
  const told: [who: string, what: unknown, heads: (number | undefined)[]][] = [];
  const notify = (who: string, what: unknown): void => {
    told.push([
      who,
      what,
      ['a', 'b'].map((tenant) => headRevisions.peek('p', tenant)?.minRevision),
    ]);
  };
  const publisher = new CommitPublisher({
    clock: { nowMs: () => 77, monotonicMs: () => 0 },
    headRevisions,
    committed: { onCommitted: (changes: readonly CommittedChange[]) => notify('worker', changes) },
    ...(options.audit
      ? {
          audit: {
            tuplesChanged: (entries: readonly TupleAudit[]) => notify('audit', entries),
            projectChanged: () => notify('audit', 'project'),
          },
        }
      : {}),
    ...(options.hints
      ? { hints: { hint: ({ tenantId }, revision) => notify('hint', [tenantId, revision]) } }
      : {}),
  });
  return { publisher, told, headRevisions };
}

test('heads first, then worker, audit and hints, each with all commits in order', async () => {
  const { publisher, told } = await audience({ audit: true, hints: true });
  publisher.publish(
    [write('a', '10'), write('b', '11'), write('a', '12')],
    [result(4, '[4]'), result(9, null), result(5, '[5]')],
  );
  const commits = [
    {
      projectId: 'p',
      tenantId: 'a',
      epoch: 3,
      revision: 4,
      forkId: '10',
      settingsVersion: 2,
      changes: '[4]',
    },
    {
      projectId: 'p',
      tenantId: 'a',
      epoch: 3,
      revision: 5,
      forkId: '12',
      settingsVersion: 2,
      changes: '[5]',
    },
  ];
  const meta = { rpc: 'WriteRelationTuples', actingUserId: 'anne', atMs: 77 };
  const audited = commits.map((one) => {
    const { projectId, tenantId, epoch, revision, forkId, changes } = one;
    const change = { projectId, tenantId, epoch, revision, forkId, changes };
    return { ...change, ...meta, requestId: `r${forkId}` };
  });
  expect(told).toEqual([
    ['worker', commits, [5, 9]],
    ['audit', audited, [5, 9]],
    ['hint', ['a', 4], [5, 9]],
    ['hint', ['a', 5], [5, 9]],
  ]);
});

test('what changed nothing raises the head and tells nobody', async () => {
  const { publisher, told, headRevisions } = await audience({ audit: true, hints: true });
  publisher.publish([write('b', '1')], [result(6, null)]);
  expect(told).toEqual([]);
  expect(headRevisions.peek('p', 'b')?.minRevision).toBe(6);
});

test('without audit and listeners the worker is told alone', async () => {
  const { publisher, told } = await audience({ audit: false, hints: false });
  publisher.publish([write('b', '1')], [result(6, '[1]')]);
  expect(told.map(([who]) => who)).toEqual(['worker']);
});
