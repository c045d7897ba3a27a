import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { AppError } from '../app-error.ts';
import type { SharedReason } from '../reasons.ts';

/** Holds a directory for this process until `release`, or until the process is gone. */
export interface DirectoryLock {
  release(): void;
}

const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;
/**
 * Longest wait, in ms, for a child of a killed process. A child that was just forked shares the
 * lock until it executes its program.
 */
const LEFT_BEHIND_MS = 2_000;
const RETRY_MS = 5;

type Flock = (descriptor: number, operation: number) => number;
type FlockLibrary = { load(name: string): { func(declaration: string): unknown } };
let flock: Flock | undefined;

function loadFlock(what: string): Flock {
  if (flock !== undefined) return flock;
  try {
    const koffi = createRequire(import.meta.url)('koffi') as FlockLibrary;
    const libc = koffi.load(process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6');
    return (flock = libc.func('int flock(int, int)') as Flock);
  } catch (error) {
    const [reason = ''] = String(error).split('\n', 1);
    throw new AppError<SharedReason>(
      'STORE_UNAVAILABLE',
      `${what} cannot be kept from other processes: koffi does not load here (${reason})`,
      {},
      error,
    );
  }
}

/**
 * Takes flock(2) on `lockPath` (created 0600 if absent). The kernel drops the lock with its
 * process, also after kill -9. A stale file or a reused process id therefore cannot confuse it.
 * Child processes do not inherit the lock.
 *
 * The process id inside the file is for the message, and shows if the holder is gone. In that case
 * this waits at most two seconds for the processes that the holder left behind. Errors:
 * STORE_UNAVAILABLE if another process holds the lock, or koffi does not load. Cost: a few system
 * calls.
 */
export function lockDirectory(
  lockPath: string,
  what: string,
  remedy = 'Stop that one first, or give this one its own directory with GATEWAY_DATA_DIR.',
): DirectoryLock {
  const lock = loadFlock(what);
  const descriptor = openSync(lockPath, 'a+', 0o600);
  const holder = holderOf(descriptor, lockPath, lock);
  if (holder !== null) {
    closeSync(descriptor);
    throw new AppError<SharedReason>(
      'STORE_UNAVAILABLE',
      `${what} is in use by another process (pid ${holder}). ${remedy}`,
      { lockPath, holder },
    );
  }
  ftruncateSync(descriptor, 0);
  writeSync(descriptor, `${process.pid}\n`);
  let held = true;
  return {
    release: () => {
      if (!held) return;
      held = false;
      ftruncateSync(descriptor, 0);
      closeSync(descriptor);
    },
  };
}

/** Tries to take the lock. Returns the process id of its holder, or null if the lock was taken. */
function holderOf(descriptor: number, lockPath: string, lock: Flock): string | null {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const untilMs = performance.now() + LEFT_BEHIND_MS;
  while (lock(descriptor, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) !== 0) {
    const holder = readFileSync(lockPath, 'utf8').trim() || 'unknown';
    if (!hasGone(Number(holder)) || performance.now() > untilMs) return holder;
    Atomics.wait(pause, 0, 0, RETRY_MS);
  }
  return null;
}

function hasGone(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
