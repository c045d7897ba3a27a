import { isAbsolute, dirname, relative, resolve } from 'node:path';
import { fileError } from '../../core/files.ts';

/** The path of a file that `file` names. Errors: FILE_INVALID, where it does not lie in its folder or below. */
export function pathBeside(file: string, other: string): string {
  const folder = resolve(dirname(file));
  const found = resolve(folder, other);
  if (isAbsolute(other) || relative(folder, found).startsWith('..')) {
    throw fileError(file, `${other} does not lie in its folder or below`);
  }
  return found;
}
