import { readFileSync, writeFileSync } from 'node:fs';

const KIB_PER_MIB = 1024;
/** USER_HZ, which Linux has fixed for programs. */
const MS_PER_TICK = 10;
/** utime, stime, cutime and cstime, counted from the state, which follows the name in parentheses. */
const TIMES_FROM = 11;
const TIMES_TO = 15;

/** Processor time of a process and of those of its children that have ended, in steps of 10 ms; 0 where that is not known (proc(5)). */
export function processorMsOf(pid: number | undefined): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(TIMES_FROM, TIMES_TO).map(Number);
    return ticks.reduce((sum, value) => sum + value, 0) * MS_PER_TICK;
  } catch {
    return 0;
  }
}

/** What a process holds of memory and held at most, in MiB; 0 where the system does not say (proc(5)). */
export function memoryOf(pid: number | undefined): {
  readonly nowMib: number;
  readonly peakMib: number;
} {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return { nowMib: fieldOf(text, 'VmRSS'), peakMib: fieldOf(text, 'VmHWM') };
  } catch {
    return { nowMib: 0, peakMib: 0 };
  }
}

function fieldOf(text: string, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
  return Math.round(Number(kib ?? 0) / KIB_PER_MIB);
}

/** Lets the peak of a process begin anew at what it holds now. */
export function resetPeak(pid: number | undefined): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or not allowed: then the peak is that of the whole life.
  }
}
