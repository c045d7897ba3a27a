import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isWithin } from '../../storage/contained-file.ts';
import type { JobFolders } from '../state/job-state.ts';

/**
 * What a built-in action may read for a job: files by their own path wherever they are, as the workflow
 * names them, and through links what lies in the workspace. The runner's own state is in neither.
 */
export class JobPlaces {
  readonly #workspace: string;
  /** Undefined when the workspace itself lies in it, as sandboxes do. */
  readonly #state: string | undefined;

  constructor({ workspace, project }: Pick<JobFolders, 'workspace' | 'project'>) {
    this.#workspace = realpathSync(workspace);
    const state = join(realpathSync(project), '.runner');
    this.#state = isWithin(state, this.#workspace) ? undefined : state;
  }

  /**
   * The real path of a file that may be read, and what it must lie in when it is opened; undefined when
   * `path` leads where the job has nothing to read. Errors: those of the file system.
   */
  sourceOf(path: string): { readonly source: string; readonly within: string } | undefined {
    const source = realpathSync(path);
    if (this.#isState(source)) return undefined;
    if (isWithin(this.#workspace, source)) return { source, within: this.#workspace };
    return isPlainPath(path) ? { source, within: source } : undefined;
  }

  /** Whether `path` may be read without following it if it is a link. Errors: those of the file system. */
  holds(path: string): boolean {
    const folder = realpathSync(dirname(path));
    if (this.#isState(folder) || this.#isState(path)) return false;
    return isWithin(this.#workspace, folder) || isPlainPath(dirname(path));
  }

  #isState(real: string): boolean {
    return this.#state !== undefined && isWithin(this.#state, real);
  }
}

/** Whether neither the file nor a folder above it is a link. */
function isPlainPath(path: string): boolean {
  for (let at = path; dirname(at) !== at; at = dirname(at)) {
    if (lstatSync(at).isSymbolicLink()) return false;
  }
  return true;
}
