import { spawn } from 'node:child_process';
import { closeSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { spawnNative } from '../../../shared/process/native-spawn.ts';
import { type OutputPipe, takeOutputPipe } from './output-pipe.ts';
import { OutputReader } from './output-reader.ts';
import { markFirstBirth } from './process-births.ts';

/** The kill escalation of a cancel: docs.github.com, workflow cancellation reference. */
const INTERRUPT_MS = 7_500;
const TERMINATE_MS = 2_500;
/** How often the kill escalation looks whether the group is gone. */
const GROUP_POLL_MS = 20;
/** Steps die before the runner does when memory runs out. */
const OOM_SCORE_ADJ = '500';

export type ProcessRequest = {
  /** Absolute, or found on the PATH of `env`. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of the child's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Both streams, in the order written. A promise pauses reading until it resolves. */
  readonly onChunk: (chunk: Buffer) => Promise<void> | undefined;
  /** Becomes RUNNER_TRACKING_ID of the process and all its children; see sweep.ts. */
  readonly trackingId: string;
  /** Waiting times of the kill escalation, for those who cannot wait 10 s. */
  readonly killEscalation?:
    | { readonly interruptMs: number; readonly terminateMs: number }
    | undefined;
};

export type ProcessExit = {
  /** Null when a signal ended it or it never started. */
  readonly code: number | null;
  readonly signal: string | null;
  /** Why it could not be started: ENOENT, EACCES, E2BIG… */
  readonly error?: Error | undefined;
};

export interface RunningProcess {
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /**
   * Never rejects. Resolves after the last chunk was taken; a grandchild that holds the pipe open
   * delays it by at most a second (by the rest of the kill escalation after an interrupt), and what it writes
   * afterwards is discarded.
   */
  readonly exit: Promise<ProcessExit>;
  /**
   * SIGINT, 7.5 s, SIGTERM, 2.5 s, SIGKILL to the whole process group. Resolves as soon as the group is
   * gone, or the last signal was sent. Calling it twice starts one kill escalation.
   */
  interrupt(): Promise<void>;
  /** SIGKILL to the whole process group, now. */
  kill(): void;
}

/**
 * Starts a program in a process group (and session) of its own, with stdin at /dev/null and stdout and
 * stderr on one pipe. Never throws: what goes wrong is the `error` of its exit.
 */
export function startProcess(request: ProcessRequest): RunningProcess {
  let pipe: OutputPipe | undefined;
  let child: Leader;
  markFirstBirth(request.trackingId);
  try {
    pipe = takeOutputPipe();
    child = startLeader(request, pipe?.writeFd);
  } catch (error) {
    pipe?.reader.destroy();
    return unstarted(error);
  } finally {
    if (pipe !== undefined) {
      closeSync(pipe.writeFd);
    }
  }
  return watchLeader(child, pipe === undefined ? child.streams : [pipe.reader], request);
}

/** The first process of a group. */
export type Leader = {
  readonly pid: number | undefined;
  /** Where it writes when it got no pipe. */
  readonly streams: readonly Readable[];
  readonly onExit: (listener: (code: number | null, signal: string | null) => void) => void;
  readonly onError: (listener: (error: Error) => void) => void;
};

/** Throws as node:child_process does. */
function startLeader(request: ProcessRequest, writeFd: number | undefined): Leader {
  const { file, args, cwd } = request;
  const env = { ...request.env, RUNNER_TRACKING_ID: request.trackingId };
  const native =
    writeFd === undefined
      ? undefined
      : startOffered(() =>
          spawnNative({ file, args, cwd, env, stdoutFd: writeFd, stderrFd: writeFd }),
        );
  if (native !== undefined) {
    return {
      pid: native.pid,
      streams: [],
      onExit: (listener) => native.onExit(listener),
      onError: () => undefined,
    };
  }
  const child = spawn(file, [...args], {
    cwd,
    env,
    detached: true,
    stdio: writeFd === undefined ? ['ignore', 'pipe', 'pipe'] : ['ignore', writeFd, writeFd],
  });
  if (child.pid !== undefined) {
    offerToOomKiller(child.pid);
  }
  const streams: readonly (Readable | null)[] = [child.stdout, child.stderr];
  return {
    pid: child.pid,
    streams: streams.filter((stream) => stream !== null),
    onExit: (listener) => void child.once('exit', listener),
    onError: (listener) => void child.once('error', listener),
  };
}

/** A process that could not be started. */
export function unstarted(error: unknown): RunningProcess {
  const reason = error instanceof Error ? error : new Error(String(error));
  return {
    pid: undefined,
    exit: Promise.resolve({ code: null, signal: null, error: reason }),
    interrupt: () => Promise.resolve(),
    kill: () => undefined,
  };
}

function offerToOomKiller(pid: number): void {
  if (process.platform === 'linux') {
    writeOomScore(String(pid), OOM_SCORE_ADJ);
  }
}

/**
 * What `start` starts inherits the score from its first moment on; this process has its own back
 * afterwards. Where its own cannot be changed (it is hidden from others), the child's is.
 */
function startOffered<T extends { readonly pid: number } | undefined>(start: () => T): T {
  const own = readOomScore();
  if (own === undefined || !writeOomScore('self', OOM_SCORE_ADJ)) {
    const child = start();
    if (child !== undefined) offerToOomKiller(child.pid);
    return child;
  }
  try {
    return start();
  } finally {
    writeOomScore('self', own);
  }
}

function readOomScore(): string | undefined {
  try {
    return readFileSync('/proc/self/oom_score_adj', 'latin1').trim();
  } catch {
    // Another system, or /proc is hidden: a courtesy only.
    return undefined;
  }
}

function writeOomScore(process: string, score: string): boolean {
  try {
    writeFileSync(`/proc/${process}/oom_score_adj`, score);
    return true;
  } catch {
    // It is gone already, or /proc is read-only: a courtesy only.
    return false;
  }
}

/** What has been started, as a running process whose output goes to `request.onChunk`. */
export function watchLeader(
  child: Leader,
  streams: readonly Readable[],
  request: ProcessRequest,
): RunningProcess {
  const output = new OutputReader(streams, request.onChunk);
  const { promise: exit, resolve } = Promise.withResolvers<ProcessExit>();
  const group = createGroup(child.pid);
  child.onError((error) => {
    if (child.pid === undefined) {
      output.discard();
      resolve({ code: null, signal: null, error: explainStart(error, request) });
    }
  });
  let climbing: Promise<void> | undefined;
  child.onExit((code, signal) => {
    group.leaderEnded();
    // What the rest of an interrupted group says while it cleans up is part of the output.
    const settled = climbing ?? Promise.resolve();
    void settled.then(() => output.drained()).then(() => resolve({ code, signal }));
  });
  return {
    pid: child.pid,
    exit,
    interrupt: () =>
      (climbing ??= climb(
        group,
        request.killEscalation ?? {
          interruptMs: INTERRUPT_MS,
          terminateMs: TERMINATE_MS,
        },
      )),
    kill: () => group.signal('SIGKILL'),
  };
}

/** A missing folder and a missing program are both ENOENT and named alike: distinguish them. */
export function explainStart(error: Error, request: Pick<ProcessRequest, 'cwd'>): Error {
  if ('code' in error && error.code === 'ENOENT' && !existsSync(request.cwd)) {
    return new Error('The working directory does not exist', { cause: error });
  }
  return error;
}

interface ProcessGroup {
  /** Nothing happens once the group is gone: its number may be another's by then. */
  signal(signal: NodeJS.Signals): void;
  isGone(): boolean;
  leaderEnded(): void;
}

function createGroup(pid: number | undefined): ProcessGroup {
  let hasLeader = pid !== undefined;
  let isGone = pid === undefined;
  function send(signal: NodeJS.Signals | 0): void {
    if (isGone || pid === undefined) {
      return;
    }
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // EPERM: all that is left changed its user. It exists, but not for us.
      isGone = !hasLeader || (error as NodeJS.ErrnoException).code === 'EPERM';
    }
  }
  return {
    signal: send,
    isGone() {
      send(0);
      return isGone;
    },
    leaderEnded() {
      hasLeader = false;
      send(0);
    },
  };
}

async function climb(
  group: ProcessGroup,
  killEscalation: { readonly interruptMs: number; readonly terminateMs: number },
): Promise<void> {
  group.signal('SIGINT');
  if (await isGoneWithin(group, killEscalation.interruptMs)) {
    return;
  }
  group.signal('SIGTERM');
  if (await isGoneWithin(group, killEscalation.terminateMs)) {
    return;
  }
  group.signal('SIGKILL');
}

async function isGoneWithin(group: ProcessGroup, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (!group.isGone()) {
    const left = deadline - performance.now();
    if (left <= 0) {
      return false;
    }
    const wait = Promise.withResolvers<void>();
    setTimeout(wait.resolve, Math.min(left, GROUP_POLL_MS));
    await wait.promise;
  }
  return true;
}
