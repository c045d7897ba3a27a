import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../support/job-harness.ts';

/** A program that runs a job, cancels it when it is over, and should then have nothing to wait for. */
const PROGRAM = (root: string): string => `
import { createJobExecutor } from '${root}/src/runner/execution/job-run.ts';
const dir = process.argv[2];
const at = { line: 1, column: 1 };
const run = { kind: 'literal', value: 'echo over', at };
const job = { kind: 'steps', key: 'j', at, needs: [], defaults: {}, outputs: new Map(), runsOn: run,
  steps: [{ kind: 'run', at, run, background: false }] };
const contexts = { github: {}, inputs: {}, needs: {}, strategy: {}, matrix: null, vars: {}, secrets: {} };
const report = { stepsKnown() {}, stepStarted() {}, log() {}, stepCompleted() {}, annotate() {}, summary() {} };
const execution = createJobExecutor({ environment: process.env }).execute({
  runId: 'r', runNumber: 1, attempt: 1, jobId: 'j', jobName: 'j', job, contexts,
  workflow: { defaults: {}, path: '' }, workspaceDir: dir, projectDir: dir, jobDir: dir + '/job',
  event: {}, masks: [], timeoutMs: 60_000, logBytesMax: 1_000 }, report);
const { conclusion } = await execution.outcome;
execution.cancel('cancel');
console.log(conclusion);
`;

test('a cancel after the end starts nothing: the process can end', () => {
  const dir = temporaryDir();
  writeFiles(dir, { 'program.ts': PROGRAM(process.cwd()) });
  const output = execFileSync(process.execPath, ['--no-warnings', join(dir, 'program.ts'), dir], {
    encoding: 'utf8',
    // Far below the five minutes that a timer would hold it.
    timeout: 25_000,
  });
  expect(output).toBe('success\n');
});
