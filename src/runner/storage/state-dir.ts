import { chmod, lstat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { ifPresent, storageError, systemCode } from './file-errors.ts';

/** Nothing below is committed but the encrypted vault, and which commits actions are. */
const IGNORE = '*\n!vault.json\n!actions.lock\n';

/**
 * Makes the folder of the runner's state: 0700, ignored by git. An ignore file that is there is kept.
 * Errors: STORE_UNAVAILABLE when it is a symbolic link or no folder, DISK_FULL.
 */
export async function prepareStateDir(stateDir: string): Promise<void> {
  try {
    const present = await ifPresent(lstat(stateDir));
    if (present !== undefined && !present.isDirectory()) {
      throw new AppError('STORE_UNAVAILABLE', 'the state directory is not a directory');
    }
    await mkdir(join(stateDir, 'runs'), { recursive: true, mode: 0o700 });
    await chmod(stateDir, 0o700);
    await writeFile(join(stateDir, '.gitignore'), IGNORE, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw storageError('making the state directory', error);
  }
}
