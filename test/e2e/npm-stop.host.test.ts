import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  isAlive,
  readPidFile,
  stopServer,
} from '../../src/store/embedded/embedded-postgres-process.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const workflow = (pidFile: string): string => `on: workflow_dispatch
jobs:
  wait:
    runs-on: ubuntu-latest
    steps:
      - run: |
          echo $$ > ${pidFile}
          exec sleep 600
`;

let dir: string;
let workspace: string;
const programs: Program[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-npm-'));
  workspace = join(dir, 'project');
  mkdirSync(join(workspace, '.github/workflows'), { recursive: true });
  writeFileSync(join(workspace, '.github/workflows/ci.yml'), workflow(join(dir, 'step')));
});
afterEach(async () => {
  // What a failed test has left: npm's group, then the servers, which have groups of their own.
  for (const { pid } of programs.splice(0)) signalAlive(-pid, 'SIGKILL');
  for (const name of ['authz', 'notify']) {
    const lock = join(dir, name, 'postgres.lock');
    const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0;
    if (owner > 0) signalAlive(owner, 'SIGKILL');
    const server = readPidFile(join(dir, name, 'postgres'))?.pid;
    if (server !== undefined && isAlive(server)) await stopServer(server);
  }
  rmSync(dir, { recursive: true, force: true });
});

type Program = {
  readonly npm: ChildProcess;
  readonly pid: number;
  readonly output: () => string;
  readonly ended: Promise<number | NodeJS.Signals | null>;
};

/** `npm run` as a supervisor starts it: in a process group of its own. */
function npmRun(script: string, ...words: string[]): Program {
  return run(['npm', 'run', '--silent', script, '--', ...words], {});
}

function run(
  [program = '', ...words]: readonly string[],
  env: Readonly<Record<string, string>>,
): Program {
  const npm = spawn(program, words, {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: dir,
      GATEWAY_CONNECT_PORT: '0',
      GATEWAY_METRICS_PORT: '0',
      GATEWAY_DATA_DIR: join(dir, 'authz'),
      GATEWAY_WORKERS: '1',
      GATEWAY_DRAIN_MS: '50',
      NOTIFY_INTERNAL_PORT: '0',
      NOTIFY_CLIENT_PORT: '0',
      NOTIFY_METRICS_PORT: '0',
      NOTIFY_DATA_DIR: join(dir, 'notify'),
      NOTIFY_STREAM_SECRET: 'a-secret-of-this-test',
      NOTIFY_DRAIN_MS: '50',
      PORT: '0',
      RUNNER_METRICS_PORT: '0',
      RUNNER_DISK_FLOOR_BYTES: '0',
      ...env,
    },
  });
  let text = '';
  for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => (text += chunk));
  const ended = new Promise<number | NodeJS.Signals | null>((done) => {
    npm.once('exit', (code, signal) => done(code ?? signal));
  });
  const started = { npm, pid: npm.pid ?? 0, output: () => text, ended };
  programs.push(started);
  return started;
}

function signalAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Waits for a fact, unless the program ends first. Fails before a test does, with what the programs printed. */
async function until(fact: () => boolean, program?: Program): Promise<void> {
  const last = Date.now() + 90_000;
  while (!fact()) {
    const end = program?.npm.exitCode ?? program?.npm.signalCode ?? undefined;
    if (end !== undefined) throw new Error(`npm ended with ${end}:\n${program?.output()}`);
    if (Date.now() > last) throw new Error(`waits for ${fact.toString()}:\n${printed()}`);
    await sleep(10);
  }
}

const printed = (): string => programs.map(({ output }) => output()).join('\n');

/** Waits for the processes of a service: itself and its PostgreSQL. */
async function processesOf(name: 'authz' | 'notify'): Promise<number[]> {
  const data = join(dir, name);
  await until(() => readPidFile(join(data, 'postgres'))?.status === 'ready');
  const service = Number(readFileSync(join(data, 'postgres.lock'), 'utf8'));
  return [service, readPidFile(join(data, 'postgres'))?.pid ?? 0];
}

async function runnerProcess(): Promise<number> {
  const path = join(workspace, '.runner/endpoint.json');
  await until(() => existsSync(path));
  return (JSON.parse(readFileSync(path, 'utf8')) as { pid: number }).pid;
}

async function expectStopped(
  program: Program,
  target: number,
  pids: readonly number[],
): Promise<void> {
  expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
  process.kill(target, 'SIGTERM');
  await until(() => program.npm.exitCode !== null || program.npm.signalCode !== null);
  expect(await program.ended).toBe(0);
  expect(pids.filter((pid) => isAlive(pid))).toEqual([]);
}

const TARGETS = [
  ["npm's own process", (pid: number) => pid],
  ['the process group', (pid: number) => -pid],
] as const;

inLong(describe).each(TARGETS)('SIGTERM to %s', { timeout: 120_000 }, (_name, targetOf) => {
  it('stops the authorization service and its PostgreSQL', async () => {
    const program = npmRun('start');
    await until(() => program.output().includes('"ready"'), program);
    await expectStopped(program, targetOf(program.pid), await processesOf('authz'));
  });

  it('stops all three', async () => {
    const program = npmRun('start:all', workspace);
    await until(() => program.output().split('"ready"').length > 2, program);
    await until(() => program.output().split('"server_listen"').length > 3, program);
    const services = [await processesOf('authz'), await processesOf('notify')];
    const pids = [...services.flat(), await runnerProcess()];
    await expectStopped(program, targetOf(program.pid), pids);
  });
});

describe("SIGTERM to npm's own process", { timeout: 120_000 }, () => {
  inLong(it)('stops the notification service and its PostgreSQL', async () => {
    const program = npmRun('start:notify');
    await until(() => program.output().split('"server_listen"').length > 3, program);
    await expectStopped(program, program.pid, await processesOf('notify'));
  });

  inLong(it)('stops the runner', async () => {
    const program = npmRun('start:runner', workspace);
    await until(() => program.output().includes('"ready"'), program);
    await expectStopped(program, program.pid, [await runnerProcess()]);
  });

  inShort(it)("cancels a run of the runner's command, whose step ends", async () => {
    const program = npmRun('runner', 'run', 'ci', '--workspace', workspace);
    const file = join(dir, 'step');
    await until(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), program);
    const step = Number(readFileSync(file, 'utf8'));
    process.kill(program.pid, 'SIGTERM');
    expect(await program.ended).not.toBe(0);
    await until(() => !isAlive(step));
    expect(program.output()).toContain('cancelled');
  });
});

/** The supervisor, its instances and PostgreSQL, as its last line names them. */
async function supervised(program: Program): Promise<number[]> {
  await until(() => /"metrics_ports".*"ready"/.test(program.output()), program);
  const line =
    program
      .output()
      .split('\n')
      .find((one) => one.includes('"metrics_ports"')) ?? '';
  const { pid, pids } = JSON.parse(line) as { pid: number; pids: number[] };
  return [pid, ...pids, readPidFile(join(dir, 'authz/postgres'))?.pid ?? 0];
}

/** Ends npm, and expects everything else to end in order; the next start works. */
async function expectEndsWithNpm(
  program: Program,
  target: number,
  signal: NodeJS.Signals,
  pids: readonly number[],
): Promise<void> {
  expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
  process.kill(target, signal);
  await program.ended;
  await until(() => !pids.some((pid) => isAlive(pid)));
}

describe('npm is sent a signal that it does not pass on', { timeout: 120_000 }, () => {
  inLong(it).each([
    ["npm's own process", 'SIGHUP', (pid: number) => pid],
    ["npm's own process", 'SIGKILL', (pid: number) => pid],
    ['the process group', 'SIGHUP', (pid: number) => -pid],
    ["npm's own process", 'SIGINT', (pid: number) => pid],
  ] as const)('%s, %s: two instances stop in order, and start again', async (_to, signal, of) => {
    const program = npmRun('start', '--instances', '2');
    const pids = await supervised(program);
    await expectEndsWithNpm(program, of(program.pid), signal, pids);
    expect(program.output().split('"stopped"')).toHaveLength(4);
    const next = npmRun('start', '--instances', '2');
    await expectEndsWithNpm(next, next.pid, 'SIGTERM', await supervised(next));
    expect(await next.ended).toBe(0);
  });

  inLong(it).each(['SIGHUP', 'SIGKILL'] as const)(
    '%s: one service stops in order',
    async (signal) => {
      const program = npmRun('start');
      await until(() => program.output().includes('"ready"'), program);
      await expectEndsWithNpm(program, program.pid, signal, await processesOf('authz'));
      await until(() => program.output().includes('"stopped"'));
      expect(program.output()).toContain(`end of npm (process ${program.pid})`);
    },
  );

  it.each(byLength(['SIGKILL'] as const, ['SIGHUP'] as const))(
    '%s: all three services stop',
    async (signal) => {
      const program = npmRun('start:all', workspace);
      await until(() => program.output().split('"ready"').length > 2, program);
      await until(() => program.output().split('"server_listen"').length > 3, program);
      const services = [await processesOf('authz'), await processesOf('notify')];
      const pids = [...services.flat(), await runnerProcess()];
      await expectEndsWithNpm(program, program.pid, signal, pids);
    },
  );

  inLong(it)('SIGKILL: the notification service and its PostgreSQL stop', async () => {
    const program = npmRun('start:notify');
    await until(() => program.output().split('"server_listen"').length > 3, program);
    await expectEndsWithNpm(program, program.pid, 'SIGKILL', await processesOf('notify'));
  });

  inLong(it)('SIGKILL: the runner stops', async () => {
    const program = npmRun('start:runner', workspace);
    await until(() => program.output().includes('"ready"'), program);
    await expectEndsWithNpm(program, program.pid, 'SIGKILL', [await runnerProcess()]);
  });
});

inShort(describe)('a service that was started directly', { timeout: 120_000 }, () => {
  /** As one types it: the shell ends, and the service is nobody's child. */
  async function inBackground(): Promise<Program & { readonly service: number }> {
    const program = run(['sh', '-c', `"${process.execPath}" src/main.ts & echo "pid=$!"`], {
      // As in a shell that a script of npm opened.
      npm_lifecycle_event: 'start',
      npm_execpath: '/usr/lib/node_modules/npm/bin/npm-cli.js',
    });
    expect(await program.ended).toBe(0);
    await until(() => program.output().includes('"ready"'));
    const service = Number(/pid=(\d+)/.exec(program.output())?.[1]);
    return { ...program, service };
  }

  it('goes on when the shell that started it has ended, and stops in order at SIGHUP', async () => {
    const { service, output } = await inBackground();
    const pids = await processesOf('authz');
    expect(pids[0]).toBe(service);
    expect(output()).toContain(`"pid":${service}`);
    // Longer than it takes to notice that npm has gone.
    await sleep(1_000);
    expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
    process.kill(service, 'SIGHUP');
    await until(() => !pids.some((pid) => isAlive(pid)));
    expect(output()).toContain('"stopped"');
  });
});

inLong(it)(
  'a terminal that is closed stops npm and the service in order',
  async () => {
    const words = ['script', '-qfec', 'npm run --silent start', '/dev/null'];
    const program = run(words, {});
    await until(() => program.output().includes('ready at http://127.0.0.1:'), program);
    const pids = await processesOf('authz');
    await expectEndsWithNpm(program, program.pid, 'SIGKILL', pids);
  },
  120_000,
);
