// Yields milliseconds and peak disk of a run of many matrix jobs, each with a workspace of its own: a repository of
// 200 MB, of which each matrix job changes one file. Where the disk can, workspaces share their blocks.
// Arguments: [DIR] a folder on the disk that is meant, alone there if the peak is to be exact; [LEGS] [JOBS
// at once] [MB] [ROUNDS].
// Run: npm run bench -- runner-workspaces -- /mnt/xfs 50 2
import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBench } from '../test/runner/support/scheduler-bench.ts';

const [parent = tmpdir(), ...numbers] = process.argv.slice(2);
const [legs = 50, jobsAtOnce = 2, megabytes = 200, rounds = 3] = numbers.map(Number);
const MB = 1_000_000;
const FILE_BYTES = 100_000;
const LOOK_MS = 20;

const base = mkdtempSync(join(parent, 'workspaces-'));
const project = join(base, 'project');

function usedBytes(): number {
  const { blocks, bfree, bsize } = statfsSync(base);
  return (blocks - bfree) * bsize;
}

function git(...args: readonly string[]): void {
  execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=n@example.com', ...args], {
    cwd: project,
    stdio: 'ignore',
  });
}

/** Bytes that do not compress, so that objects are as large as files. */
function makeProject(): void {
  const count = Math.round((megabytes * MB) / FILE_BYTES);
  for (let index = 0; index < count; index++) {
    const folder = join(project, `folder-${index % 40}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${index}.bin`), randomFillSync(Buffer.alloc(FILE_BYTES)));
  }
  const values = Array.from({ length: legs }, (_, index) => index + 1).join(', ');
  const text = `on: workflow_dispatch
jobs:
  t:
    runs-on: x
    strategy: { matrix: { n: [${values}] } }
    steps:
      - uses: actions/checkout@v4
      - run: mkdir build && echo \${{ matrix.n }} > build/leg && echo x >> folder-0/0.bin
`;
  mkdirSync(join(project, '.github', 'workflows'), { recursive: true });
  writeFileSync(join(project, '.github', 'workflows', 'w.yml'), text);
  git('init', '-q');
  git('config', 'core.compression', '0');
  git('add', '-A');
  git('commit', '-qm', 'all');
}

async function measure(): Promise<{ readonly ms: number; readonly peakMb: number }> {
  const before = usedBytes();
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, usedBytes())), LOOK_MS);
  const start = performance.now();
  const { run } = await bench.service.start({ workflow: 'w', sandbox: { strategy: 'worktree' } });
  const { conclusion } = await bench.events.completed(run.id);
  const ms = performance.now() - start;
  clearInterval(timer);
  if (conclusion !== 'success') throw new Error(`the run is a ${conclusion}`);
  return { ms: Math.round(ms), peakMb: Math.round((peak - before) / MB) };
}

mkdirSync(project);
makeProject();
const nothing = (): Promise<void> => Promise.resolve();
const bench = await createBench({
  project: { dir: project, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
  limits: { jobsInProgressMax: jobsAtOnce },
});
for (let round = 0; round < rounds; round++) {
  console.log(JSON.stringify({ legs, jobsAtOnce, megabytes, ...(await measure()) }));
}
await bench.stop();
rmSync(base, { recursive: true });
