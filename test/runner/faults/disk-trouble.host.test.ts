import { describe, expect, test } from 'vitest';
import type { RunStore } from '../../../src/runner/model/storage.ts';
import { openLogWriter } from '../../../src/runner/storage/log-writer.ts';
import { createBench } from '../support/scheduler-bench.ts';

const WORKFLOW = `on: workflow_dispatch
jobs:
  loud:
    runs-on: ubuntu-latest
    continue-on-error: true
    steps:
      - { run: echo lost, continue-on-error: true }
      - { run: 'true' }
      - { if: always(), run: 'true' }
  next: { needs: loud, runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
  quiet: { runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
`;

/** The store of which all logs stand on the device that refuses every byte for want of space. */
function withFullDisk(store: RunStore): RunStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'openLog') return () => openLogWriter('/dev/full');
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

describe.skipIf(process.platform !== 'linux')('a log on a full disk', { timeout: 120_000 }, () => {
  test('is no success, whatever the step and the job forgive; a job that says nothing is one', async () => {
    await using bench = await createBench({
      workflows: { 'w.yml': WORKFLOW },
      storeOf: withFullDisk,
    });
    const run = await bench.run('w');
    expect(run.conclusion).toBe('failure');
    expect(run.jobs.map(({ id, conclusion }) => `${id} ${conclusion}`)).toEqual([
      'loud failure',
      'next skipped',
      'quiet success',
    ]);
    expect(run.jobs[0]?.steps.map(({ conclusion }) => conclusion)).toEqual([
      'failure',
      'skipped',
      'failure',
    ]);
    const [error] = bench.errors(run.id);
    expect(error).toMatchObject({ jobId: 'loud' });
    expect(error?.message).toContain('The log could not be written (the disk is full)');
  });
});
