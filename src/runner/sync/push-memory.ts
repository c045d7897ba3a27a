import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProblemReporter } from '../model/ports.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent, storageError } from '../storage/file-errors.ts';
import { objectOf } from './cache-entry.ts';

/** Branches that are remembered; of more the oldest are forgotten, which only makes leases stricter. */
const BRANCHES_MAX = 2000;

/** Which commit this workspace pushed last to each branch of one repository of the code host. */
export interface PushMemory {
  get(branch: string): string | undefined;
  /** On disk when the promise resolves. Errors: DISK_FULL, STORE_UNAVAILABLE. */
  remember(pushed: readonly { readonly branch: string; readonly sha: string }[]): Promise<void>;
}

/** Opens `pushes.json` in `directory`. An unreadable file is reported and counts as empty. */
export async function openPushMemory(
  directory: string,
  repository: string,
  report: ProblemReporter,
): Promise<PushMemory> {
  const path = join(directory, 'pushes.json');
  const all = await readAll(path, report);
  const key = (branch: string): string => `${repository}:${branch}`;
  return {
    get: (branch) => all.get(key(branch)),
    async remember(pushed) {
      for (const { branch, sha } of pushed) {
        all.delete(key(branch));
        all.set(key(branch), sha);
      }
      for (const oldest of all.keys()) {
        if (all.size <= BRANCHES_MAX) break;
        all.delete(oldest);
      }
      await writeFileAtomic(path, JSON.stringify(Object.fromEntries(all)));
    },
  };
}

async function readAll(path: string, report: ProblemReporter): Promise<Map<string, string>> {
  try {
    const text = await ifPresent(readFile(path, 'utf8'));
    const entries = Object.entries(objectOf(text === undefined ? {} : JSON.parse(text)) ?? {});
    return new Map(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch (error) {
    report('sync.pushes_unreadable', storageError('reading pushes.json', error));
    return new Map();
  }
}
