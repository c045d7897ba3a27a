import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent, storageError } from '../storage/file-errors.ts';
import { DEFAULT_SYNC_CONFIG, parseSyncConfig, type SyncConfig } from './sync-config.ts';

/** Holds the sync configuration, in memory and in `config.json` of the sync folder (0600: it has the webhook secret). */
export interface ConfigStore {
  readonly get: () => SyncConfig;
  /** On disk when the promise resolves. Errors: INVALID_VALUE naming the path, DISK_FULL, STORE_UNAVAILABLE. */
  put(body: unknown): Promise<SyncConfig>;
}

/**
 * Reads what is there. A file that cannot be understood is reported and stands for the defaults, in
 * which nothing is fetched. Errors: STORE_UNAVAILABLE when it cannot be read at all.
 */
export async function openConfigStore(
  directory: string,
  report: ProblemReporter,
): Promise<ConfigStore> {
  const path = join(directory, 'config.json');
  let current = await readConfig(path, report);
  let turn: Promise<unknown> = Promise.resolve();
  const replace = async (body: unknown): Promise<SyncConfig> => {
    const next = parseSyncConfig(body, current);
    await writeFileAtomic(path, `${JSON.stringify(next, null, 2)}\n`);
    current = next;
    return next;
  };
  return {
    get: () => current,
    put(body) {
      const mine = turn.then(() => replace(body));
      turn = mine.catch(() => undefined);
      return mine;
    },
  };
}

async function readConfig(path: string, report: ProblemReporter): Promise<SyncConfig> {
  let text: string | undefined;
  try {
    text = await ifPresent(readFile(path, 'utf8'));
  } catch (error) {
    throw storageError('reading the sync configuration', error);
  }
  if (text === undefined) return DEFAULT_SYNC_CONFIG;
  try {
    return parseSyncConfig(JSON.parse(text), DEFAULT_SYNC_CONFIG);
  } catch (cause) {
    const problem = new AppError(
      'STORE_UNAVAILABLE',
      'the sync configuration on disk cannot be understood; the defaults stand in for it',
      {},
      cause,
    );
    report('sync.config_unreadable', problem);
    return DEFAULT_SYNC_CONFIG;
  }
}
