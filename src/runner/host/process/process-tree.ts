import { readdirSync, readFileSync } from 'node:fs';

/**
 * All processes below `root`, zombies among them, each before its own children; those below `spared`
 * ones, and these themselves, are left out. Linux only: elsewhere none is found.
 * Cost: a read for each thread of each process found; where the kernel does not list children
 * (CONFIG_PROC_CHILDREN), a read for each process of the system.
 */
export function descendantsOf(root: number, spared: ReadonlySet<number> = new Set()): number[] {
  const childrenOf = listsChildren() ? listedChildren : childrenByParent();
  const found = [root];
  const known = new Set([root, ...spared]);
  for (const parent of found) {
    for (const pid of childrenOf(parent)) {
      if (known.has(pid)) continue;
      known.add(pid);
      found.push(pid);
    }
  }
  return found.slice(1);
}

let isListing: boolean | undefined;

function listsChildren(): boolean {
  isListing ??= read(`/proc/self/task/${process.pid}/children`) !== undefined;
  return isListing;
}

/** A child belongs to the thread that made it; one that was adopted, to any. */
function listedChildren(pid: number): number[] {
  const children: number[] = [];
  for (const thread of namesIn(`/proc/${pid}/task`)) {
    const text = read(`/proc/${pid}/task/${thread}/children`)?.trim() ?? '';
    if (text !== '') children.push(...text.split(' ').map(Number));
  }
  return children;
}

function childrenByParent(): (pid: number) => readonly number[] {
  const byParent = new Map<number, number[]>();
  for (const name of namesIn('/proc')) {
    const { parent } = /^\d+$/.test(name) ? statOf(Number(name)) : { parent: undefined };
    if (parent === undefined) continue;
    const siblings = byParent.get(parent) ?? [];
    siblings.push(Number(name));
    byParent.set(parent, siblings);
  }
  return (pid) => byParent.get(pid) ?? [];
}

/** Whether a process has ended and only its parent has not yet asked how; true when it is gone. */
export function hasEnded(pid: number): boolean {
  const { state } = statOf(pid);
  return state === undefined || state === 'Z' || state === 'X';
}

/** The parent of a process that lives; undefined for others. */
export function parentOf(pid: number): number | undefined {
  const { state, parent } = statOf(pid);
  return state === 'Z' ? undefined : parent;
}

function statOf(pid: number): {
  readonly state?: string | undefined;
  readonly parent?: number | undefined;
} {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return {};
  // The name stands in parentheses and may hold any character: what follows the last one is plain.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state, parent: parent === undefined ? undefined : Number(parent) };
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It ended meanwhile, or there is no /proc.
    return [];
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // As above.
    return undefined;
  }
}
