import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from './exit-codes.ts';

/** FILE_INVALID for a file; the message names it. */
export function fileError(path: string, problem: string): AppError {
  return new AppError<CliReason>('FILE_INVALID', `${path}: ${problem}`);
}

/** The text of a file; `-` is the standard input. Errors: FILE_INVALID naming the file. */
export function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw fileError(path, messageOf(error));
  }
}

/**
 * Characters that a header can carry. Others would be refused there without a hint at their origin.
 */
const SECRET = /^[!-~]+$/;

/**
 * The secret that a file holds, without the space around it. Errors: FILE_INVALID naming the file,
 * never its content.
 */
export function readSecret(path: string): string {
  const text = readText(path).trim();
  if (!isSecret(text)) throw fileError(path, 'must be printable ASCII without spaces');
  return text;
}

/** True if a text can be sent as a credential. */
export function isSecret(text: string): boolean {
  return SECRET.test(text);
}

/** Writes a file, or the standard output for `-`. Errors: FILE_INVALID naming the file. */
export function writeText(path: string, text: string): void {
  if (path === '-') {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw fileError(path, messageOf(error));
  }
}

/** The message of a thrown value, with that of its cause. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

/**
 * The path of a file that `file` names. Errors: FILE_INVALID if it is not in the same folder or
 * below.
 */
export function pathBeside(file: string, other: string): string {
  const folder = resolve(dirname(file));
  const found = resolve(folder, other);
  if (isAbsolute(other) || relative(folder, found).startsWith('..')) {
    throw fileError(file, `${other} does not lie in its folder or below`);
  }
  return found;
}
