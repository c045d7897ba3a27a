import { lookAt } from '../sandbox/small-file.ts';

/**
 * Never the PATH of the runner or a step: what is found here is run before a job has lost the rights of
 * the runner.
 */
const FOLDERS: readonly string[] = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];
export const SYSTEM_PATH = FOLDERS.join(':');

/** Where a program of the system lies; undefined when there is none. */
export function systemProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => lookAt(path)?.isFile());
}
