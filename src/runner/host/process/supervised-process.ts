import { closeSync, unlinkSync } from 'node:fs';
import { takePathPipe } from './output-pipe.ts';
import {
  explainStart,
  type ProcessRequest,
  type RunningProcess,
  startProcess,
  unstarted,
  watchLeader,
} from './run-process.ts';
import type { Supervisor } from './supervision.ts';
import type { ProcessEnd } from './supervisor-channel.ts';

/** A process that is killed ends at once; when its supervisor does not say so by then, it is held up. */
const END_REPORT_MS = 5_000;

/**
 * As `startProcess`, but below `supervisor`, which is the parent of the process and of all orphans that
 * it leaves. Without a supervisor it is the same. Never rejects.
 */
export async function startSupervised(
  request: ProcessRequest,
  supervisor: Supervisor | undefined,
): Promise<RunningProcess> {
  if (supervisor === undefined) return startProcess(request);
  const { file, args, cwd } = request;
  const pipe = takePathPipe();
  if (pipe === undefined) return unstarted(new Error('A pipe for the output cannot be made'));
  const env = { ...request.env, RUNNER_TRACKING_ID: request.trackingId };
  const started = await supervisor.start({ file, args, cwd, env, output: pipe.path });
  closeSync(pipe.writeFd);
  removePath(pipe.path);
  if ('error' in started) {
    pipe.reader.destroy();
    return unstarted(startError(started.error, request));
  }
  const leader = {
    pid: started.pid,
    streams: [],
    onExit: (listener: (code: number | null, signal: string | null) => void) =>
      void started.end.then(({ code, signal }) => listener(code, signal)),
    onError: () => undefined,
  };
  const running = watchLeader(leader, [pipe.reader], request);
  const expectEnd = (): void => insistOnEnd(started.end, supervisor);
  return {
    ...running,
    interrupt: () => running.interrupt().then(expectEnd),
    kill() {
      running.kill();
      expectEnd();
    },
  };
}

/** A step may have stopped its supervisor (SIGSTOP): what it does not say must not hold up the job. */
function insistOnEnd(end: Promise<ProcessEnd>, supervisor: Supervisor): void {
  supervisor.resume();
  const timer = setTimeout(() => supervisor.destroy(), END_REPORT_MS);
  void end.then(() => clearTimeout(timer));
}

function startError(code: string, request: ProcessRequest): Error {
  if (code === 'ESRCH') return new Error('The supervisor of the job was ended');
  const error = Object.assign(new Error(`spawn ${request.file} ${code}`), { code });
  return explainStart(error, request);
}

function removePath(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Somebody cleaned the temporary folder.
  }
}
