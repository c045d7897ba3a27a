/* The server's process, and its log. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppError } from '../../shared/app-error.ts';
import type { StoreLog } from '../postgres/store-log.ts';
import {
  type PostgresBinaries,
  type ServerUser,
  systemCode,
  unavailable,
} from './embedded-postgres-binaries.ts';

/** Prefix of each line of the server's log: time, process and SQLSTATE. */
export const LOG_LINE_PREFIX = '%m [%p] %e ';
export const START_TIMEOUT_MS = 120_000;
const POLL_MS = 5;
/** Fast shutdown writes a checkpoint, which may take a while on a slow disk. */
const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 10_000;

/** Bytes of the server's log, of which one older file is kept. */
const LOG_BYTES_MAX = 8 * 1024 * 1024;
/** Lines quoted from the log of a server that could not work: the file has more. */
const SAID_LINES_MAX = 8;
/** Lines that the log has for every start and stop. */
const ORDINARY =
  /LOG: {2}(?:starting PostgreSQL|listening on|database system (?:is|was) (?:shut down|ready)|received |aborting any|background worker|shutting down|terminating any other|all server processes)/;
const LOG_POLL_MS = 1_000;
/** The most that one poll reads; the rest is left to the file. */
const LOG_POLL_BYTES_MAX = 64 * 1024;
const LOG_POLL_LINES_MAX = 10;
const TEXT_MAX = 500;
const TROUBLE = /^\S+ \S+ \S+ \[(\d+)\] ([0-9A-Z]{5}) (WARNING|ERROR|FATAL|PANIC): {2}(.*)$/;
const SEVERITIES = ['WARNING', 'ERROR', 'FATAL', 'PANIC'];
/**
 * Errors that whoever asked gets, and that often quote them: bad data (22), violated constraints (23), and refusals by functions of
 * ours (GH).
 */
const OF_CALLERS = /^(?:22|23|GH)/;

/** Programs of one cluster, and the settings they run with. */
export type Programs = PostgresBinaries &
  ServerUser & {
    /** File that takes their output. */
    readonly logPath: string;
  };

/** Content of postmaster.pid; its status is 'starting', 'ready', 'stopping'… */
type PidFile = Readonly<{ pid: number; socketDirectory: string; status: string }>;

/** A log, and the byte from which on it counts. */
export type LogPosition = { readonly path: string; readonly start: number };

/** Starts the server of a cluster. */
export function spawnServer(
  programs: Programs,
  dataDirectory: string,
  settings: Readonly<Record<string, string>>,
): ChildProcess {
  const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return spawnDetached(programs, [programs.postgres, '-D', dataDirectory, ...words]);
}

/** Runs a command to its end; it reads `input`. Errors: STORE_UNAVAILABLE with the log's lines about `what`. */
export async function runToEnd(
  what: string,
  programs: Programs,
  command: readonly string[],
  input?: string,
): Promise<void> {
  const log = endOfLog(programs.logPath);
  const child = spawnDetached(programs, command, input);
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status, signal) => resolve(status ?? signal));
  });
  if (code !== 0) throw logError(`${what} ended with ${code}`, log);
}

/**
 * Starts a command in its own session, so that Ctrl-C at the terminal reaches us alone and the
 * order of stopping stays ours. Output goes to the log file, never to a pipe that could close.
 */
function spawnDetached(
  { env, owner, prefix, logPath }: Programs,
  command: readonly string[],
  input?: string,
): ChildProcess {
  if (endOfLog(logPath).start > LOG_BYTES_MAX) renameSync(logPath, `${logPath}.1`);
  const log = openSync(logPath, 'a', 0o600);
  try {
    const [program = '', ...args] = [...prefix, ...command];
    const child = spawn(program, args, {
      detached: true,
      stdio: [input === undefined ? 'ignore' : 'pipe', log, log],
      env,
      ...(prefix.length === 0 && owner),
    });
    // A command that ends before it has read everything logs the reason.
    child.stdin?.once('error', () => undefined).end(input);
    return child;
  } finally {
    closeSync(log);
  }
}

/**
 * Waits until the server accepts connections. `log` is where its own words begin. Errors:
 * STORE_UNAVAILABLE when it ends instead.
 */
export async function waitReady(
  child: ChildProcess,
  dataDirectory: string,
  log: LogPosition,
): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  let failed: Error | undefined;
  child.once('error', (error) => (failed = error));
  for (;;) {
    if (failed !== undefined) throw logError('PostgreSQL did not start', log, failed);
    const end = child.exitCode ?? child.signalCode;
    if (end !== null) throw logError(`PostgreSQL ended with ${end} while starting`, log);
    const file = readPidFile(dataDirectory);
    if (file?.pid === child.pid && file?.status === 'ready') return;
    if (performance.now() > deadline) {
      throw logError(`PostgreSQL was not ready after ${START_TIMEOUT_MS} ms`, log);
    }
    await sleep(POLL_MS);
  }
}

