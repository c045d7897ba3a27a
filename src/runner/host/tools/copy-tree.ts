import { mkdirSync } from 'node:fs';
import { constants } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname } from 'node:path';
import { mustRunClient } from './run-client.ts';

const PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * Copies a file or folder to `to`, which is not there yet: as a clone where the file system can, never as
 * another name of the same file. Links stay links. Errors: UPSTREAM_ERROR, those of the file system.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  mkdirSync(dirname(to), { recursive: true });
  if (process.platform !== 'linux') {
    const mode = constants.COPYFILE_FICLONE;
    await cp(from, to, { recursive: true, verbatimSymlinks: true, mode });
    return;
  }
  const args = ['-R', '-P', '--preserve=mode,timestamps', '--reflink=auto', '-T', '--', from, to];
  await mustRunClient('cp', args, { cwd: '/', env: { PATH } });
}
