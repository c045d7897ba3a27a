import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../shared/app-error.ts';
import { endOfLog, logError, type LogPosition } from './embedded-postgres-damage.ts';
import type { ServerUser } from './embedded-postgres-user.ts';
import type { StoreReason } from './store-reason.ts';

const POLL_MS = 5;
/** Bytes of the server's log, of which one older file is kept. */
export const LOG_BYTES_MAX = 8 * 1024 * 1024;
/** Fast shutdown writes a checkpoint, which may take a while on a slow disk. */
const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 10_000;

export type ServerCommand = {
  readonly command: string;
  readonly args: readonly string[];
  readonly user: ServerUser;
  readonly env: Readonly<Record<string, string>>;
  readonly logPath: string;
  /** What the command reads; nothing when absent. */
  readonly input?: string | undefined;
};

/** What postmaster.pid says. */
export type PidFile = {
  readonly pid: number;
  readonly socketDirectory: string;
  /** 'starting', 'ready', 'stopping'… */
  readonly status: string;
};

/**
 * Starts a command in its own session, so that Ctrl-C at the terminal reaches us alone and the
 * order of stopping stays ours. Output goes to the log file, never to a pipe that could close.
 */
export function spawnDetached(serverCommand: ServerCommand): ChildProcess {
  const { command, args, user, env, logPath, input } = serverCommand;
  const size = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(logPath, `${logPath}.1`);
  const log = openSync(logPath, 'a', 0o600);
  try {
    const [program = command, ...words] = [...user.prefix, command, ...args];
    const child = spawn(program, words, {
      detached: true,
      stdio: [input === undefined ? 'ignore' : 'pipe', log, log],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', ...env },
      ...user.spawnAs,
    });
    // A command that ends before it has read everything says why in its log.
    child.stdin?.once('error', () => undefined).end(input);
    return child;
  } finally {
    closeSync(log);
  }
}

/** Runs a command to its end. Errors: STORE_UNAVAILABLE with what the log says of it. */
export async function runToEnd(serverCommand: ServerCommand, what: string): Promise<void> {
  const log = endOfLog(serverCommand.logPath);
  const child = spawnDetached(serverCommand);
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status, signal) => resolve(status ?? signal));
  });
  if (code !== 0) throw logError(`${what} ended with ${code}`, log);
}

/**
 * Waits until the server accepts connections. `log` is where its own words begin. Errors:
 * STORE_UNAVAILABLE when it ends instead.
 */
export async function waitReady(
  child: ChildProcess,
  dataDirectory: string,
  log: LogPosition,
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let failed: Error | undefined;
  child.once('error', (error) => (failed = error));
  for (;;) {
    if (failed !== undefined) throw logError('PostgreSQL did not start', log, failed);
    if (child.exitCode !== null || child.signalCode !== null) {
      const end = child.exitCode ?? child.signalCode;
      throw logError(`PostgreSQL ended with ${end} while starting`, log);
    }
    const file = readPidFile(dataDirectory);
    if (file?.pid === child.pid && file?.status === 'ready') return;
    if (performance.now() > deadline) {
      throw logError(`PostgreSQL was not ready after ${timeoutMs} ms`, log);
    }
    await sleep(POLL_MS);
  }
}

/** Content of postmaster.pid, or undefined when there is none (or it is just being written). */
export function readPidFile(dataDirectory: string): PidFile | undefined {
  let text: string;
  try {
    text = readFileSync(join(dataDirectory, 'postmaster.pid'), 'utf8');
  } catch {
    return undefined; // Absent, which is the usual case.
  }
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  return { pid, socketDirectory: lines[4] ?? '', status: (lines[7] ?? '').trim() };
}

/** Whether the process exists and has not ended; a zombie has ended. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  if (process.platform !== 'linux') return true;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // It went away between the two looks.
  }
}

/** Whether `pid` works in the data directory, as every PostgreSQL process does; undefined: cannot be reported. */
export function worksIn(pid: number, dataDirectory: string): boolean | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDirectory);
  } catch {
    return undefined; // Gone, or of another user.
  }
}

/**
 * Waits until no process works in the data directory: those of a killed server end by themselves,
 * but not at once. Errors: STORE_UNAVAILABLE when one stays.
 */
export async function waitUntilUnused(dataDirectory: string): Promise<void> {
  const deadline = performance.now() + IMMEDIATE_STOP_MS;
  for (;;) {
    const pid = processIn(dataDirectory);
    if (pid === undefined) return;
    if (performance.now() > deadline) {
      throw new AppError<StoreReason>(
        'STORE_UNAVAILABLE',
        `process ${pid} of a killed PostgreSQL still works in ${dataDirectory}; end it`,
      );
    }
    await sleep(POLL_MS);
  }
}

function processIn(dataDirectory: string): number | undefined {
  if (process.platform !== 'linux') return undefined;
  return readdirSync('/proc')
    .map(Number)
    .find((pid) => pid > 0 && worksIn(pid, dataDirectory) === true);
}

/**
 * Stops a server: fast shutdown first (sessions are cut, a checkpoint is written), then immediate
 * (recovery at the next start), then kill; `isBroken`: at once immediate. Resolves when the process is gone.
 */
export async function stopServer(pid: number, isBroken = false): Promise<void> {
  const steps = [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
    ['SIGKILL', IMMEDIATE_STOP_MS],
  ] as const;
  for (const [signal, waitMs] of isBroken ? steps.slice(1) : steps) {
    if (!sendSignal(pid, signal)) return;
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!isAlive(pid)) return;
      await sleep(POLL_MS);
    }
  }
  throw new AppError<StoreReason>('STORE_UNAVAILABLE', `PostgreSQL (pid ${pid}) cannot be stopped`);
}

function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
