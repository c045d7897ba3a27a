import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { JournalRecord } from '../model/storage.ts';
import { AppendFile } from './append-file.ts';
import { syncDirectory, writeFileAtomic } from './atomic-file.ts';
import { storageError } from './file-errors.ts';
import { lineOfRecord } from './jsonl-file.ts';

type Opened = {
  readonly file: AppendFile;
  /** Resolves when the file's name is on the disk, too. */
  readonly named: Promise<unknown>;
};

/** The journal of one run: opened with the first append, closed by compaction. Calls take effect in order. */
export class RunJournal {
  readonly #path: string;
  #opened: Promise<Opened> | undefined;
  /** What has to be over before the file may be opened again. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** Errors: DISK_FULL, STORE_UNAVAILABLE, RESULT_TOO_LARGE. */
  async append(record: JournalRecord): Promise<void> {
    const line = lineOfRecord(record);
    try {
      this.#opened ??= this.#open();
      const { file, named } = await this.#opened;
      await Promise.all([file.append(line), named]);
    } catch (error) {
      throw storageError('appending to a journal', error);
    }
  }

  /** Replaces everything by one record. What fails leaves the journal as it was. */
  compact(record: JournalRecord): Promise<void> {
    const line = lineOfRecord(record);
    return this.#alone(() => writeFileAtomic(this.#path, line));
  }

  close(): Promise<void> {
    return this.#alone(() => Promise.resolve());
  }

  /** Runs `action` after everything before, with the file closed; what comes later waits. */
  #alone(action: () => Promise<void>): Promise<void> {
    const opened = this.#opened;
    const before = this.#before;
    this.#opened = undefined;
    const done = (async () => {
      await before;
      const last = await opened?.catch(() => undefined);
      await last?.file.close();
      await action();
    })();
    this.#before = done.catch(() => undefined);
    return done;
  }

  async #open(): Promise<Opened> {
    try {
      await this.#before;
      const directory = dirname(this.#path);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const file = await AppendFile.open(this.#path, 0o600);
      const isNew = file.size === 0;
      const named = isNew
        ? Promise.all([syncDirectory(directory), syncDirectory(dirname(directory))])
        : Promise.resolve();
      // Whoever appends sees the failure; nobody may be waiting yet.
      named.catch(() => undefined);
      return { file, named };
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }
}
