import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, unlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ownProgramOptions } from '../../../shared/process/own-program.ts';
import type { ProblemReporter } from '../../model/ports.ts';
import { takeInputPath, takePathPipe } from './output-pipe.ts';
import { descendantsOf, hasEnded } from './process-tree.ts';
import { type ClearCounts, type StartedProcess, SupervisorChannel } from './supervisor-channel.ts';
import type { StartMessage } from './supervisor-messages.ts';

const PROGRAM = fileURLToPath(new URL('./supervisor-program.ts', import.meta.url));
const ARGS: readonly string[] = [...ownProgramOptions(), PROGRAM];
/** It belongs to no project, and keeps no disk from being unmounted. */
const FOLDER = '/';
/** The exit code of the program where processes cannot be supervised. */
const EXIT_UNSUITED = 3;
/** A supervisor that says nothing for so long is held up, by a step or the machine. */
const ANSWER_MS = 10_000;
/** Looks for what a subreaper that does not answer has left below it. */
const LAST_PASSES = 100;
/** Supervisors beyond one that nobody used for so long end. */
const IDLE_MS = 60_000;

/** The parent of all processes of one job. */
export interface Supervisor {
  /** Never rejects; the error is the system's name of it, ESRCH when the supervisor was ended. */
  start(
    message: Omit<StartMessage, 'type' | 'id'>,
  ): Promise<StartedProcess | { readonly error: string }>;
  /** Lets it go on if somebody has stopped it. */
  resume(): void;
  /** Ends it now, which ends what it started, too. */
  destroy(): void;
  /**
   * Kills every process of the job that is left and gives the supervisor back. Never rejects.
   * `isSure`: nothing is left; else `left` could not be killed (0: it is not known how many).
   */
  release(): Promise<ClearCounts & { readonly isSure: boolean }>;
}

/** Supervisors for jobs, used again and again. */
export interface Supervision {
  /** One for a job; undefined where there can be none. Never rejects. Cost: nothing, or the start of a node. */
  acquire(): Promise<Supervisor | undefined>;
  /** Starts one that the first job will find. */
  warmUp(): void;
  /** Ends all of them, and what they started. */
  close(): Promise<void>;
}

/**
 * Linux with glibc: a process for each job at a time, the nearest subreaper (prctl(2)) of all of its
 * processes, below one that is the parent of the supervisors. Both kill what is below them when this
 * process is gone. `report` is notified of `runner.unsupervised`, once.
 */
export function createSupervision(report: ProblemReporter): Supervision {
  return new ProcessSupervision(report);
}

type IdleSupervisor = { readonly supervisor: JobSupervisor; readonly timer: NodeJS.Timeout };
type Subreaper = {
  readonly child: ChildProcess;
  readonly channel: SupervisorChannel;
  /** Processes of the supervisors below it. */
  readonly supervisors: Set<number>;
};

class ProcessSupervision implements Supervision {
  readonly #report: ProblemReporter;
  readonly #idle: IdleSupervisor[] = [];
  #subreaper: Promise<Subreaper | undefined> | undefined;
  /** One that is starting and that nobody has asked for yet. */
  #warming: Promise<JobSupervisor | undefined> | undefined;
  #isUnsuited = process.platform !== 'linux';
  #hasReported = false;
  #isClosed = false;

  constructor(report: ProblemReporter) {
    this.#report = report;
  }

