import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Deletes a folder with all it holds, also folders that a step made read-only (module caches do). Links are not followed. */
export async function removeTree(dir: string): Promise<void> {
  try {
    await rm(dir, { recursive: true, force: true });
  } catch {
    await makeWritable(dir);
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function makeWritable(dir: string): Promise<void> {
  const present = await lstat(dir).catch(() => undefined);
  if (present?.isDirectory() !== true) return;
  await chmod(dir, 0o700);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(dir, entry.name));
  }
}
