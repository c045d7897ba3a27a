import { type ChildProcess, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** What is told to a process that presses on a service. */
export type PressureCommand =
  | {
      readonly kind: 'press';
      readonly port: number;
      readonly token: string;
      readonly path: string;
      /** JSON messages, sent in turn. */
      readonly bodies: readonly string[];
      /** Arrivals a second, whatever became of the earlier ones; undefined: each connection asks again once answered. */
      readonly perSecond?: number | undefined;
      readonly seconds: number;
      readonly connections: number;
      /** The deadline that each request states. */
      readonly timeoutMs?: number | undefined;
      readonly headers?: Readonly<Record<string, string>> | undefined;
    }
  | { readonly kind: 'stop' };

/** What came of it. Latencies, in milliseconds, are of what was answered with 200, from when it was sent. */
export type PressureReport = {
  readonly kind: 'report';
  readonly offeredPerSecond: number;
  /** Answered with 200 while the load lasted, within the deadline. */
  readonly goodPerSecond: number;
  /** Answered with 200 too late. */
  readonly late: number;
  /** Everything else by code and reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** Arrivals for which even the generator's own queue was full. */
  readonly notSent: number;
  /** Waiting for an answer or a connection when the load ended. */
  readonly openAtEnd: number;
  /** Of those, without an answer ten seconds later. */
  readonly neverAnswered: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

export type PressOptions = Omit<Extract<PressureCommand, { kind: 'press' }>, 'kind'>;

/** One process that presses on a service. */
export class Pressure {
  readonly #child: ChildProcess;

  constructor() {
    this.#child = fork(new URL('../pressure-client.ts', import.meta.url), { execArgv: [] });
  }

  /** Begins; resolves with the report after `seconds`, or soon after `stop`. */
  press(options: PressOptions): Promise<PressureReport> {
    const { promise, resolve, reject } = Promise.withResolvers<PressureReport>();
    const onExit = (code: number | null): void =>
      reject(new Error(`the generator ended (${code})`));
    this.#child.once('exit', onExit);
    this.#child.once('message', (report: PressureReport) => {
      this.#child.off('exit', onExit);
      resolve(report);
    });
    this.#child.send({ kind: 'press', ...options } satisfies PressureCommand);
    return promise;
  }

  stop(): void {
    this.#child.send({ kind: 'stop' } satisfies PressureCommand);
  }

  close(): void {
    this.#child.disconnect();
  }
}

/** Resident MiB of a process, from the proc file system; NaN where there is none. */
export async function residentMib(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
  } catch {
    return Number.NaN;
  }
}

/** The most resident MiB of a process while `work` lasts. */
export async function peakMib<T>(
  pid: number,
  work: Promise<T>,
): Promise<{ readonly result: T; readonly mib: number }> {
  let mib = 0;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    mib = Math.max(mib, await residentMib(pid));
    timer = setTimeout(() => void look(), 100);
  };
  await look();
  try {
    return { result: await work, mib };
  } finally {
    clearTimeout(timer);
  }
}
