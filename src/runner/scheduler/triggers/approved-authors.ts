import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../../storage/atomic-file.ts';
import { ifPresent } from '../../storage/file-errors.ts';

/** The oldest are forgotten: they are asked for approval once more. */
const AUTHORS_MAX = 10_000;

/** The accounts a run of whose pull request from a fork was approved here, by the host's ids. */
export interface ApprovedAuthors {
  has(id: string): boolean;
  /** On disk when the promise resolves. Errors: STORE_UNAVAILABLE, DISK_FULL. */
  add(id: string): Promise<void>;
}

/** Errors: STORE_UNAVAILABLE when the file is there and cannot be read. */
export async function openApprovedAuthors(path: string): Promise<ApprovedAuthors> {
  const text = (await ifPresent(readFile(path, 'utf8'))) ?? '';
  const ids = new Set(text.split('\n').filter((line) => line !== ''));
  let turn: Promise<unknown> = Promise.resolve();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.delete(id);
      ids.add(id);
      for (const oldest of ids) {
        if (ids.size <= AUTHORS_MAX) break;
        ids.delete(oldest);
      }
      const content = [...ids].map((one) => `${one}\n`).join('');
      const written = turn.then(() => writeFileAtomic(path, content));
      turn = written.catch(() => undefined);
      return written;
    },
  };
}
