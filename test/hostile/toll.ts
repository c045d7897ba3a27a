import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

export type StallWatchOptions = { readonly healthUrl: string; readonly pid: number };
export type StallWatchReport = {
  readonly stallMs: number;
  readonly wallMs: number;
  readonly peakBytes: number;
};

/** What an attack cost the service. */
export type Toll = {
  /** Milliseconds of processor time that the main thread spent, at most, while one health question waited. */
  readonly stallMs: number;
  /** The same on the wall, for the table; a busy machine makes it longer. */
  readonly wallMs: number;
  /** Resident bytes at the peak above those before. */
  readonly grownBytes: number;
};

/**
 * The longest stall that an attack may cost, in milliseconds of processor time. The aim on a quiet machine is 50 ms from question to
 * answer; the test leaves room for garbage collection in a process that was just started, and for answers to others in between.
 */
export const STALL_MS_MAX = 150;

/** Runs an attack on a service and tells its toll. `healthUrl` is a route that the attacked thread answers. */
export async function tollOf(
  options: StallWatchOptions,
  attack: () => Promise<unknown>,
): Promise<Toll> {
  const beforeBytes = residentBytesOf(options.pid);
  const watch = new Worker(new URL('stall-watch.ts', import.meta.url), { workerData: options });
  await once(watch, 'message');
  let report: StallWatchReport;
  try {
    await attack();
  } finally {
    const reported = once(watch, 'message') as Promise<[StallWatchReport]>;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    watch.postMessage('over');
    [report] = await reported;
    await watch.terminate();
  }
  const { stallMs, wallMs, peakBytes } = report;
  return { stallMs, wallMs, grownBytes: Math.max(0, peakBytes - beforeBytes) };
}

/** Resident memory of a process in bytes; 0 where there is no /proc. */
export function residentBytesOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;
  } catch {
    return 0;
  }
}

/** Prints one row of the table of attacks, which bench/results keeps. */
export function printToll(attack: string, toll: Toll): void {
  const mib = (toll.grownBytes / 1_048_576).toFixed(0);
  process.stdout.write(
    `hostile: ${attack}: stall ${toll.stallMs.toFixed(0)} ms of processor time ` +
      `(${toll.wallMs.toFixed(0)} ms on the wall), +${mib} MiB\n`,
  );
}
