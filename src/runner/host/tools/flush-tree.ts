import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../storage/atomic-file.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** As many at a time as the thread pool has threads: others wait for it, too. */
const FILES_AT_ONCE = 4;

/**
 * Makes a folder that nobody writes to any more survive power loss, with all that is in it: files first,
 * then the folders that name them. Links have nothing of their own. Errors: those of the file system.
 * Cost: an fsync for each file and folder.
 */
export async function flushTree(dir: string): Promise<void> {
  const [files, folders] = [[] as string[], [dir]];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(path);
    }
  }
  await each(files, syncFile);
  await each(folders, syncDirectory);
}

async function each(paths: readonly string[], act: (path: string) => Promise<void>): Promise<void> {
  const rest = paths.values();
  const work = async (): Promise<void> => {
    for (const path of rest) await act(path);
  };
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, work));
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
