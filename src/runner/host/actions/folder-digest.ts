import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';

const FILES_MAX = 200_000;
const BYTES_MAX = 2 * 1024 * 1024 * 1024;

/**
 * A checksum of all files and links below a folder, with their names and whether they can be run:
 * `sha256-<hex>`. Errors: RESULT_TOO_LARGE beyond 200,000 files or 2 GiB; those of the file system.
 * Cost: reads everything.
 */
export async function folderDigest(root: string): Promise<string> {
  const hash = createHash('sha256');
  let files = 0;
  let bytes = 0;
  const walk = async (folder: string): Promise<void> => {
    const names = (await readdir(join(root, folder))).toSorted();
    for (const name of names) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const at = join(root, path);
      const stats = await lstat(at);
      if (stats.isDirectory()) {
        await walk(path);
        continue;
      }
      files += 1;
      bytes += stats.size;
      if (files > FILES_MAX || bytes > BYTES_MAX) {
        throw new AppError('RESULT_TOO_LARGE', 'An action has too many files, or too large ones');
      }
      const isLink = stats.isSymbolicLink();
      const kind = isLink ? 'link' : (stats.mode & 0o100) === 0 ? 'file' : 'program';
      const content = isLink ? Buffer.from(await readlink(at)) : await readFile(at);
      hash.update(`${kind} ${content.length} ${path.length}:${path}\n`).update(content);
    }
  };
  await walk('');
  return `sha256-${hash.digest('hex')}`;
}
