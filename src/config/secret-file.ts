import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { AppError } from '../shared/app-error.ts';
import type { ConfigReason } from './config-reason.ts';

/** Far more than any secret; what is larger is another file. */
const BYTES_MAX = 64 * 1024;

/** The variable that names the file of a secret setting. */
export function fileVariableOf(name: string): string {
  return `${name}_FILE`;
}

/**
 * The secret that a file holds: all of it but one line end at its end. Links are followed, as secrets are
 * mounted by links. Errors: CONFIG_INVALID that says what is wrong, and nothing of the content.
 */
export function readSecretFile(path: string): string {
  const text = contentOf(path).replace(/\r?\n$/, '');
  if (text === '') throw problem('holds nothing');
  return text;
}

function contentOf(path: string): string {
  let fd: number | undefined;
  try {
    // Not blocking: a pipe would never open without a writer.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw problem('is no file');
    if (stats.size > BYTES_MAX) throw problem(`holds more than ${BYTES_MAX} bytes`);
    return readFileSync(fd, 'utf8');
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw problem(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function problem(text: string): AppError {
  return new AppError<ConfigReason>('CONFIG_INVALID', `the file that it names ${text}`);
}