/** Content of postmaster.pid, or undefined if there is none (or it is just being written). */
export function readPidFile(dataDirectory: string): PidFile | undefined {
  let lines: readonly string[];
  try {
    lines = readFileSync(join(dataDirectory, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return undefined; // Absent, which is the usual case.
  }
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  return { pid, socketDirectory: lines[4] ?? '', status: (lines[7] ?? '').trim() };
}

/** Whether the process exists and has not ended; a zombie has ended. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) !== 'EPERM') return false;
  }
  if (process.platform !== 'linux') return true;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // It ended between the two reads.
  }
}

/**
 * Whether `pid` works in the data directory, as every PostgreSQL process does; undefined: cannot be
 * determined.
 */
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
  if (process.platform !== 'linux') return;
  const deadline = performance.now() + IMMEDIATE_STOP_MS;
  for (;;) {
    const pids = readdirSync('/proc').map(Number);
    const pid = pids.find((one) => one > 0 && worksIn(one, dataDirectory) === true);
    if (pid === undefined) return;
    if (performance.now() > deadline) {
      throw unavailable(
        `process ${pid} of a killed PostgreSQL still works in ${dataDirectory}; end it`,
      );
    }
    await sleep(POLL_MS);
  }
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
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (systemCode(error) === 'ESRCH') return;
      throw error;
    }
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!isAlive(pid)) return;
      await sleep(POLL_MS);
    }
  }
  throw unavailable(`PostgreSQL (pid ${pid}) cannot be stopped`);
}

/** The present end of a log: later lines of a server come after it. */
export function endOfLog(path: string): LogPosition {
  return { path, start: statSync(path, { throwIfNoEntry: false })?.size ?? 0 };
}

/** An error with `problem` and the log's lines about it. */
export function logError(problem: string, log: LogPosition, cause?: unknown): AppError {
  const { path, start } = log;
  let bytes = Buffer.alloc(0);
  try {
    bytes = readFileSync(path);
  } catch {
    // Nothing was logged yet.
  }
  // A log that was set aside begins anew.
  const text = bytes.subarray(start > bytes.length ? 0 : start).toString('utf8');
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !ORDINARY.test(line));
  const said = lines.slice(-SAID_LINES_MAX).join('\n');
  return unavailable(`${problem}; its log ${path} says:\n${said}`, {}, cause);
}

/**
 * Passes on what the server reports from `start` on: `postgres_reports` with its severity, SQLSTATE
 * and words, without the statement. Polls once a second and passes at most ten lines a poll, the
 * last of which counts those left out. A log of more than 8 MiB begins anew, and its former content
 * is kept beside it. Never throws. Returns a function that polls once more and ends this.
 */
export function followServerLog({ path, start }: LogPosition, log: StoreLog): () => void {
  let at = start;
  const poll = (): void => {
    const { text, end } = linesBehind(path, at);
    at = end > LOG_BYTES_MAX && isSetAside(path) ? 0 : end;
    const found = text.split('\n').flatMap((line) => troubleIn(line) ?? []);
    // The most severe ones are logged if there are many.
    if (found.length > LOG_POLL_LINES_MAX) {
      found.sort((a, b) => SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity));
    }
    for (const [index, fields] of found.slice(0, LOG_POLL_LINES_MAX).entries()) {
      const omitted = index === LOG_POLL_LINES_MAX - 1 ? found.length - LOG_POLL_LINES_MAX : 0;
      const level = fields.severity === 'WARNING' ? 'warn' : 'error';
      log(level, 'postgres_reports', omitted > 0 ? { ...fields, omitted } : fields);
    }
  };
  const timer = setInterval(poll, LOG_POLL_MS).unref();
  return () => {
    clearInterval(timer);
    poll();
  };
}

function troubleIn(line: string) {
  const [, pid = '', sqlstate = '', severity = '', text = ''] = TROUBLE.exec(line) ?? [];
  if (pid === '' || OF_CALLERS.test(sqlstate)) return undefined;
  return { severity, sqlstate, text: text.slice(0, TEXT_MAX), pid: Number(pid) };
}

/** The server continues writing at the end of the file that it has open, so that it is emptied, not replaced. */
function isSetAside(path: string): boolean {
  try {
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
    return true;
  } catch {
    return false; // The disk may be full; the next poll tries again.
  }
}

/** The whole lines behind `at`, and where they end; of more than 64 KiB the last. */
function linesBehind(path: string, at: number): { readonly text: string; readonly end: number } {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const { size } = fstatSync(file);
    // A log that was set aside begins anew.
    const from = Math.max(size < at ? 0 : at, size - LOG_POLL_BYTES_MAX);
    const bytes = Buffer.alloc(size - from);
    const read = readSync(file, bytes, 0, bytes.length, from);
    const length = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
    return { text: bytes.toString('utf8', 0, length), end: from + length };
  } catch {
    return { text: '', end: at }; // It was removed, or the disk fails, which the server reports itself.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
