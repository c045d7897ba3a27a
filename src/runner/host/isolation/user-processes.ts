import { readdir, readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { AppError } from '../../../shared/app-error.ts';

const PASSES_MAX = 200;
const PAUSE_MS = 10;

/**
 * Ends every process of a user, however often it has forked or changed its session: passes over /proc until
 * one finds none. Needs the rights to do so. Errors: INTERNAL when some cannot be ended.
 */
export async function endProcessesOf(uid: number): Promise<void> {
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const pids = await processesOf(uid);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended already.
      }
    }
    await setTimeout(PAUSE_MS);
  }
  throw new AppError('INTERNAL', 'processes of a job of a fork could not be ended');
}

async function processesOf(uid: number): Promise<readonly number[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const name of names) {
    const text = await readFile(`/proc/${name}/status`, 'utf8').catch(() => '');
    // Real, effective, saved and file system id; what has ended and waits for its parent is no danger.
    const uids = /^Uid:\t(.+)$/m.exec(text)?.[1]?.split('\t') ?? [];
    const hasEnded = /^State:\t[ZX]/m.test(text);
    if (!hasEnded && uids.includes(String(uid))) found.push(Number(name));
  }
  return found;
}
