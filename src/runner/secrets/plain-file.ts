import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { ifPresent, systemCode } from '../storage/file-errors.ts';
import { FILE_BYTES_MAX } from './secret-limits.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/**
 * The text of a regular file of at most 64 MiB; undefined when there is none.
 * Errors: BACKEND_UNAVAILABLE for a symbolic link, anything that is no file, and invalid UTF-8.
 */
export async function readPlainFile(path: string, backend: string): Promise<string | undefined> {
  const name = basename(path);
  const fail = (problem: string, cause?: unknown): AppError =>
    new AppError('BACKEND_UNAVAILABLE', `${name} ${problem}`, { backend }, cause);
  let handle: FileHandle | undefined;
  try {
    // Not blocking: a pipe in place of the file would never open.
    handle = await ifPresent(open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (handle === undefined) return undefined;
    const stat = await handle.stat();
    if (!stat.isFile()) throw fail('is no regular file');
    if (stat.size > FILE_BYTES_MAX) throw fail('is too large');
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      await handle.readFile(),
    );
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (error instanceof TypeError) throw fail('is not UTF-8', error);
    if (systemCode(error) === 'ELOOP') throw fail('is a symbolic link', error);
    throw fail(`cannot be read (${systemCode(error) ?? 'unknown'})`, error);
  } finally {
    await handle?.close();
  }
}
