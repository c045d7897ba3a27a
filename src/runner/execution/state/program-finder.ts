import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Finds programs on a PATH. Answers are kept: one job asks for the same few again and again. */
export class ProgramFinder {
  readonly #found = new Map<string, string | undefined>();

  /** The absolute path of `program`, or undefined. `path` is a PATH variable. */
  find(program: string, path: string): string | undefined {
    if (program.includes('/'))
      return isAbsolute(program) && isProgram(program) ? program : undefined;
    const key = `${program}\0${path}`;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const found = path
      .split(delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => join(folder, program))
      .find(isProgram);
    if (found !== undefined) this.#found.set(key, found);
    return found;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not ours to run: the next folder may have it.
    return false;
  }
}
