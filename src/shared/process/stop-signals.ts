import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Poll interval of the parent process. Only an orderly stop depends on it, which takes longer. */
const POLL_MS = 250;
const PACKAGE_MANAGER = /^(npm|pnpm|yarn)\b/;

/**
 * Calls `gone` once, with a text for the log, when the process that runs this one for somebody has ended: an npm that
 * started it as a script, or the program of this project that has a channel to it. An npm that is killed, or ends by a signal that it does not pass on
 * (SIGHUP), leaves nobody to whom an operator could send one. Any other parent may end as it likes: a shell whose
 * background job this is, or a daemon that detaches. Cost: one system call each `POLL_MS`.
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
 * Whether process `pid` is the npm that runs this process as a script. Its variables alone prove
 * little: every process below a script has them, at any depth. Without /proc they must do.
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
  // npm calls itself `npm run start:runner /a/project`; others are seen as their program's file.
  const [first = '', second = ''] = words;
  return [first, basename(first), basename(second)].some((word) => PACKAGE_MANAGER.test(word));
}

/** Nobody who insists does so sooner, and a busy npm may take this long to pass a signal on. */
const ECHO_MS = 1_000;

export type StopHandlers = {
  /** Ends what runs, in order. `cause` is the signal, or who has ended: for the log. */
  readonly stop: (cause: string) => void;
  /** Somebody insists: ends at once. */
  readonly force: (signal: NodeJS.Signals) => void;
};

/** Sources of the orders to stop; others than this process's in tests. */
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
/** SIGHUP is a terminal that was closed. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * A function to be called at each signal that returns whether it is the copy of one before: npm
 * passes on signals that the terminal has already sent to everybody. A copy comes within `windowMs`
 * of the last signal that was none.
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
 * From now on the first of `signals`, or the end of the npm that runs this process, calls `stop`, and every later signal that is
 * no copy `force`.
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
    // Nobody insists by ending.
    if (isStopping) return;
    isStopping = true;
    stop(what);
  });
}
