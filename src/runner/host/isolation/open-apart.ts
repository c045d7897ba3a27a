import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import { sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { JobIsolation } from '../../model/isolation.ts';

const BYTES_MAX = 1024 * 1024;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/**
 * Opens a file that a job kept apart has, for the runner, which may read more than the job may: only a plain
 * file that belongs to the job's user and lies in the job's folder, whatever links led there and whoever
 * changes them meanwhile. What was opened is looked at, not the path. The caller closes it.
 * Errors: INVALID_VALUE.
 */
export function openApart(path: string, isolation: JobIsolation): number {
  let fd: number | undefined;
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    const file = fstatSync(fd);
    const real = readlinkSync(`/proc/self/fd/${fd}`);
    const isOwn = file.isFile() && file.uid === isolation.uid;
    if (isOwn && real.startsWith(isolation.dir + sep)) return fd;
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    throw refused(error);
  }
  closeSync(fd);
  throw refused(undefined);
}

/** The content of such a file. Errors: INVALID_VALUE, also for more than 1 MiB. */
export function readApart(path: string, isolation: JobIsolation): Buffer {
  const fd = openApart(path, isolation);
  try {
    if (fstatSync(fd).size > BYTES_MAX) {
      throw new AppError('INVALID_VALUE', `the file holds more than ${BYTES_MAX} bytes`);
    }
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

function refused(cause: unknown): AppError {
  return new AppError('INVALID_VALUE', "the file is no plain file of the job's own", {}, cause);
}
