import { accessSync, closeSync, constants, existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants as system } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

/**
 * Request to start a program by posix_spawn(3) of glibc. Node starts a program by fork(2), which
 * copies the page tables of the whole process and stops the event loop meanwhile. That took 3 ms
 * with 45 MB in memory and 80 ms with 300 MB on the machine it was measured on. This takes 0.2 ms
 * at any size, since the child shares the memory until it runs its program.
 */
export type NativeRequest = {
  /** Absolute, or found on the PATH of `env`. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The child's whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Default /dev/null. The caller still owns and closes these. */
  readonly stdinFd?: number | undefined;
  readonly stdoutFd: number;
  readonly stderrFd: number;
};

/** A started program, or the name of the system's error: ENOENT, EACCES, E2BIG… */
export type NativeStart = { readonly pid: number } | { readonly error: string };

/** Outcome of a process. */
export type NativeEnd = {
  readonly pid: number;
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
};

export interface NativeChild {
  /** Leader of a separate session and process group. */
  readonly pid: number;
  /**
   * Adds a listener, called once when the process has ended and its number may be reused. Never
   * called before this function returns.
   */
  onExit(listener: (code: number | null, signal: string | null) => void): void;
}

type NativeCall = (...args: unknown[]) => number;
type NativeCalls = {
  readonly spawn: NativeCall;
  readonly waitpid: NativeCall;
  readonly pipe2: NativeCall;
  readonly mkfifo: NativeCall;
  readonly actionsInit: NativeCall;
  readonly actionsDestroy: NativeCall;
  readonly addOpen: NativeCall;
  readonly addDup2: NativeCall;
  readonly addChdir: NativeCall;
  readonly addCloseFrom: NativeCall;
  readonly attributesInit: NativeCall;
  readonly attributesDestroy: NativeCall;
  readonly setFlags: NativeCall;
  readonly setDefaultSignals: NativeCall;
  readonly setMask: NativeCall;
};
type SpawnLibrary = { load(library: string): { func(signature: string): NativeCall } };

/** More than glibc's structures need on any machine (336 bytes at most). */
const STRUCTURE_BYTES = 1_024;
const SIGNAL_SET_BYTES = 128;
/** spawn.h: SETSIGDEF, SETSIGMASK, SETSID. */
const SPAWN_FLAGS = 0x04 | 0x08 | 0x80;
/** The first descriptor after stdin, stdout and stderr. */
const FIRST_OTHER_FD = 3;
const WNOHANG = 1;
const SIGNAL_BITS = 0x7f;
const EXIT_SHIFT = 8;
const EXIT_BITS = 0xff;
/** Poll interval of children in ms, for threads without SIGCHLD, such as a worker thread. */
const REAP_MS = 100;

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(system.signals).map(([name, number]) => [number, name]),
);

let calls: NativeCalls | null | undefined;

/**
 * Starts a program. Undefined if that is impossible in this way: no glibc, the file is missing or
 * not a program, or the arguments are too long. Use node:child_process then, which also explains
 * the reason.
 */
export function spawnNative(request: NativeRequest): NativeChild | undefined {
  const start = startUnwatched(request);
  return start === undefined || 'error' in start ? undefined : watch(start.pid);
}

/**
 * Starts a program that the caller waits for itself, by `takeEnded`. Undefined if the platform does
 * not support it (no glibc).
 */
