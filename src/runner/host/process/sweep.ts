import { execFile } from 'node:child_process';
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { forgetFirstBirth, leastPidOf, newestPid } from './process-births.ts';
import { parentOf } from './process-tree.ts';

/** A pass that finds something is followed by another, so often at most. */
const PASSES_MAX = 200;
/** Looks at processes that were born during the look before, in a pass that found none so far. */
const LATER_LOOKS_MAX = 10;
const PASS_PAUSE_MS = 2;
const ENVIRON_READ_BYTES = 64 * 1024;
/** `ps` of a busy machine. */
const LISTING_BYTES_MAX = 64 * 1024 * 1024;

const NAME = 'RUNNER_TRACKING_ID=';

/**
 * Kills every process whose environment carries RUNNER_TRACKING_ID=`trackingId`, whatever group or
 * session it moved to, and the children of those that do, until a pass finds none. A process that
 * cleared its environment and lost its parent escapes. Never kills this process.
 *
 * @returns how many processes were killed; 0 costs one pass: a listing of /proc, and five system calls
 * for each process of this user that was born since the first one with this id.
 */
export async function sweepProcesses(trackingId: string): Promise<number> {
  const killed = new Set<number>();
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const found =
      process.platform === 'linux' ? searchProc(trackingId) : await searchPs(trackingId);
    if (found.length === 0) {
      break;
    }
    for (const pid of found) {
      killed.add(pid);
      killOne(pid);
    }
    await sleep(PASS_PAUSE_MS);
  }
  forgetFirstBirth(trackingId);
  return killed.size;
}

/** Synchronous throughout: a search that takes turns with others is one that processes outrun. */
function searchProc(trackingId: string): number[] {
  const tag = Buffer.from(`${NAME}${trackingId}`);
  const uid = process.getuid?.();
  let newest = newestPid();
  const least = leastPidOf(trackingId);
  let { found, others } = lookAt(pidsAbove(least), tag, uid);
  // Processes that were born meanwhile, by ones that ended before they were looked at.
  for (let look = 0; look < LATER_LOOKS_MAX && found.length === 0; look += 1) {
    const before = newest;
    newest = newestPid();
    if (newest === before) {
      break;
    }
    // Numbers start over at some time.
    ({ found, others } = lookAt(pidsAbove(newest > before ? before : 0), tag, uid));
  }
  return found.length === 0 ? found : [...found, ...descendantsOf(found, others)];
}

function pidsAbove(least: number): number[] {
  const pids: number[] = [];
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (Number.isInteger(pid) && pid > least && pid > 1 && pid !== process.pid) {
      pids.push(pid);
    }
  }
  return pids;
}

function lookAt(
  pids: readonly number[],
  tag: Buffer,
  uid: number | undefined,
): { readonly found: number[]; readonly others: number[] } {
  const found: number[] = [];
  const others: number[] = [];
  for (const pid of pids) {
    if (isOwn(pid, uid)) {
      (carries(pid, tag) ? found : others).push(pid);
    }
  }
  return { found, others };
}

/** Root may look at all of them: a step of root can have changed its user. */
function isOwn(pid: number, uid: number | undefined): boolean {
  return uid === 0 || statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === uid;
}

let environBuffer: Buffer | undefined;

/** A zombie and a process that is just being replaced have an empty environment: false. */
function carries(pid: number, tag: Buffer): boolean {
  environBuffer ??= Buffer.allocUnsafe(ENVIRON_READ_BYTES);
  let environ = environBuffer;
  let fd: number;
  try {
    fd = openSync(`/proc/${pid}/environ`, 'r');
  } catch {
    // It ended meanwhile, or may not be looked at.
    return false;
  }
  try {
    let length = 0;
    for (;;) {
      if (length === environ.length) {
        environ = Buffer.concat([environ, Buffer.allocUnsafe(environ.length)]);
      }
      const read = readSync(fd, environ, length, environ.length - length, null);
      if (read === 0) {
        return hasEntry(environ.subarray(0, length), tag);
      }
      length += read;
    }
  } catch {
    // ESRCH: it ended between the two calls.
    return false;
  } finally {
    closeSync(fd);
  }
}

function hasEntry(environ: Buffer, tag: Buffer): boolean {
  for (let at = environ.indexOf(tag); at !== -1; at = environ.indexOf(tag, at + 1)) {
    const end = at + tag.length;
    const isWhole = end === environ.length || environ[end] === 0;
    if (isWhole && (at === 0 || environ[at - 1] === 0)) {
      return true;
    }
  }
  return false;
}

/** Those of `candidates` whose ancestors, as far as they live, lead to one of `roots`. */
function descendantsOf(roots: readonly number[], candidates: readonly number[]): number[] {
  const parents = new Map(candidates.map((pid) => [pid, parentOf(pid)]));
  const inside = new Set(roots);
  const found: number[] = [];
  for (let before = -1; before !== found.length;) {
    before = found.length;
    for (const [pid, parent] of parents) {
      if (parent !== undefined && inside.has(parent) && !inside.has(pid)) {
        inside.add(pid);
        found.push(pid);
      }
    }
  }
  return found;
}

/** macOS: `ps -E` shows the environment after the arguments, separated by spaces. */
async function searchPs(trackingId: string): Promise<number[]> {
  const tag = `${NAME}${trackingId}`;
  const { stdout } = await promisify(execFile)('ps', ['-axEww', '-o', 'pid=,command='], {
    maxBuffer: LISTING_BYTES_MAX,
  });
  const found: number[] = [];
  for (const line of stdout.split('\n')) {
    const pid = Number.parseInt(line, 10);
    const isTagged = `${line} `.includes(` ${tag} `);
    if (isTagged && Number.isInteger(pid) && pid !== process.pid) {
      found.push(pid);
    }
  }
  return found;
}

function killOne(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
}
