// Yields milliseconds from starting the runner's command until it has answered, or until the first step of a run has begun,
// and their ratio to an empty Node.js (`node -e 0`) of the same rounds. Each way stands beside the others in
// every round; medians are compared. A first start of each, which fills the caches, is left out.
// Run: npm run bench -- runner-start [-- ROUNDS]
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROUNDS = Number(process.argv[2] ?? 9);
const ROOT = join(import.meta.dirname, '..');
const COMMAND = join(ROOT, 'bin', 'gatehouse-runner');
const PLAIN = [process.execPath, join(ROOT, 'src', 'runner', 'cli-main.ts')];
/** What steps.started is in a line of `--json`. */
const FIRST_STEP = '"type":"step.started"';
const WORKFLOW = `on: [push, workflow_dispatch]
jobs: { noop: { runs-on: ubuntu-latest, steps: [{ run: 'true' }] } }
`;

type Way = {
  readonly name: string;
  readonly command: readonly string[];
  /** The time counts until its output has this text; else until it has ended. */
  readonly until?: string;
};

const WAYS: readonly Way[] = [
  { name: 'node -e 0', command: [process.execPath, '-e', '0'] },
  { name: '--help', command: [COMMAND, '--help'] },
  { name: '-l', command: [COMMAND, '-l'] },
  { name: 'run -n', command: [COMMAND, 'run', 'noop', '-n'] },
  { name: 'run, first step', command: [COMMAND, 'run', 'noop', '--json'], until: FIRST_STEP },
  { name: 'run, whole', command: [COMMAND, 'run', 'noop', '--json'] },
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

/** Milliseconds. Errors: when the program fails, or ends before what is waited for. */
function timeOf({ name, command, until }: Way, dir: string): Promise<number> {
  const [file = '', ...args] = command.map((word) => (word === '.' ? dir : word));
  const startMs = performance.now();
  const child = spawn(file, args, { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] });
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
      if (code === 0 && ms !== undefined) resolve(ms);
      else reject(new Error(`${name} ended with code ${code}: ${text}`));
    });
  });
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >>> 1] ?? Number.NaN;

const dir = makeProject();
const times = new Map(WAYS.map(({ name }) => [name, [] as number[]]));
try {
  for (const way of WAYS) await timeOf(way, dir);
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of WAYS) times.get(way.name)?.push(await timeOf(way, dir));
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
const empty = median(times.get('node -e 0') ?? []);
for (const [way, all] of times) {
  const result = {
    bench: 'runner-start',
    way,
    medianMs: Math.round(median(all)),
    fastestMs: Math.round(Math.min(...all)),
    timesEmptyNode: Math.round((median(all) / empty) * 10) / 10,
    rounds: all.map(Math.round),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
