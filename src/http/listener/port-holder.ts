import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** State of a socket that listens, in /proc/net/tcp. */
const LISTEN = '0A';
const COMMAND_SHOWN = 200;
const HOLDERS_SHOWN = 4;

/**
 * Describes which process listens on `port` of this machine, for a message: ` (taken by process 4711: node server.js)`.
 * Processes of other users cannot be inspected, nor those that hide from their own user, as ours do. Hidden processes of this
 * user that run a service are named as possible. Returns '' where nothing is known, as without Linux's /proc. Cost: reads the
 * open files of all processes of this user; for errors only.
 */
export function describePortHolder(port: number): string {
  const inodes = listeningInodes(port);
  if (inodes.size === 0) return '';
  const holders: string[] = [];
  const hidden: string[] = [];
  for (const pid of numbersIn('/proc')) {
    if (pid === process.pid) continue;
    const has = holdsOneOf(pid, inodes);
    if (has === true) holders.push(reported(pid));
    else if (has === undefined && isOfThisUser(pid) && isService(pid)) hidden.push(reported(pid));
  }
  if (holders.length > 0) return ` (taken by ${list(holders)})`;
  return hidden.length > 0 ? ` (taken, perhaps by ${list(hidden)})` : '';
}

function list(processes: readonly string[]): string {
  const more = processes.length > HOLDERS_SHOWN ? ', …' : '';
  return processes.slice(0, HOLDERS_SHOWN).join(', ') + more;
}

function listeningInodes(port: number): ReadonlySet<string> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = new Set<string>();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of textOf(file).split('\n')) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state === LISTEN && local.endsWith(wanted)) inodes.add(`socket:[${inode}]`);
    }
  }
  return inodes;
}

/** Whether a process has one of `inodes` open; undefined where it may not be inspected. */
function holdsOneOf(pid: number, inodes: ReadonlySet<string>): boolean | undefined {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => inodes.has(linkOf(`${folder}/${fd}`)));
  } catch {
    // The process is another user's, hidden, or gone.
    return undefined;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed meanwhile.
    return '';
  }
}

function isOfThisUser(pid: number): boolean {
  return /^Uid:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] === String(process.getuid?.());
}

function isService(pid: number): boolean {
  return /(^|[ /])src\/(notify\/|runner\/)?main\.ts( |$)/.test(commandOf(pid));
}

function reported(pid: number): string {
  return `process ${pid}: ${commandOf(pid)}`;
}

/** The command line on one line, control characters left out: it goes into a log. */
function commandOf(pid: number): string {
  const words = textOf(`/proc/${pid}/cmdline`).replaceAll(/\p{Cc}+/gu, ' ');
  return words.trim().slice(0, COMMAND_SHOWN);
}

function numbersIn(folder: string): readonly number[] {
  try {
    return readdirSync(folder).map(Number).filter(Number.isInteger);
  } catch {
    // No such file system.
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Gone, or not for us.
    return '';
  }
}
