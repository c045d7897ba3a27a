import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chmod, lstat, mkdir, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { type DirectoryLock, lockDirectory } from '../../shared/process/directory-lock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { JournalRecord, LogWriter, RecoveredRun, RunStore } from '../model/storage.ts';
import type { WorkflowSource } from '../model/workflow.ts';
import { syncDirectory, writeFileAtomic } from './atomic-file.ts';
import { ifPresent, storageError, systemCode } from './file-errors.ts';
import { readLogFile } from './log-reader.ts';
import { openLogWriter } from './log-writer.ts';
import { recoverRuns, REMOVED_PREFIX } from './recovery.ts';
import { RunJournal } from './run-journal.ts';
import { createRunPaths, type RunPaths } from './run-paths.ts';
import { keepSources, readSources } from './workflow-file.ts';

const CACHE_MS = 1_000;
const MEBIBYTE = 1024 * 1024;

/**
 * A check that `minBytes` are free on the disk of `directory`, asked of the system at most once a
 * second. Errors of the check: DISK_FULL, STORE_UNAVAILABLE.
 */
export function createFreeDiskCheck(
  directory: string,
  minBytes: number,
  nowMs: () => number,
): () => Promise<void> {
  let freeBytes: Promise<number> | undefined;
  let askedAtMs = 0;
  return async () => {
    if (freeBytes === undefined || nowMs() - askedAtMs >= CACHE_MS) {
      askedAtMs = nowMs();
      freeBytes = freeBytesOf(directory);
    }
    const free = await freeBytes;
    if (free >= minBytes) return;
    const minMebibytes = Math.ceil(minBytes / MEBIBYTE);
    throw new AppError(
      'DISK_FULL',
      `less than ${minMebibytes} MiB are free on the disk of the runner's state`,
      { floorBytes: String(minBytes) },
    );
  };
}

async function freeBytesOf(directory: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize;
  } catch (error) {
    throw storageError('asking for free disk space', error);
  }
}

/** Nothing below is committed but the encrypted vault, and which commits actions are. */
const IGNORE = '*\n!vault.json\n!actions.lock\n';

/**
 * Makes the folder of the runner's state: 0700, ignored by git. An ignore file that is there is kept.
 * Errors: STORE_UNAVAILABLE when it is a symbolic link or no folder, DISK_FULL.
 */
export async function prepareStateDir(stateDir: string): Promise<void> {
  try {
    const present = await ifPresent(lstat(stateDir));
    if (present !== undefined && !present.isDirectory()) {
      throw new AppError('STORE_UNAVAILABLE', 'the state directory is not a directory');
    }
    await mkdir(join(stateDir, 'runs'), { recursive: true, mode: 0o700 });
    await chmod(stateDir, 0o700);
    await writeFile(join(stateDir, '.gitignore'), IGNORE, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw storageError('making the state directory', error);
  }
}

/** 1 MiB of the step, and what masking and decoding may add. */
const SUMMARY_BYTES_MAX = 4 * 1024 * 1024;

export type RunStoreOptions = {
  /** The `.runner` of a project. */
  readonly stateDir: string;
  /** `assertDiskSpace` fails when less is free. */
  readonly diskFloorBytes: number;
  /** Is notified of what a crash left torn. */
  readonly report: ProblemReporter;
};

/**
 * Opens the state of a project for this process alone; the lock goes with the process, also by kill -9.
 * Errors: STORE_UNAVAILABLE when another process has it or the folder cannot be used, DISK_FULL.
 */
export async function openRunStore(options: RunStoreOptions): Promise<RunStore> {
  await prepareStateDir(options.stateDir);
  const lock = lockDirectory(
    join(options.stateDir, 'lock'),
    "The project's .runner directory",
    'Stop that one first, or run another workspace.',
  );
  return new FileRunStore(options, lock);
}

class FileRunStore implements RunStore {
  readonly #paths: RunPaths;
  readonly #report: ProblemReporter;
  readonly #lock: DirectoryLock;
  readonly #journals = new Map<string, RunJournal>();
  readonly assertDiskSpace: () => Promise<void>;
  #isClosed = false;

  constructor({ stateDir, diskFloorBytes, report }: RunStoreOptions, lock: DirectoryLock) {
    this.#paths = createRunPaths(stateDir);
    this.#report = report;
    this.#lock = lock;
    this.assertDiskSpace = createFreeDiskCheck(stateDir, diskFloorBytes, () => performance.now());
  }

  async recover(): Promise<readonly RecoveredRun[]> {
    try {
      return await recoverRuns(this.#paths, this.#report);
    } catch (error) {
      throw storageError('reading the recorded runs', error);
    }
  }

  keepWorkflow(runId: string, sources: readonly WorkflowSource[]): Promise<void> {
    return keepSources(this.#paths.workflow(runId), sources);
  }

  readWorkflow(runId: string): Promise<readonly WorkflowSource[] | undefined> {
    return readSources(this.#paths.workflow(runId));
  }

  async append(runId: string, record: JournalRecord): Promise<void> {
    await this.#journal(runId).append(record);
  }

  async compact(runId: string, record: JournalRecord): Promise<void> {
    await this.#journal(runId).compact(record);
  }

  openLog(runId: string, jobId: string, stepNumber: number): LogWriter {
    return openLogWriter(this.#paths.log(runId, jobId, stepNumber));
  }

  readLog(
    runId: string,
    jobId: string,
    stepNumber: number,
    tail?: number,
  ): AsyncIterable<Uint8Array> {
    return readLogFile(this.#paths.log(runId, jobId, stepNumber), tail);
  }

  async remove(runId: string): Promise<void> {
    const directory = this.#paths.runDir(runId);
    const { runsDir } = this.#paths;
    try {
      await this.#journals.get(runId)?.close();
      this.#journals.delete(runId);
      // Gone at once for whoever looks or restarts; what is slow comes after.
      const removed = join(runsDir, `${REMOVED_PREFIX}${randomBytes(8).toString('hex')}`);
      await ifPresent(rename(directory, removed));
      await syncDirectory(runsDir);
      await rm(removed, { recursive: true, force: true });
    } catch (error) {
      throw storageError('removing a run', error);
    }
  }

  async writeSummary(
    runId: string,
    jobId: string,
    stepNumber: number,
    markdown: string,
  ): Promise<void> {
    const path = this.#paths.summary(runId, jobId, stepNumber);
    if (Buffer.byteLength(markdown) > SUMMARY_BYTES_MAX) {
      throw new AppError('RESULT_TOO_LARGE', 'the summary of a step is too large');
    }
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFileAtomic(path, markdown);
    } catch (error) {
      throw storageError('writing a summary', error);
    }
  }

  readSummary(runId: string, jobId: string, stepNumber: number): string {
    try {
      return readFileSync(this.#paths.summary(runId, jobId, stepNumber), 'utf8');
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return '';
      throw storageError('reading a summary', error);
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      await Promise.all([...this.#journals.values()].map((journal) => journal.close()));
    } finally {
      this.#lock.release();
    }
  }

  #journal(runId: string): RunJournal {
    if (this.#isClosed) throw new AppError('SHUTTING_DOWN', 'the run store is closed');
    let journal = this.#journals.get(runId);
    if (journal === undefined) {
      journal = new RunJournal(this.#paths.journal(runId));
      this.#journals.set(runId, journal);
    }
    return journal;
  }
}
