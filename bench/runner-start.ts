// Yields milliseconds from starting the runner's command until it has answered, or until the first step of a run has begun,
// and their ratio to an empty Node.js (`node -e 0`) of the same rounds. Each way stands beside the others in
// every round; medians are compared. A first start of each, which fills the caches, is left out. act, that of ACT
// or on PATH if any, does the same beside it, in host mode; the ratio to it is the median of those of the rounds.
// Run: npm run bench -- runner-start [-- ROUNDS [beside-act]]; `beside-act` leaves out the ways that act has not.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { actEnvironment, findAct, hostArguments } from '../test/support/act-process.ts';
import { endedChildrenMs } from '../test/support/process-use.ts';

const ROUNDS = Number(process.argv[2] ?? 9);
const ROOT = join(import.meta.dirname, '..');
const COMMAND = join(ROOT, 'bin', 'gatehouse-runner');
const GATEHOUSE = join(ROOT, 'bin', 'gatehouse');
const PLAIN = [process.execPath, join(ROOT, 'src', 'runner', 'cli-main.ts')];
/** What steps.started is in a line of `--json`. */
const FIRST_STEP = '"type":"step.started"';
/** What act prints when a step of the workflow begins. */
const ACT_FIRST_STEP = 'Run Main true';
const WORKFLOW = `on: [push, workflow_dispatch]
jobs: { noop: { runs-on: ubuntu-latest, steps: [{ run: 'true' }] } }
`;

type Way = {
  readonly name: string;
  readonly command: readonly string[];
  /** The time counts until its output has this text; else until it has ended. */
  readonly until?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** What act does for the same. */
  readonly beside?: string;
};

/** What one start took. */
type Taken = { readonly ms: number; readonly processorMs: number };

const OURS: readonly Way[] = [
  { name: 'node -e 0', command: [process.execPath, '-e', '0'] },
  { name: '--help', command: [COMMAND, '--help'] },
  { name: 'gatehouse --help', command: [GATEHOUSE, '--help'] },
  { name: '-l', command: [COMMAND, '-l'], beside: 'act, -l' },
  { name: 'run -n', command: [COMMAND, 'run', 'noop', '-n'], beside: 'act, -n' },
  {
    name: 'run, first step',
    command: [COMMAND, 'run', 'noop', '--json'],
    until: FIRST_STEP,
    beside: 'act, first step',
  },
  { name: 'run, whole', command: [COMMAND, 'run', 'noop', '--json'], beside: 'act, whole' },
  { name: 'npx, -l', command: ['npx', '--prefix', ROOT, 'gatehouse-runner', '-l'] },
  {
    name: 'npm run runner, -l',
    command: ['npm', '--prefix', ROOT, 'run', '--silent', 'runner', '--', '-l', '-w', '.'],
  },
  { name: 'sources as they are, -l', command: [...PLAIN, '-l'] },
  {
    name: 'sources as they are, first step',
    command: [...PLAIN, 'run', 'noop', '--json'],
    until: FIRST_STEP,
  },
];

/** The same of act, where it is; `home` holds its settings and caches, none of a user's. */
function waysOfAct(home: string): readonly Way[] {
  const act = findAct();
  if (act === undefined) return [];
  const run = [act, ...hostArguments('push', '.github/workflows/noop.yml')];
  const env = actEnvironment(home);
  return [
    { name: 'act, -l', command: [act, '-l'], env },
    { name: 'act, -n', command: [...run, '-n'], env },
    { name: 'act, first step', command: run, until: ACT_FIRST_STEP, env },
    { name: 'act, whole', command: run, env },
  ];
}

function makeProject(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  mkdirSync(join(dir, '.github/workflows'), { recursive: true });
  writeFileSync(join(dir, '.github/workflows/noop.yml'), WORKFLOW);
  const git = (...args: readonly string[]): void => {
    const options = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost'];
    execFileSync('git', [...options, ...args], { cwd: dir, stdio: 'ignore' });
  };
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'first');
  return dir;
}

/** Errors: when the program fails, or ends before what is waited for. */
function start({ name, command, until, env }: Way, dir: string): Promise<Taken> {
  const [file = '', ...args] = command.map((word) => (word === '.' ? dir : word));
  const processorBeforeMs = endedChildrenMs();
  const startMs = performance.now();
  const child = spawn(file, args, {
    cwd: dir,
    // act says at each start that there is no Docker.
    stdio: ['ignore', 'pipe', env === undefined ? 'inherit' : 'ignore'],
    ...(env === undefined ? {} : { env }),
  });
  return new Promise((resolve, reject) => {
    let text = '';
    let tookMs: number | undefined;
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (until !== undefined && text.includes(until)) tookMs ??= performance.now() - startMs;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const ms = until === undefined ? performance.now() - startMs : tookMs;
      const processorMs = endedChildrenMs() - processorBeforeMs;
      if (code === 0 && ms !== undefined) resolve({ ms, processorMs });
      else reject(new Error(`${name} ended with code ${code}: ${text}`));
    });
  });
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >>> 1] ?? Number.NaN;
const rounded = (value: number, digits = 1): number => Number(value.toFixed(digits));
const load = (): number => rounded(loadavg()[0] ?? 0);

const dir = makeProject();
const home = mkdtempSync(join(tmpdir(), 'gatehouse-act-home-'));
const all = [...OURS, ...waysOfAct(home)];
const isChosen = ({ name, beside, env }: Way): boolean =>
  process.argv[3] !== 'beside-act' ||
  beside !== undefined ||
  env !== undefined ||
  name === 'node -e 0';
// Beside each other within a round, too: what else the machine does is then the same for both.
const ways = OURS.filter(isChosen).flatMap((way) => [
  way,
  ...all.filter(({ name }) => name === way.beside),
]);
const taken = new Map(ways.map(({ name }) => [name, [] as Taken[]]));
const loads = [load()];
try {
  for (const way of ways) await start(way, dir);
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of ways) taken.get(way.name)?.push(await start(way, dir));
  }
  loads.push(load());
} finally {
  for (const each of [dir, home]) rmSync(each, { recursive: true, force: true });
}

const timesOf = (name: string): readonly number[] => (taken.get(name) ?? []).map(({ ms }) => ms);
const empty = median(timesOf('node -e 0'));
for (const { name, beside } of ways) {
  const times = timesOf(name);
  const theirs = beside === undefined ? [] : timesOf(beside);
  const ratios = theirs.map((ms, round) => (times[round] ?? Number.NaN) / ms);
  const result = {
    bench: 'runner-start',
    way: name,
    medianMs: Math.round(median(times)),
    fastestMs: Math.round(Math.min(...times)),
    timesEmptyNode: rounded(median(times) / empty),
    ...(ratios.length === 0 ? {} : { timesAct: rounded(median(ratios)) }),
    processorMs: Math.round(median((taken.get(name) ?? []).map(({ processorMs }) => processorMs))),
    rounds: times.map(Math.round),
    load: loads,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
