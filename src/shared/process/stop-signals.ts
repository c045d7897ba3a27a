import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * Poll interval of the parent process, in ms. Only an orderly stop depends on it, which takes
 * longer.
 */
const POLL_MS = 250;
const PACKAGE_MANAGER = /^(npm|pnpm|yarn)\b/;

/**
 * Calls `gone` once, with a text for the log, after the end of the process that runs this one. That
 * is an npm that started it as a script, or the program of this project that has a channel to it.
 * An npm may be killed, or end by a signal that it does not pass on (SIGHUP). An operator then has
 * no process left to signal.
 *
 * Any other parent may end at any time, such as a shell whose background job this is, or a daemon
 * that detaches. Cost: one system call each `POLL_MS`.
 */
export function onParentGone(gone: (what: string) => void): void {
  if (process.connected) {
    process.once('disconnect', () => gone('end of the supervisor'));
    return;
  }
  const pid = process.ppid;
  if (!isPackageManager(pid, process.env)) return;
  const timer = setInterval(() => {
    if (process.ppid === pid) return;
    clearInterval(timer);
    gone(`end of npm (process ${pid})`);
  }, POLL_MS);
  timer.unref();
}

/**
 * True if process `pid` is the npm that runs this process as a script. Its variables alone prove
 * little: every process below a script has them, at any depth. Without /proc they have to suffice.
 */
function isPackageManager(pid: number, env: NodeJS.ProcessEnv): boolean {
  if (pid <= 1 || (env['npm_lifecycle_event'] ?? '') === '') return false;
  let words: readonly string[];
  try {
    words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    // No such file system, or it has just ended.
    return process.platform !== 'linux';
  }
  // npm calls itself `npm run start:runner /a/project`; others appear as the file of their
  // program.
  const [first = '', second = ''] = words;
  return [first, basename(first), basename(second)].some((word) => PACKAGE_MANAGER.test(word));
}

/**
 * Window in ms for copies of a signal. A busy npm may take this long to pass a signal on; a second
 * deliberate signal comes later.
 */
const ECHO_MS = 1_000;

export type StopHandlers = {
  /**
   * Ends the running work, in order. `cause` is for the log: the signal, or the process that has
   * ended.
   */
  readonly stop: (cause: string) => void;
  /** Ends at once, at a repeated signal. */
  readonly force: (signal: NodeJS.Signals) => void;
};

/** Sources of stop requests; tests use others than this process's. */
export type StopSources = {
  readonly signals: Pick<EventEmitter, 'on'>;
  /** The monotonic clock. */
  readonly nowMs: () => number;
  readonly onParentGone: (gone: (what: string) => void) => void;
};

const OF_THIS_PROCESS: StopSources = {
  signals: process,
  nowMs: () => performance.now(),
  onParentGone,
};
/** SIGHUP comes from a closed terminal. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Makes a function to call at each signal. It returns true for a copy of an earlier one: npm passes
 * on signals that the terminal has already sent to every process. A copy comes within `windowMs` of
 * the last signal that was no copy.
 */
export function createEchoFilter(
  windowMs = ECHO_MS,
  nowMs = (): number => performance.now(),
): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    const isEcho = nowMs() - lastMs <= windowMs;
    if (!isEcho) lastMs = nowMs();
    return isEcho;
  };
}

/**
 * Registers the handlers. The first of `signals`, or the end of the npm that runs this process,
 * calls `stop`. Every later signal that is not a copy calls `force`.
 */
export function onStopSignals(
  { stop, force }: StopHandlers,
  signals: readonly NodeJS.Signals[] = STOP_SIGNALS,
  sources = OF_THIS_PROCESS,
): void {
  const isEcho = createEchoFilter(ECHO_MS, sources.nowMs);
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isEcho()) return;
    if (isStopping) return force(signal);
    isStopping = true;
    stop(signal);
  };
  for (const signal of signals) sources.signals.on(signal, onSignal);
  sources.onParentGone((what) => {
    // The end of the parent is no repeated request to stop.
    if (isStopping) return;
    isStopping = true;
    stop(what);
  });
}
