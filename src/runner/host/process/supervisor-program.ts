/**
 * A program of its own: the parent of the processes of one job, and of those that lose their parent
 * below it. It starts what the runner asks for, says how it ended, and kills all that is left when it is
 * asked to, or when the runner is gone. One more of it, the subreaper, is the parent of the others: what
 * loses its supervisor ends up there.
 */
import { closeSync, constants, openSync, writeFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { startUnwatched, takeEnded } from '../../../shared/process/native-spawn.ts';
import { adoptOrphans, hideFromOtherProcesses } from '../../../shared/process/process-control.ts';
import { descendantsOf, hasEnded } from './process-tree.ts';
import type { StartMessage, SupervisorReply, SupervisorRequest } from './supervisor-messages.ts';

const [OWN_INPUT, OWN_OUTPUT] = [0, 1];
/** What cannot be killed for so long (another user's, or stuck in the kernel) is given up. */
const CLEAR_MS = 5_000;
const PASS_PAUSE_MS = 1;
/** Steps, which inherit it, die before the runner does when memory runs out. */
const OOM_SCORE_ADJ = '500';
const EXIT_UNSUITED = 3;

/** By process: the id of the message that started it. */
const started = new Map<number, number>();

if (!adoptOrphans()) process.exit(EXIT_UNSUITED);
try {
  writeFileSync('/proc/self/oom_score_adj', OOM_SCORE_ADJ);
} catch {
  // /proc is read-only: a courtesy only.
}
// Requests hold what steps are given. It has to come last: what is hidden cannot change its own score.
hideFromOtherProcesses();
// Whoever stops the runner may signal all of its processes; this one ends after it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('SIGCHLD', reap);
const input = new Socket({ fd: OWN_INPUT, readable: true, writable: false });
// A read error is the end of the runner, as the end of the stream is.
input.on('error', () => input.destroy());
createInterface({ input }).on('line', (line) => handle(JSON.parse(line) as SupervisorRequest));
input.once('close', () => void end());
report({ type: 'ready' });

function handle(message: SupervisorRequest): void {
  if (message.type === 'start') start(message);
  else
    void clear(message.sparesStarted).then((counts) => {
      report({ type: 'cleared', id: message.id, ...counts });
    });
}

function start(message: StartMessage): void {
  const { id, file } = message;
  const first = startOnce(message);
  // As execvp(3) does with a script that names no program.
  const isScript = 'error' in first && first.error === 'ENOEXEC';
  const result = isScript
    ? startOnce({ ...message, file: '/bin/sh', args: [file, ...message.args] })
    : first;
  if ('error' in result) {
    report({ type: 'refused', id, error: result.error });
    return;
  }
  started.set(result.pid, id);
  report({ type: 'started', id, pid: result.pid });
}

function startOnce({ file, args, cwd, env, output, input: inputPath }: StartMessage) {
  const fds: number[] = [];
  const opened = (path: string, flags: number): number => {
    const fd = openSync(path, flags);
    fds.push(fd);
    return fd;
  };
  try {
    const stdinFd = inputPath === undefined ? undefined : opened(inputPath, constants.O_RDONLY);
    const stdoutFd = opened(output, constants.O_WRONLY);
    const request = { file, args, cwd, env, stdinFd, stdoutFd, stderrFd: stdoutFd };
    return startUnwatched(request) ?? { error: 'ENOSYS' };
  } catch (error) {
    return { error: (error as NodeJS.ErrnoException).code ?? 'EIO' };
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

/** Asks after every child, also those that were adopted. True while there is one. */
function reap(): boolean {
  for (;;) {
    const ended = takeEnded();
    if (ended === undefined) return true;
    if (ended === 'none') return false;
    const id = started.get(ended.pid);
    if (id === undefined) continue;
    started.delete(ended.pid);
    report({ type: 'ended', id, code: ended.code, signal: ended.signal });
  }
}

/**
 * Kills what is below this process until nothing is: what is born during a pass falls to the next one,
 * and its parent is this process by then.
 */
async function clear(sparesStarted: boolean): Promise<{ killed: number; left: number }> {
  const killed = new Set<number>();
  const deadline = performance.now() + CLEAR_MS;
  for (;;) {
    const hasChildren = reap();
    const spared: ReadonlySet<number> = sparesStarted ? new Set(started.keys()) : new Set();
    const found = hasChildren ? descendantsOf(process.pid, spared) : [];
    const alive = found.filter((pid) => !hasEnded(pid));
    for (const pid of alive) if (kill(pid)) killed.add(pid);
    const isClear = sparesStarted ? found.length === 0 : !hasChildren;
    if (isClear || performance.now() > deadline) {
      return { killed: killed.size, left: isClear ? 0 : Math.max(1, alive.length) };
    }
    await sleep(PASS_PAUSE_MS);
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    // It ended meanwhile, or is another user's.
    return false;
  }
}

function report(reply: SupervisorReply): void {
  try {
    writeSync(OWN_OUTPUT, `${JSON.stringify(reply)}\n`);
  } catch {
    // The runner is gone, which the end of the input notifies as well.
  }
}

async function end(): Promise<void> {
  await clear(false);
  process.exit();
}
