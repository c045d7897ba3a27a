import { createRequire } from 'node:module';

/** linux/prctl.h. */
const PR_SET_DUMPABLE = 4;
const PR_SET_CHILD_SUBREAPER = 36;

type Control = (option: number, ...rest: readonly [number, number, number, number]) => number;
type PrctlLibrary = { load(library: string | null): { func(signature: string): Control } };

/**
 * Keeps other processes of this user from reading the environment, the memory and the open files of
 * this one (prctl(2), PR_SET_DUMPABLE). Root can still read them.
 *
 * Core dumps go off, and /proc/self belongs to root from then on: this process can no longer change
 * its own oom_score_adj. Programs that it starts are not affected. False if the system lacks it.
 */
export function hideFromOtherProcesses(): boolean {
  return control(PR_SET_DUMPABLE, 0);
}

/**
 * Makes this process the parent of its orphaned descendants, instead of the first process of the
 * system (PR_SET_CHILD_SUBREAPER). False if the system lacks it.
 */
export function adoptOrphans(): boolean {
  return control(PR_SET_CHILD_SUBREAPER, 1);
}

function control(option: number, value: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const koffi = createRequire(import.meta.url)('koffi') as PrctlLibrary;
    // The libc that this process runs with, whichever it is.
    const prctl = koffi
      .load(null)
      .func(
        'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
      );
    return prctl(option, value, 0, 0, 0) === 0;
  } catch {
    // No binary of the binding for this platform.
    return false;
  }
}
