// Yields milliseconds of what the disk costs a run of the workflow runner: a log of 1,000,000 lines,
// journal records, recovery of 500 runs, and sandboxes of a small project; each beside its floor.
// Run: npm run bench -- runner-storage
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGit } from '../src/runner/host/git/run-git.ts';
import { createSandboxFactory } from '../src/runner/host/sandbox/sandbox-factory.ts';
import type { RunStore, SandboxFactory } from '../src/runner/model/storage.ts';
import { openRunStore } from '../src/runner/storage/run-store.ts';

const LINES = 1_000_000;
const FILES = 40;
const RUNS = 500;
const ROUNDS = 9;
const at = new Date().toISOString();
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

const report = (event: string, error: Error): void => {
  throw new Error(event, { cause: error });
};

function say(what: string, ms: number, more: object = {}): void {
  console.log(JSON.stringify({ what, ms: Number(ms.toFixed(2)), ...more }));
}

/** Median of what `action` takes, in milliseconds. */
async function median(rounds: number, action: (round: number) => unknown): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await action(round);
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[rounds >> 1] ?? 0;
}

async function benchLog(store: RunStore, batch: number): Promise<void> {
  const lines = Array.from({ length: batch }, () => 'x'.repeat(40));
  let ourMs = 0;
  let longestMs = 0;
  const totalMs = await median(3, async () => {
    ourMs = 0;
    const log = store.openLog('run-log', 'job', 1);
    for (let written = 0; written < LINES; written += batch) {
      const start = performance.now();
      const pause = log.write(lines);
      const took = performance.now() - start;
      ourMs += took;
      longestMs = Math.max(longestMs, took);
      if (pause !== undefined) await pause;
    }
    log.close();
  });
  say(`log of 1,000,000 lines, 41 MB, ${batch} a call`, totalMs, {
    insideWriteMs: Number(ourMs.toFixed(1)),
    longestWriteMs: Number(longestMs.toFixed(1)),
  });
  say('its last 100 lines', await median(ROUNDS, () => drain(store, 100)));
  say('all of it read', await median(3, () => drain(store, undefined)));
}

async function drain(store: RunStore, tail: number | undefined): Promise<number> {
  let bytes = 0;
  for await (const chunk of store.readLog('run-log', 'job', 1, tail)) bytes += chunk.length;
  return bytes;
}

async function benchJournal(store: RunStore): Promise<void> {
  const record = { type: 'step.completed', at, text: 'x'.repeat(300) };
  const file = openSync(join(directory, 'floor'), 'a');
  const line = Buffer.from(`${JSON.stringify(record)}\n`);
  const floor = await median(100, () => {
    writeSync(file, line);
    fdatasyncSync(file);
  });
  closeSync(file);
  say('append and fdatasync of one record by hand', floor);
  say('first record of a run', await median(30, (i) => store.append(`run-first-${i}`, record)));
  say('one record', await median(100, () => store.append('run-one', record)));
  const together = Array.from({ length: 32 }, () => record);
  const many = (): Promise<unknown> =>
    Promise.all(together.map((item) => store.append('run-one', item)));
  say('32 records that come together', await median(30, many));
  say('compaction', await median(30, (i) => store.compact(`run-first-${i}`, record)));
}

async function benchRecovery(stateDir: string): Promise<void> {
  const text = JSON.stringify({ type: 'finished', at, text: 'x'.repeat(8_000) });
  for (let i = 0; i < RUNS; i++) {
    const runDir = join(stateDir, 'runs', `finished-${i}`);
    mkdirSync(runDir, { recursive: true });
    writeFileSync(join(runDir, 'journal.jsonl'), `${text}\n`);
  }
  let count = 0;
  const ms = await median(5, async () => {
    const store = await openRunStore({ stateDir, diskFloorBytes: 0, report });
    count = (await store.recover()).length;
    await store.close();
  });
  say(`opening and recovering ${count} runs of 8 KB`, ms);
}

async function benchSandbox(what: string, projectDir: string, factory: SandboxFactory) {
  const resolveMs = await median(ROUNDS, () => factory.resolve(undefined, undefined));
  const trigger = { event: 'push', ...(await factory.resolve(undefined, undefined)) };
  const release: (() => Promise<void>)[] = [];
  const prepareMs = await median(ROUNDS, async (i) => {
    const request = { runId: `r${i}`, trigger, strategy: undefined, hasExplicitRef: false };
    release.push((await factory.prepare(request)).release);
  });
  const releaseMs = await median(ROUNDS, (i) => release[i]?.());
  say(`sandbox of ${what}, ${FILES} files`, prepareMs, { resolveMs, releaseMs });
}

async function benchSandboxes(): Promise<void> {
  const project = join(directory, 'project');
  mkdirSync(join(project, 'src'), { recursive: true });
  for (let i = 0; i < FILES; i++) writeFileSync(join(project, 'src', `${i}.ts`), `// ${i}\n`);
  const floorMs = await median(ROUNDS, (round) => {
    const target = join(directory, `floor-${round}`);
    mkdirSync(target);
    for (let i = 0; i < FILES; i++) {
      copyFileSync(join(project, 'src', `${i}.ts`), join(target, `${i}.ts`));
    }
  });
  say(`${FILES} files copied by hand`, floorMs);
  const git = createGit(project);
  const base = join(directory, 'sandboxes');
  const factory = createSandboxFactory({
    projectDir: project,
    stateDir: join(project, '.runner'),
    root: { base, dir: join(base, 'project') },
    git,
    report,
  });
  await benchSandbox('a project without git', project, factory);
  const author = ['-c', 'user.name=n', '-c', 'user.email=n@example.com'];
  for (const args of [
    ['init', '-q'],
    ['add', 'src'],
    [...author, 'commit', '-qm', 'first'],
  ]) {
    execFileSync('git', args, { cwd: project });
  }
  say('git --version', await median(ROUNDS, () => git.run(['--version'])));
  const byGit = (i: number): Promise<string> =>
    git.run(['worktree', 'add', '-q', '--detach', join(directory, `by-git-${i}`), 'HEAD']);
  say('git worktree add', await median(ROUNDS, byGit));
  await benchSandbox('a clean repository', project, factory);
  writeFileSync(join(project, 'src', '0.ts'), '// changed\n');
  await benchSandbox('a dirty repository', project, factory);
}

const stateDir = join(directory, '.runner');
const store = await openRunStore({ stateDir, diskFloorBytes: 0, report });
await benchLog(store, 100);
await benchLog(store, 1_600);
await benchJournal(store);
await store.close();
rmSync(stateDir, { recursive: true });
await benchRecovery(stateDir);
await benchSandboxes();
