/**
 * Milliseconds from request to the end of a workflow run, beside act on this machine in alternating rounds: a job of `true`, a matrix
 * of 50 of them, a step that prints 1,000,000 lines. [STRATEGY] of the workspace; act is that of ACT or on PATH, if any.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findAct, hostArguments, runAct, type ActOutcome } from '../test/support/act-process.ts';
import { atEnd, withCleanup } from './harness/cleanup.ts';
import { OPTIONS, quantile, report } from './harness/options.ts';
import { RunnerService, type ServiceOutcome } from './harness/runner-service.ts';

const LEGS = 50;
const LINES = 1_000_000;
const FILES = 40;
const FOLDER = '.github/workflows';

type Case = {
  readonly name: string;
  readonly text: string;
  /** Frames of log lines that the subscriber must get, or a `gap` tells of them. */
  readonly lines: number;
};

const job = (step: string, more = ''): string =>
  `on: [push, workflow_dispatch]\njobs:\n  one:\n    runs-on: ubuntu-latest\n${more}    steps: [{ run: '${step}' }]\n`;
const legs = Array.from({ length: LEGS }, (_, index) => index + 1).join(', ');
const CASES: readonly Case[] = [
  { name: 'noop', text: job('true'), lines: 0 },
  {
    name: 'matrix',
    text: job('true', `    strategy: { matrix: { n: [${legs}] } }\n`),
    lines: 0,
  },
  { name: 'lines', text: job(`seq ${LINES}`), lines: LINES },
];

/** A clean repository with the workflows and a few files. */
function makeProject(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  mkdirSync(join(dir, FOLDER), { recursive: true });
  mkdirSync(join(dir, 'src'));
  for (const { name, text } of CASES) writeFileSync(join(dir, FOLDER, `${name}.yml`), text);
  for (let file = 0; file < FILES; file++) {
    writeFileSync(join(dir, 'src', `${file}.ts`), `// ${file}\n`);
  }
  const author = ['-c', 'user.name=n', '-c', 'user.email=n@example.com'];
  for (const args of [
    ['init', '-q', '-b', 'main'],
    ['add', '.'],
    [...author, 'commit', '-qm', 'first'],
  ]) {
    execFileSync('git', args, { cwd: dir });
  }
  return dir;
}

function mean(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

function mustSucceed(name: string, outcome: ServiceOutcome): void {
  if (outcome.conclusion !== 'success') throw new Error(`${name} ended in ${outcome.conclusion}`);
}

async function main(): Promise<void> {
  const [strategy] = process.argv.slice(2);
  const act = findAct();
  if (act === undefined) process.stderr.write('act is not installed: this runner alone\n');
  const workspace = makeProject();
  atEnd(() => rmSync(workspace, { recursive: true, force: true }));
  const service = await RunnerService.start(workspace);
  atEnd(() => service.stop());
  const logFile = join(workspace, '.runner', 'act.log');
  for (const { name, lines } of CASES) {
    const ours: ServiceOutcome[] = [];
    const theirs: ActOutcome[] = [];
    mustSucceed(name, await service.run(name, strategy));
    for (let round = 0; round < OPTIONS.rounds; round++) {
      if (act !== undefined) {
        const args = hostArguments('push', `${FOLDER}/${name}.yml`);
        const outcome = await runAct(act, args, { cwd: workspace, logFile });
        if (outcome.exitCode !== 0) throw new Error(`act ended with ${outcome.exitCode}`);
        theirs.push(outcome);
      }
      const outcome = await service.run(name, strategy);
      mustSucceed(name, outcome);
      if (outcome.frames < lines) throw new Error(`${name}: ${outcome.frames} frames`);
      ours.push(outcome);
    }
    report({ run: name, by: 'this runner', ...figuresOf(ours) });
    if (theirs.length > 0) report({ run: name, by: 'act', ...figuresOf(theirs) });
  }
}

/** Medians and means of the rounds; the peak is that of the runner or act, without the steps. */
function figuresOf(outcomes: readonly (ServiceOutcome | ActOutcome)[]): Record<string, number> {
  return {
    ms: Math.round(quantile(outcomes.map(({ ms }) => ms))),
    slowestMs: Math.round(Math.max(...outcomes.map(({ ms }) => ms))),
    processorMs: mean(outcomes.map(({ processorMs }) => processorMs)),
    peakMib: Math.max(...outcomes.map(({ peakMib }) => peakMib)),
  };
}

await withCleanup(main);
