import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { writeFileAtomic } from '../../storage/atomic-file.ts';
import { systemCode } from '../../storage/file-errors.ts';

const FILE = 'actions.lock';
const VERSION = 1;
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const DIGEST = /^sha256-[0-9a-f]{64}$/;

/** What a reference was found to be. */
export type LockedAction = {
  readonly commit: string;
  /** Of the files; see folder-digest.ts. */
  readonly digest: string;
};

/** `.runner/actions.lock`: which commit each `owner/repo@ref` is. May be committed with the project. */
export class ActionLock {
  readonly #path: string;

  constructor(stateDir: string) {
    this.#path = join(stateDir, FILE);
  }

  /** Errors: STORE_UNAVAILABLE for a file that cannot be understood. */
  read(): Map<string, LockedAction> {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return new Map();
      throw broken(error);
    }
    try {
      return entriesOf(JSON.parse(text));
    } catch (error) {
      throw error instanceof AppError ? error : broken(error);
    }
  }

  /** Errors: those of writing. */
  async write(entries: ReadonlyMap<string, LockedAction>): Promise<void> {
    const actions = Object.fromEntries([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)));
    await writeFileAtomic(
      this.#path,
      `${JSON.stringify({ version: VERSION, actions }, null, 2)}\n`,
    );
  }
}

function entriesOf(json: unknown): Map<string, LockedAction> {
  const { version, actions } = json as { readonly version?: unknown; readonly actions?: unknown };
  if (version !== VERSION || typeof actions !== 'object' || actions === null) throw broken();
  const entries = new Map<string, LockedAction>();
  for (const [name, entry] of Object.entries(actions)) {
    const { commit, digest } = entry as Partial<LockedAction>;
    if (typeof commit !== 'string' || !COMMIT.test(commit)) throw broken();
    if (typeof digest !== 'string' || !DIGEST.test(digest)) throw broken();
    entries.set(name, { commit, digest });
  }
  return entries;
}

function broken(cause?: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `.runner/${FILE} cannot be understood`, {}, cause);
}