  async acquire(): Promise<Supervisor | undefined> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer);
      if (idle.supervisor.isUsable) return idle.supervisor;
      idle.supervisor.end();
    }
    const warming = this.#warming;
    this.#warming = undefined;
    return (await warming) ?? (await this.#start());
  }

  warmUp(): void {
    const warming = this.#start();
    this.#warming = warming;
    void warming.then((supervisor) => {
      if (this.#warming !== warming) return;
      this.#warming = undefined;
      if (supervisor !== undefined) this.#keep(supervisor);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { supervisor, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      supervisor.end();
    }
    const subreaper = await this.#subreaper;
    if (subreaper === undefined) return;
    subreaper.channel.end();
    await within(subreaper.channel.closed, ANSWER_MS);
    subreaper.child.kill('SIGKILL');
  }

  async #start(): Promise<JobSupervisor | undefined> {
    try {
      // A subreaper that does not answer was stopped by a step: another one takes its place.
      const supervisor = (await this.#startOnce()) ?? (await this.#startOnce());
      if (supervisor === undefined) this.#reportUnsupervised();
      return supervisor;
    } catch (error) {
      this.#reportUnsupervised(error);
      return undefined;
    }
  }

  async #startOnce(): Promise<JobSupervisor | undefined> {
    const subreaper = await this.#subreaperOf();
    if (subreaper === undefined) return undefined;
    const supervisor = await startSupervisor(subreaper, (ended) => this.#keep(ended));
    if (supervisor === undefined) await replaceable(subreaper);
    return supervisor;
  }

  #keep(supervisor: JobSupervisor): void {
    if (this.#isClosed || !supervisor.isUsable) {
      supervisor.end();
      return;
    }
    const entry = { supervisor, timer: setTimeout(() => this.#retire(entry), IDLE_MS) };
    entry.timer.unref();
    this.#idle.push(entry);
  }

  #retire(entry: IdleSupervisor): void {
    const at = this.#idle.indexOf(entry);
    if (at < 0 || this.#idle.length === 1) return;
    this.#idle.splice(at, 1);
    entry.supervisor.end();
  }

  #subreaperOf(): Promise<Subreaper | undefined> {
    if (this.#isUnsuited || this.#isClosed) return Promise.resolve(undefined);
    this.#subreaper ??= this.#startSubreaper();
    return this.#subreaper;
  }

  async #startSubreaper(): Promise<Subreaper | undefined> {
    const child = spawn(process.execPath, ARGS, {
      cwd: FOLDER,
      env: {},
      // A session of its own: Ctrl-C is for the runner.
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    child.once('error', () => child.stdout.destroy());
    child.once('exit', (code) => {
      this.#isUnsuited ||= code === EXIT_UNSUITED;
    });
    child.unref();
    const channel = new SupervisorChannel({ input: child.stdin, output: child.stdout });
    void channel.closed.then(() => {
      this.#subreaper = undefined;
    });
    if ((await within(channel.ready, ANSWER_MS)) === true) {
      return { child, channel, supervisors: new Set() };
    }
    child.kill('SIGKILL');
    return undefined;
  }

  #reportUnsupervised(cause?: unknown): void {
    if (this.#isClosed || this.#hasReported) return;
    this.#hasReported = true;
    const text = 'processes of jobs have no supervisor; they are found by their environment alone';
    this.#report('runner.unsupervised', new Error(text, { cause }));
  }
}

async function startSupervisor(
  subreaper: Subreaper,
  keep: (supervisor: JobSupervisor) => void,
): Promise<JobSupervisor | undefined> {
  const input = takeInputPath();
  const output = takePathPipe();
  resumed(subreaper);
  try {
    if (input === undefined || output === undefined) return undefined;
    const channel = new SupervisorChannel({ input: input.writer, output: output.reader });
    const started = await within(
      subreaper.channel.start({
        file: process.execPath,
        args: ARGS,
        cwd: FOLDER,
        env: {},
        input: input.path,
        output: output.path,
      }),
      ANSWER_MS,
    );
    closeSync(output.writeFd);
    if (started === undefined || 'error' in started) {
      channel.end();
      output.reader.destroy();
      return undefined;
    }
    subreaper.supervisors.add(started.pid);
    void started.end.then(() => subreaper.supervisors.delete(started.pid));
    const supervisor = new JobSupervisor(started, channel, subreaper, keep);
    if ((await within(channel.ready, ANSWER_MS)) === true) return supervisor;
    supervisor.destroy();
    return undefined;
  } finally {
    for (const pipe of [input, output]) if (pipe !== undefined) removePath(pipe.path);
  }
}

/** A step may have stopped it. */
function resumed({ child, channel }: Subreaper): void {
  if (!channel.isClosed) child.kill('SIGCONT');
}

/** Ends a subreaper that does not answer, and before it what it should have ended. */
async function replaceable({ child, channel, supervisors }: Subreaper): Promise<void> {
  for (let pass = 0; pass < LAST_PASSES && child.pid !== undefined; pass += 1) {
    const alive = descendantsOf(child.pid, supervisors).filter((pid) => !hasEnded(pid));
    if (alive.length === 0) break;
    for (const pid of alive) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended meanwhile, or is another user's.
      }
    }
  }
  child.kill('SIGKILL');
  await within(channel.closed, ANSWER_MS);
}

class JobSupervisor implements Supervisor {
  readonly #process: StartedProcess;
  readonly #channel: SupervisorChannel;
  readonly #subreaper: Subreaper;
  readonly #keep: (supervisor: JobSupervisor) => void;
  /** What was found when it was ended by somebody else. */
  readonly #lost: Promise<ClearCounts | undefined>;
  #isEnding = false;

  constructor(
    own: StartedProcess,
    channel: SupervisorChannel,
    subreaper: Subreaper,
    keep: (supervisor: JobSupervisor) => void,
  ) {
    this.#process = own;
    this.#channel = channel;
    this.#subreaper = subreaper;
    this.#keep = keep;
    // A step ended it: what it left is the subreaper's, once the subreaper knows of its end; that its pipe is
    // closed is known before its children have another parent.
    this.#lost = own.end.then(() => (this.#isEnding ? undefined : this.#clearOrphans()));
  }

  /** Whether it may be given another job: also its own end has to be noticed. */
  get isUsable(): boolean {
    return !this.#channel.isClosed && !this.#subreaper.channel.isClosed;
  }

  async start(
    message: Omit<StartMessage, 'type' | 'id'>,
  ): Promise<StartedProcess | { readonly error: string }> {
    const answer = await within(this.#channel.start(message), ANSWER_MS);
    if (answer !== undefined) return answer;
    this.destroy();
    return { error: 'ESRCH' };
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  destroy(): void {
    this.#signal('SIGKILL');
  }

  end(): void {
    this.#isEnding = true;
    this.#channel.end();
  }

  async release(): Promise<ClearCounts & { readonly isSure: boolean }> {
    this.resume();
    const counts = await within(this.#channel.clear(false), ANSWER_MS);
    if (counts?.left === 0) {
      this.#keep(this);
      return { ...counts, isSure: true };
    }
    this.destroy();
    resumed(this.#subreaper);
    const lost = await within(this.#lost, ANSWER_MS);
    // Also what was under way when that was looked for.
    const rest = await this.#clearOrphans();
    const killed = [counts, lost, rest].reduce((sum, found) => sum + (found?.killed ?? 0), 0);
    return { killed, left: rest?.left ?? 0, isSure: rest?.left === 0 };
  }

  #clearOrphans(): Promise<ClearCounts | undefined> {
    resumed(this.#subreaper);
    return within(this.#subreaper.channel.clear(true), ANSWER_MS);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#channel.isClosed) return;
    try {
      process.kill(this.#process.pid, signal);
    } catch {
      // It ended just now.
    }
  }
}

function removePath(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Somebody cleaned the temporary folder.
  }
}

/** What `promise` gives, undefined when it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
