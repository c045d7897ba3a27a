import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { makeProcessFolder, memoryFolder } from '../../host/process/process-folder.ts';

/** Command files hold at most some MiB; a step that writes more than it may must not fill the memory. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;
const PREFIX = 'runner-commands-';

let ownFolder: string | undefined;

/**
 * A new folder for the command files of one job, in memory where there is room: five files a step, of
 * which most stay empty, and what they hold is often secret. Undefined: the job's own folder is to be
 * used. The caller removes it.
 */
export function makeCommandFolder(): string | undefined {
  const parent = memoryFolder(FREE_BYTES_MIN);
  if (parent === undefined) return undefined;
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      ownFolder ??= makeProcessFolder(parent, PREFIX);
      return mkdtempSync(join(ownFolder, 'job-'));
    } catch {
      // Somebody cleaned up there: a second try makes it anew, then the disk will do.
      ownFolder = undefined;
    }
  }
  return undefined;
}
