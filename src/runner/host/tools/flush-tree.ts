import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** As many at a time as the thread pool has threads: others wait for it, too. */
const FILES_AT_ONCE = 4;

/**
 * Makes a folder that nobody writes to any more survive power loss, with all that is in it: files first,
 * then the folders that name them. Links have nothing of their own. Errors: those of the file system.
 * Cost: an fsync for each file and folder.
 */
export async function flushTree(dir: string): Promise<void> {
  const [files, folders] = [[] as string[], [dir]];
  // It grows while it is gone through.
  for (const folder of folders) {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(path);
    }
  }
  for (const paths of [files, folders]) {
    const rest = paths.values();
    const work = async (): Promise<void> => {
      for (const path of rest) await flush(path);
    };
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work));
  }
}

/** A file, or the names in a folder. Errors: those of the file system. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
