import { expect, test } from 'vitest';
import type { Job, Step } from '../../model/run.ts';
import { assertRunState } from './run-state-invariants.ts';
import type { RunState } from './run-state.ts';

const AT = '2026-01-01T00:00:00.000Z';

function step(number: number, more: Partial<Step> = {}): Step {
  return { number, name: 'n', status: 'queued', log: '', outputs: {}, ...more };
}

function job(more: Partial<Job> = {}): Job {
  const base: Job = {
    id: 'a',
    name: 'a',
    status: 'queued',
    steps: [],
    outputs: {},
    needs: [],
    attempt: 1,
  };
  return { ...base, ...more };
}

function state(jobs: readonly Job[], run: object = {}, phase: RunState['phase'] = 'in_progress') {
  return {
    phase,
    run: {
      id: 'r',
      workflow: 'CI',
      fileName: 'ci.yml',
      name: 'CI',
      runNumber: 1,
      attempt: 1,
      status: 'in_progress',
      createdAt: AT,
      updatedAt: AT,
      startedAt: AT,
      trigger: { event: 'push', ref: '', sha: '0'.repeat(40) },
      ...run,
    },
    request: { hasExplicitRef: false, actor: 'me', eventName: 'push', inputs: {}, event: {} },
    jobs: new Map(jobs.map((each) => [each.id, { job: each, node: each.id }])),
    annotations: [],
    summaries: [],
    queuedAt: AT,
    view: undefined,
  } as RunState;
}

const done = { status: 'completed', conclusion: 'success' } as const;
const ended = { completedAt: AT, durationMs: 0, conclusion: 'success', status: 'completed' };

test('states that keep the invariants pass', () => {
  const running = job({ status: 'in_progress', steps: [step(1, done), step(3)] });
  expect(() => assertRunState(state([running]))).not.toThrow();
  expect(() => assertRunState(state([job(done)], ended, 'finished'))).not.toThrow();
});

test.each<[invariant: string, broken: RunState]>([
  ['I2', state([job()], ended, 'finished')],
  ['I2', state([job({ ...done, steps: [step(1)] })])],
  ['I3', state([job({ status: 'in_progress' })], { startedAt: undefined })],
  ['I4', state([job({ steps: [step(1, { status: 'in_progress' })] })])],
  ['I5', state([job({ conclusion: 'success' })])],
  ['I5', state([job({ status: 'completed' })])],
  ['I5', state([], { conclusion: 'success' })],
  ['I5', state([], { ...ended, status: 'failed' }, 'finished')],
  ['I5', state([], { completedAt: AT })],
  ['I5', state([job({ ...done, startedAt: AT, completedAt: AT, durationMs: -1 })])],
  ['I6', state([job({ attempt: 2 })])],
  ['I10', state([job({ status: 'in_progress', steps: [step(2), step(1)] })])],
  ['I10', state([job({ status: 'in_progress', steps: [step(1), step(1)] })])],
])('%s: a state that breaks it is told', (invariant, broken) => {
  expect(() => assertRunState(broken)).toThrow(`assertion failed: ${invariant}: `);
});