export function startUnwatched(request: NativeRequest): NativeStart | undefined {
  const bound = loadCalls();
  if (bound === null) return undefined;
  if (hasZero(request)) return { error: 'EINVAL' };
  const file = findProgram(request);
  if (typeof file !== 'string') return file;
  const actions = Buffer.alloc(STRUCTURE_BYTES);
  const attributes = Buffer.alloc(STRUCTURE_BYTES);
  const pid = [0];
  bound.actionsInit(actions);
  bound.attributesInit(attributes);
  try {
    bound.setFlags(attributes, SPAWN_FLAGS);
    bound.setDefaultSignals(attributes, Buffer.alloc(SIGNAL_SET_BYTES, 0xff));
    bound.setMask(attributes, Buffer.alloc(SIGNAL_SET_BYTES));
    const hasInput =
      request.stdinFd === undefined
        ? bound.addOpen(actions, 0, '/dev/null', constants.O_RDONLY, 0)
        : bound.addDup2(actions, request.stdinFd, 0);
    const isPrepared =
      hasInput === 0 &&
      bound.addDup2(actions, request.stdoutFd, 1) === 0 &&
      bound.addDup2(actions, request.stderrFd, 2) === 0 &&
      bound.addChdir(actions, request.cwd) === 0 &&
      // The HTTP server's sockets are not closed automatically. A child could write to its
      // callers, and would keep their connections open after the end of this process.
      bound.addCloseFrom(actions, FIRST_OTHER_FD) === 0;
    if (!isPrepared) return { error: 'ENOMEM' };
    const argv = [request.file, ...request.args, null];
    const environment = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
    const code = bound.spawn(pid, file, actions, attributes, argv, [...environment, null]);
    return code === 0 && pid[0] !== undefined ? { pid: pid[0] } : { error: errorName(code) };
  } catch {
    // More arguments than the binding takes at once.
    return { error: 'E2BIG' };
  } finally {
    bound.actionsDestroy(actions);
    bound.attributesDestroy(attributes);
  }
}

/** An anonymous pipe, both ends blocking and closed in children; undefined if that fails. */
export function nativePipe(): { readonly readFd: number; readonly writeFd: number } | undefined {
  const bound = loadCalls();
  const fds = [0, 0];
  // O_CLOEXEC is the same number wherever Linux runs Node.
  if (bound === null || bound.pipe2(fds, 0o2000000) !== 0) return undefined;
  const [readFd = 0, writeFd = 0] = fds;
  return { readFd, writeFd };
}

/** Makes a named pipe of this user alone; false if that fails. */
export function makeNamedPipe(path: string): boolean {
  const bound = loadCalls();
  return bound !== null && bound.mkfifo(path, 0o600) === 0;
}

/** Closes both ends of a pipe that was not used. */
export function closePipe(pipe: { readonly readFd: number; readonly writeFd: number }): void {
  closeSync(pipe.readFd);
  closeSync(pipe.writeFd);
}

function loadCalls(): NativeCalls | null {
  if (calls === undefined) calls = process.platform === 'linux' ? bind() : null;
  return calls;
}

function bind(): NativeCalls | null {
  try {
    const koffi = createRequire(import.meta.url)('koffi') as SpawnLibrary;
    const libc = koffi.load('libc.so.6');
    const actions = 'void *actions';
    const attributes = 'void *attributes';
    return {
      spawn: libc.func(
        `int posix_spawn(_Out_ int *pid, const char *path, ${actions}, ${attributes}, const char **argv, const char **envp)`,
      ),
      waitpid: libc.func('int waitpid(int pid, _Out_ int *status, int options)'),
      pipe2: libc.func('int pipe2(_Out_ int *fds, int flags)'),
      mkfifo: libc.func('int mkfifo(const char *path, unsigned int mode)'),
      actionsInit: libc.func(`int posix_spawn_file_actions_init(${actions})`),
      actionsDestroy: libc.func(`int posix_spawn_file_actions_destroy(${actions})`),
      addOpen: libc.func(
        `int posix_spawn_file_actions_addopen(${actions}, int fd, const char *path, int flags, unsigned int mode)`,
      ),
      addDup2: libc.func(`int posix_spawn_file_actions_adddup2(${actions}, int from, int to)`),
      addChdir: libc.func(`int posix_spawn_file_actions_addchdir_np(${actions}, const char *path)`),
      addCloseFrom: libc.func(`int posix_spawn_file_actions_addclosefrom_np(${actions}, int from)`),
      attributesInit: libc.func(`int posix_spawnattr_init(${attributes})`),
      attributesDestroy: libc.func(`int posix_spawnattr_destroy(${attributes})`),
      setFlags: libc.func(`int posix_spawnattr_setflags(${attributes}, short flags)`),
      setDefaultSignals: libc.func(`int posix_spawnattr_setsigdefault(${attributes}, void *set)`),
      setMask: libc.func(`int posix_spawnattr_setsigmask(${attributes}, void *set)`),
    };
  } catch {
    // No binary of the binding for this platform, another libc, or one too old (before 2.34).
    return null;
  }
}

