import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ, which Linux has fixed for programs. */
const TICKS_PER_SECOND = 100;

/** User and system seconds of a process so far, all its threads together; NaN where /proc is missing (proc(5)). */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === undefined ? Number.NaN : ticks(fields, 11, 13) / TICKS_PER_SECOND;
}

/** The same of a process with its children, also of those that have ended: a PostgreSQL with its sessions. */
export function treeCpuSecondsOf(pid: number): number {
  const own = statOf(pid);
  if (own === undefined) return Number.NaN;
  let sum = ticks(own, 11, 15);
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (fields?.[1] === String(pid)) sum += ticks(fields, 11, 15);
  }
  return sum / TICKS_PER_SECOND;
}

/** Fields of /proc/PID/stat from the state on; undefined of a process that is gone. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function ticks(fields: readonly string[], from: number, to: number): number {
  return fields.slice(from, to).reduce((sum, field) => sum + Number(field), 0);
}
