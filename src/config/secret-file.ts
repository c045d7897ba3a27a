import { createHmac } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/**
 * Far more bytes than any secret has, and enough for a thousand callers. A larger file is not a
 * file of secrets.
 */
const BYTES_MAX = 1024 * 1024;
/** Non-blocking: a pipe would never open without a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** The variable that names the file of a secret setting. */
export function fileVariableOf(name: string): string {
  return `${name}_FILE`;
}

/**
 * The secret that a file holds: its content without one line end at its end. Follows links, by
 * which secrets are mounted.
 * Errors: CONFIG_INVALID with the problem, and nothing of the content.
 */
export function readSecretFile(path: string): string {
  return secretIn(contentOf(path));
}

/** Reads like `readSecretFile`, off the thread: a mount that hangs must not block other work. */
export async function readSecretFileAsync(path: string): Promise<string> {
  return secretIn(await contentOfAsync(path));
}

function secretIn(content: string): string {
  const text = content.replace(/\r?\n$/, '');
  if (text === '') throw problem('holds nothing');
  return text;
}

function contentOf(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, OPEN_FLAGS);
    assertReadable(fstatSync(fd));
    return readFileSync(fd, 'utf8');
  } catch (error) {
    throw readProblem(error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

async function contentOfAsync(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, OPEN_FLAGS);
    assertReadable(await file.stat());
    return await file.readFile('utf8');
  } catch (error) {
    throw readProblem(error);
  } finally {
    await file?.close();
  }
}

function assertReadable(stats: Stats): void {
  if (!stats.isFile()) throw problem('is no file');
  if (stats.size > BYTES_MAX) throw problem(`holds more than ${BYTES_MAX} bytes`);
}

function readProblem(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return problem(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
}

function problem(text: string): AppError {
  return new AppError<SharedReason>('CONFIG_INVALID', `the file that it names ${text}`);
}

const LABEL = 'gatehouse credential fingerprint';
/** 48 bits: enough to distinguish sets, too few to be the secret of anything. */
const HEX_DIGITS = 12;

/**
 * A short text for metrics and logs, which more people read than may know a secret. It is the same
 * for the same set of secrets, in any order.
 *
 * It is keyed (HMAC-SHA-256, RFC 2104) with a key that those readers lack. A dictionary could
 * reverse a plain hash of a token that a person made up. The key is derived from `key` for this use
 * alone, so a fingerprint reveals nothing about other uses of `key`. `name` separates two settings
 * that hold the same secret.
 */
export function secretFingerprint(
  key: Uint8Array | string,
  name: string,
  secrets: readonly string[],
): string {
  const ownKey = createHmac('sha256', key).update(LABEL).digest();
  const content = JSON.stringify([name, ...[...new Set(secrets)].toSorted()]);
  return createHmac('sha256', ownKey).update(content).digest('hex').slice(0, HEX_DIGITS);
}
