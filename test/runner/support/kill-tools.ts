import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Small and fast, so that a seed tells the whole story (Mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Processes of jobs of the project, found by their environment; none where the system has no /proc. */
export async function processesOf(projectDir: string): Promise<readonly string[]> {
  const entries = await readdir('/proc').catch(() => []);
  const found: string[] = [];
  for (const pid of entries.filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(join('/proc', pid, 'environ'), 'utf8').catch(() => '');
    if (environment.includes(join(projectDir, '.runner'))) found.push(pid);
  }
  return found;
}
