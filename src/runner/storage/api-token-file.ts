import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { writeFileAtomic } from './atomic-file.ts';
import { ifPresent, storageError, systemCode } from './file-errors.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const FILE = 'api-token';
const TOKEN_BYTES = 32;
const FILE_BYTES_MAX = 4_096;
/** At least what a made one has; a header must be able to carry it. */
const TOKEN = /^[\x21-\x7e]{43,}$/;
const REMEDY = 'remove it, so that a new one is made, or set RUNNER_API_TOKEN';

/** Where the token lies that is made while RUNNER_API_TOKEN is unset. */
export function apiTokenPath(stateDir: string): string {
  return join(stateDir, FILE);
}

/**
 * The token of the state directory, made on first use: 256 random bits in a file of mode 0600, there whole
 * or not at all. The caller holds the lock of the workspace, so that nobody else makes one meanwhile.
 * Errors: STORE_UNAVAILABLE for a file that is a symbolic link, somebody else's, open to others or no token;
 * DISK_FULL.
 */
export async function readOrMakeApiToken(stateDir: string): Promise<string> {
  const present = await readApiToken(stateDir);
  if (present !== undefined) return present;
  await writeFileAtomic(
    apiTokenPath(stateDir),
    `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`,
  );
  const made = await readApiToken(stateDir);
  if (made === undefined) throw refused('has gone again');
  return made;
}

/** The token, undefined when there is none. Errors: as `readOrMakeApiToken`. */
export async function readApiToken(stateDir: string): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    // Not blocking: a pipe in place of the file would never open.
    handle = await ifPresent(open(apiTokenPath(stateDir), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (handle === undefined) return undefined;
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > FILE_BYTES_MAX) throw refused('is no file of a token');
    if (process.geteuid !== undefined && stats.uid !== process.geteuid()) {
      throw refused('belongs to another user');
    }
    if (process.platform !== 'win32' && (stats.mode & 0o077) !== 0) {
      throw refused('is open to others; it should have mode 0600');
    }
    const token = (await handle.readFile('latin1')).replace(/\n$/, '');
    if (!TOKEN.test(token)) throw refused('holds no token');
    return token;
  } catch (error) {
    if (systemCode(error) === 'ELOOP') throw refused('is a symbolic link', error);
    throw storageError(`reading ${FILE}`, error);
  } finally {
    await handle?.close();
  }
}

/** `storageError` passes it on as it is. The token itself is in no text. */
function refused(problem: string, cause?: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `.runner/${FILE} ${problem}; ${REMEDY}`, {}, cause);
}
