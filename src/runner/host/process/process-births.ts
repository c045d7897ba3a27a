import { readFileSync } from 'node:fs';

/** Marks that nobody asked for any more are dropped, the oldest first. */
const MARKS_MAX = 10_000;

/** A moment, reported by the processes born so far. */
export type BirthMark = {
  /** The number of the process that was born last. */
  readonly newestPid: number;
  /** Processes that were born since the system started, in all of its containers. */
  readonly birthCount: number;
};

const marks = new Map<string, BirthMark>();

/** Remembers when the first process of `trackingId` was about to start. Cost: two reads, once an id. */
export function markFirstBirth(trackingId: string): void {
  if (process.platform !== 'linux' || marks.has(trackingId)) {
    return;
  }
  const [oldest] = marks.size >= MARKS_MAX ? marks.keys() : [];
  if (oldest !== undefined) {
    marks.delete(oldest);
  }
  marks.set(trackingId, { newestPid: newestPid(), birthCount: birthCount() });
}

export function forgetFirstBirth(trackingId: string): void {
  marks.delete(trackingId);
}

/**
 * Processes of `trackingId` have numbers above this one: 0 when that is not known, because no start was
 * seen or numbers started over since. Linux gives numbers out in order (alloc_pid, cyclic).
 */
export function leastPidOf(trackingId: string): number {
  const mark = marks.get(trackingId);
  if (mark === undefined || mark.newestPid === 0 || newestPid() < mark.newestPid) {
    return 0;
  }
  const born = birthCount() - mark.birthCount;
  return mark.birthCount > 0 && born >= 0 && born < pidMax() - mark.newestPid ? mark.newestPid : 0;
}

/** 0 when it is hidden from us. */
export function newestPid(): number {
  return Number(readProc('/proc/loadavg').trimEnd().split(' ').at(-1));
}

function birthCount(): number {
  return Number(/^processes (\d+)$/mu.exec(readProc('/proc/stat'))?.[1] ?? 0);
}

let knownPidMax: number | undefined;

function pidMax(): number {
  knownPidMax ??= Number(readProc('/proc/sys/kernel/pid_max'));
  return knownPidMax;
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // Hidden: callers do without.
    return '';
  }
}
