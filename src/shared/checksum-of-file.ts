import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * The SHA-256 of a file, in hexadecimal as `sha256sum` prints it. Reads it whole. Errors: those of
 * the file system.
 */
export function checksumOfFile(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}
