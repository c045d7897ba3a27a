import { readFileSync, writeFileSync } from 'node:fs';

const KIB_PER_MIB = 1024;

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
