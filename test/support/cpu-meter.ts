/**
 * Loaded before each test file: notes in its meta data how many seconds of CPU the worker and those of its children
 * that ended took for it, its imports included. scripts/summary-reporter.ts holds files to a bound. Services that
 * files share are children of vitest itself, so they are not counted.
 */
import { readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

declare module 'vitest' {
  export interface TaskMeta {
    /** Absent where the system has no /proc. */
    cpuSeconds?: number;
  }
}

/** The kernel's unit in /proc/PID/stat, on all platforms that Node.js is built for (USER_HZ). */
const TICKS_PER_SECOND = 100;
/** utime, stime, cutime and cstime, counted from the state behind the name (proc_pid_stat(5)). */
const [FIRST_TIME, LAST_TIME] = [11, 14];

function cpuSeconds(): number | undefined {
  let text: string;
  try {
    text = readFileSync('/proc/self/stat', 'utf8');
  } catch {
    return undefined; // Not Linux.
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const times = fields.slice(FIRST_TIME, LAST_TIME + 1);
  return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}

const before = cpuSeconds();
// oxlint-disable-next-line no-empty-pattern -- vitest demands a pattern.
afterAll(({}, { file }) => {
  const after = cpuSeconds();
  if (before !== undefined && after !== undefined) file.meta.cpuSeconds = after - before;
});
