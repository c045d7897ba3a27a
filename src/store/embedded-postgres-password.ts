import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { AppError } from '../shared/app-error.ts';
import { systemCode } from './embedded-postgres-binaries.ts';
import type { StoreReason } from './store-reason.ts';

/** Control characters, and what was no text in UTF-8. */
const NOT_A_PASSWORD = /[\p{Cc}\uFFFD]/u;

/** The superuser's password, or undefined where there is no such file. Errors: STORE_UNAVAILABLE with what to do. */
export function readPassword(path: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw passwordError(path, `cannot be read (${systemCode(cause)})`, cause);
  }
  const password = text.trim();
  if (password === '') throw passwordError(path, 'is empty');
  if (NOT_A_PASSWORD.test(password)) throw passwordError(path, 'holds no password');
  return password;
}

/** A new one: 192 bits at random. */
export function makePassword(): string {
  return randomBytes(24).toString('base64url');
}

/** Keeps it where only we read it. Errors: of the file system, also when there is such a file. */
export function keepPassword(path: string, password: string): void {
  writeFileSync(path, `${password}\n`, { mode: 0o600, flag: 'wx' });
}

/** What an operator can do about a password that is of no use. */
export function passwordError(
  path: string,
  problem: string,
  cause?: unknown,
): AppError<StoreReason> {
  return new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `${path} ${problem}; put the file of a backup in its place, or remove it: the next start then gives its PostgreSQL a new password, and the data stays`,
    { path },
    cause,
  );
}
