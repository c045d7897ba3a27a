// Yields milliseconds from request to the end of a workflow run, beside act on this machine, in
// alternating rounds: a job of `true`, a matrix of 50 of them, a step that prints 1,000,000 lines.
// Run: npm run bench -- runner-vs-act [-- ROUNDS [STRATEGY [CASE]]]; act is that of ACT or on PATH, if any.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findAct, hostArguments, runAct, type ActOutcome } from '../test/support/act-process.ts';
import { RunnerService, type ServiceOutcome } from './runner-vs-act/runner-service.ts';

const ROUNDS = 5;
const LEGS = 50;
const LINES = 1_000_000;
const FILES = 40;
const FOLDER = '.github/workflows';

type Case = {
  readonly name: string;
  readonly text: string;
  /** Frames of log lines that the subscriber must get, or a `gap` tells of them. */
  readonly lines: number;
  /** How many times faster than act it is to be. */
  readonly target: number;
};

const job = (step: string, more = ''): string =>
  `on: [push, workflow_dispatch]\njobs:\n  one:\n    runs-on: ubuntu-latest\n${more}    steps: [{ run: '${step}' }]\n`;
const legs = Array.from({ length: LEGS }, (_, index) => index + 1).join(', ');
const CASES: readonly Case[] = [
  { name: 'noop', text: job('true'), lines: 0, target: 2 },
  {
    name: 'matrix',
    text: job('true', `    strategy: { matrix: { n: [${legs}] } }\n`),
    lines: 0,
    target: 3,
  },
  { name: 'lines', text: job(`seq ${LINES}`), lines: LINES, target: 3 },
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

const rounded = (values: readonly number[]): readonly number[] =>
  values.map((value) => Math.round(value));

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

/** `auto` is the runner's own choice. */
function strategyOf(argument: string | undefined): string | undefined {
  return argument === 'auto' ? undefined : argument;
}

function mean(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

function mustSucceed(name: string, outcome: ServiceOutcome): void {
  if (outcome.conclusion !== 'success') throw new Error(`${name} ended in ${outcome.conclusion}`);
}

async function main(): Promise<void> {
  const [rounds = String(ROUNDS), strategy, only] = process.argv.slice(2);
  const act = findAct();
  const workspace = makeProject();
  const service = await RunnerService.start(workspace);
  const logFile = join(workspace, '.runner', 'act.log');
  try {
    for (const one of CASES) {
      if (only !== undefined && one.name !== only) continue;
      const ours: ServiceOutcome[] = [];
      const theirs: ActOutcome[] = [];
      const loadBefore = loadavg()[0] ?? 0;
      mustSucceed(one.name, await service.run(one.name, strategyOf(strategy)));
      for (let round = 0; round < Number(rounds); round++) {
        if (act !== undefined) {
          const args = hostArguments('push', `${FOLDER}/${one.name}.yml`);
          const outcome = await runAct(act, args, { cwd: workspace, logFile });
          if (outcome.exitCode !== 0) throw new Error(`act ended with ${outcome.exitCode}`);
          theirs.push(outcome);
        }
        const outcome = await service.run(one.name, strategyOf(strategy));
        mustSucceed(one.name, outcome);
        ours.push(outcome);
      }
      report(one, ours, theirs, [loadBefore, loadavg()[0] ?? 0]);
    }
  } finally {
    await service.stop();
    rmSync(workspace, { recursive: true, force: true });
  }
}

function report(
  one: Case,
  ours: readonly ServiceOutcome[],
  theirs: readonly ActOutcome[],
  load: readonly number[],
): void {
  const ourMs = median(ours.map(({ ms }) => ms));
  const theirMs = median(theirs.map(({ ms }) => ms));
  const beside =
    theirs.length === 0
      ? {}
      : {
          actMs: Math.round(theirMs),
          timesFaster: Number((theirMs / ourMs).toFixed(2)),
          target: one.target,
          actProcessorMs: mean(theirs.map(({ processorMs }) => processorMs)),
          actAllMs: rounded(theirs.map(({ ms }) => ms)),
          actPeakMib: Math.max(...theirs.map(({ peakMib }) => peakMib)),
        };
  const result = {
    what: one.name,
    ms: Math.round(ourMs),
    processorMs: mean(ours.map(({ processorMs }) => processorMs)),
    ...beside,
    allMs: rounded(ours.map(({ ms }) => ms)),
    leastFrames: Math.min(...ours.map(({ frames }) => frames)),
    megabytes: Math.round(median(ours.map(({ megabytes }) => megabytes))),
    beforeMib: ours[0]?.beforeMib ?? 0,
    peakMib: Math.max(...ours.map(({ peakMib }) => peakMib)),
    load: load.map((value) => Number(value.toFixed(1))),
  };
  console.log(JSON.stringify(result));
}

await main();