/** Finds a program like execvp(3), but on the PATH of the child. */
function findProgram({ file, cwd, env }: NativeRequest): string | { readonly error: string } {
  const candidates = file.includes('/')
    ? [isAbsolute(file) ? file : resolve(cwd, file)]
    : (env['PATH'] ?? '').split(delimiter).map((folder) => join(resolve(cwd, folder), file));
  const found = candidates.find(isProgram);
  if (found !== undefined) return found;
  const isThere = candidates.some((path) => existsSync(path));
  return { error: isThere ? 'EACCES' : 'ENOENT' };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** True if a text has a zero byte, where C would end the text. Node refuses it. */
function hasZero({ file, args, cwd, env }: NativeRequest): boolean {
  const has = (text: string): boolean => text.includes('\0');
  return has(file) || has(cwd) || args.some(has) || Object.entries(env).flat().some(has);
}

function errorName(code: number): string {
  const [name] = Object.entries(system.errno).find(([, number]) => number === code) ?? [];
  return name ?? `E${code}`;
}

/**
 * The next ended child of this process, started by any code, including adopted ones. Undefined
 * while all of them run; `none` if there is no child. Only for a program that starts all of its
 * children by `startUnwatched`: it would take Node's own children away from Node.
 */
export function takeEnded(): NativeEnd | 'none' | undefined {
  const status = [0];
  const ended = loadCalls()?.waitpid(-1, status, WNOHANG) ?? -1;
  if (ended === 0) return undefined;
  return ended < 0 ? 'none' : { pid: ended, ...outcomeOf(status[0] ?? 0) };
}

type ExitListener = Parameters<NativeChild['onExit']>[0];

const children = new Map<number, ExitListener[]>();
let timer: NodeJS.Timeout | undefined;
let isListening = false;

function watch(pid: number): NativeChild {
  const listeners: ExitListener[] = [];
  children.set(pid, listeners);
  if (!isListening) {
    isListening = true;
    process.on('SIGCHLD', reap);
    // Finds a child that ended before the listener was added.
    setImmediate(reap);
  }
  // Keeps the process alive while it has children, like Node's own children do.
  timer ??= setInterval(reap, REAP_MS);
  return {
    pid,
    onExit: (listener) => void listeners.push(listener),
  };
}

/** Polls each of our children and no other: Node waits for its own. */
function reap(): void {
  const bound = loadCalls();
  if (bound === null) return;
  for (const [pid, listeners] of children) {
    const status = [0];
    const ended = bound.waitpid(pid, status, WNOHANG);
    if (ended === 0) continue;
    children.delete(pid);
    // -1: other code waited for it, and its outcome is lost.
    const { code, signal } =
      ended === pid ? outcomeOf(status[0] ?? 0) : { code: null, signal: 'SIGKILL' };
    for (const listener of listeners) listener(code, signal);
  }
  if (children.size > 0 || timer === undefined) return;
  clearInterval(timer);
  timer = undefined;
}

function outcomeOf(status: number): {
  readonly code: number | null;
  readonly signal: string | null;
} {
  const number = status & SIGNAL_BITS;
  if (number === 0) return { code: (status >> EXIT_SHIFT) & EXIT_BITS, signal: null };
  return { code: null, signal: SIGNAL_NAMES.get(number) ?? `SIG${number}` };
}
