// Yields what the first `npm start` of a fresh clone costs until it is ready: seconds of CPU of the whole machine, which
// must be quiet, and megabytes of node_modules. Of HEAD and of another commit in turns; npm's own cache stays as it is.
// Run: npm run bench -- fresh-clone [-- COMMIT] [ROUNDS]
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '..');
/** Of /proc/stat (proc_stat(5)): Linux counts hundredths of a second. */
const TICKS_PER_SECOND = 100;
/** What the run before left to be written to disk is written by then. */
const SETTLE_MS = 8_000;

type Cost = { readonly cpuSeconds: number; readonly megabytes: number };

/** Seconds that all processors have worked since the machine started: all but idle, iowait and stolen time. */
function cpuSeconds(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8')
    .split(/\s+/, 8)
    .map(Number);
  return (
    [user, nice, system, irq, softirq].reduce<number>((sum, ticks) => sum + (ticks ?? 0), 0) /
    TICKS_PER_SECOND
  );
}

/** The environment of a shell, without what npm and this package put into that of the benchmark. */
function shellEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_OPTIONS$|DATABASE_URL$|GATEWAY_)/i.test(name),
  );
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'));
  return {
    ...Object.fromEntries(own),
    PATH: path.join(delimiter),
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
  };
}

async function costOf(commit: string): Promise<Cost> {
  const clone = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  try {
    execFileSync('git', ['clone', '--quiet', ROOT, clone]);
    execFileSync('git', ['-C', clone, 'checkout', '--quiet', commit]);
    await delay(SETTLE_MS);
    const from = cpuSeconds();
    const service = spawn('npm', ['start'], {
      cwd: clone,
      env: shellEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exited = new Promise<number | null>((resolve) => service.once('exit', resolve));
    const said: string[] = [];
    const isReady = await new Promise<boolean>((resolve) => {
      const look = (chunk: Buffer): void => {
        said.push(chunk.toString());
        if (said.join('').includes('"msg":"ready"')) resolve(true);
      };
      service.stdout.on('data', look);
      service.stderr.on('data', look);
      void exited.then(() => resolve(false));
    });
    if (!isReady) throw new Error(`${commit} did not get ready:\n${said.join('')}`);
    const took = cpuSeconds() - from;
    service.kill('SIGTERM');
    await exited;
    const [megabytes] = execFileSync('du', ['-sm', 'node_modules'], {
      cwd: clone,
      encoding: 'utf8',
    }).split('\t');
    return { cpuSeconds: Math.round(took * 10) / 10, megabytes: Number(megabytes) };
  } finally {
    rmSync(clone, { recursive: true, force: true });
  }
}

const [other, rounds = '3'] = process.argv.slice(2);
const commits = ['HEAD', ...(other === undefined ? [] : [other])];
const costs = new Map<string, Cost[]>(commits.map((commit) => [commit, []]));
for (let round = 0; round < Number(rounds); round++) {
  for (const [commit, known] of costs) known.push(await costOf(commit));
}
for (const [commit, known] of costs) {
  const seconds = known.map((cost) => cost.cpuSeconds);
  const median = seconds.toSorted((a, b) => a - b)[seconds.length >>> 1];
  const line = {
    bench: 'fresh-clone',
    commit,
    cpuSeconds: median,
    rounds: seconds,
    megabytes: known[0]?.megabytes,
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
