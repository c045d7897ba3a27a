import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** How often it is looked at. What depends on it is an orderly stop, which takes longer. */
const POLL_MS = 250;
const PACKAGE_MANAGER = /^(npm|pnpm|yarn)\b/;

/**
 * Calls `gone` once, with a text for the log, when the process that runs this one for somebody has ended: an npm that
 * started it as a script, or the program of this project that has a channel to it. An npm that is killed, or ends by a signal that it does not pass on
 * (SIGHUP), leaves nobody to whom an operator could send one. Any other parent may end as it likes: a shell whose
 * background job this is, or a daemon that detaches. Cost: one system call each `POLL_MS`.
 */
export function onParentGone(gone: (what: string) => void): void {
  if (process.connected) {
    process.once('disconnect', () => gone('end of the supervisor'));
    return;
  }
  const pid = process.ppid;
  if (!isPackageManager(pid, process.env)) return;
  const timer = setInterval(() => {
    if (process.ppid === pid) return;
    clearInterval(timer);
    gone(`end of npm (process ${pid})`);
  }, POLL_MS);
  timer.unref();
}

/**
 * Is process `pid` the npm that runs this process as a script? Its variables alone say little: whatever a script starts has them,
 * at any depth. Without /proc they must do.
 */
function isPackageManager(pid: number, env: NodeJS.ProcessEnv): boolean {
  if (pid <= 1 || (env['npm_lifecycle_event'] ?? '') === '') return false;
  let words: readonly string[];
  try {
    words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    // No such file system, or it has just ended.
    return process.platform !== 'linux';
  }
  // npm calls itself `npm run start:runner /a/project`; others are seen as their program's file.
  const [first = '', second = ''] = words;
  return [first, basename(first), basename(second)].some((word) => PACKAGE_MANAGER.test(word));
}
