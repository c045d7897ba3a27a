import { expect, test } from 'vitest';
import type { ScopeEntry } from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import { DecisionStats } from './decision-stats.ts';
import { ReadsByProject } from './project-reads.ts';

function scopeOf(projectId: string, readBudget = 100): ScopeEntry {
  return {
    projectId,
    tenantId: 't',
    readBudget,
    modelVersion: 1,
    settingsVersion: 1,
    epoch: 1,
    forkId: '',
    isHeldOnly: false,
    expectedProjectId: projectId,
    expectedTenantId: 't',
  };
}

test('reads are counted by project, as a share of the budget of each', () => {
  const reads = new ReadsByProject();
  reads.of(scopeOf('small', 100)).answered(50);
  reads.of(scopeOf('large', 10_000)).answered(50);
  reads.of(scopeOf('small', 100)).exhausted(101);
  const [small, large] = reads.drain();
  expect(small).toMatchObject({ projectId: 'small', budget: 100, reads: 151, readsMax: 50 });
  // Up to a half; and what was refused, beyond the last bound.
  expect(small?.shares).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
  expect(large?.shares).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  expect(reads.drain()).toEqual([]);
});

test('a budget that changed holds from then on', () => {
  const reads = new ReadsByProject();
  reads.of(scopeOf('p', 100)).answered(50);
  reads.of(scopeOf('p', 1_000)).answered(50);
  expect(reads.drain()).toMatchObject([
    { budget: 1_000, shares: [0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0] },
  ]);
});

test('counts that were taken are not lost with the memory of the scope', () => {
  const reads = new ReadsByProject();
  const scope = scopeOf('p');
  for (let i = 0; i < 3; i++) {
    reads.of(scope).answered(1);
    expect(reads.drain()).toMatchObject([{ projectId: 'p', reads: 1 }]);
    // Nothing happened: it is forgotten, and made anew.
    expect(reads.drain()).toEqual([]);
  }
});

test('projects beyond those that are told apart count together', () => {
  const reads = new ReadsByProject();
  for (let i = 0; i < 300; i++) reads.of(scopeOf(`p${i}`)).answered(2);
  const taken = reads.drain();
  expect(taken).toHaveLength(257);
  expect(taken.find(({ projectId }) => projectId === '')).toMatchObject({ reads: 88 });
});

test('a few refusals of a project are told of, and how many were not', () => {
  const told: BudgetRefusal[] = [];
  const stats = new DecisionStats((refusal) => told.push(refusal));
  stats.turnTo({ requestId: 7, scope: scopeOf('p') });
  const exhausted = {
    rpc: 'Check',
    relation: 'doc#viewer',
    limit: 100,
    bound: 'evaluation',
    query: () => null,
  } as const;
  for (let i = 0; i < 10; i++) stats.refused(exhausted);
  expect(told.map(({ unreported }) => unreported)).toEqual([0, 0]);
  expect(told[0]).toMatchObject({ requestId: 7, projectId: 'p', tenantId: 't', limit: 100 });
  expect(stats.drain().projects).toMatchObject([{ refusals: 10 }]);
  stats.turnTo({ requestId: 8, scope: scopeOf('p') });
  stats.refused(exhausted);
  expect(told.at(-1)).toMatchObject({ requestId: 8, unreported: 8 });
});

test('what an operator previews counts for no project', () => {
  const stats = new DecisionStats();
  stats.turnTo({ requestId: 1, scope: scopeOf('p') });
  stats.evaluated('PreviewModel', { reads: 5, backstops: 0 });
  expect(stats.drain().projects).toEqual([]);
});
