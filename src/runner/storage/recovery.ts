import { open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProblemReporter } from '../model/ports.ts';
import { isRunId } from '../model/run.ts';
import type { JournalRecord, RecoveredRun } from '../model/storage.ts';
import { isTemporaryName } from './atomic-file.ts';
import { ifPresent } from './file-errors.ts';
import { recordOfLine, tornLineError } from './jsonl-file.ts';
import type { RunPaths } from './run-paths.ts';

/** Prefix of the folder of a run that is being removed. */
export const REMOVED_PREFIX = '.removed-';
const NEWLINE = 10;
const READS_AT_ONCE = 16;

/**
 * Reads the journals of all runs, oldest id first, and clears what crashes left: torn last lines,
 * temporary files, runs without a whole record (never acknowledged), removals that did not end.
 */
export async function recoverRuns(
  paths: RunPaths,
  report: ProblemReporter,
): Promise<readonly RecoveredRun[]> {
  const names = (await readdir(paths.runsDir)).toSorted();
  const found: RecoveredRun[] = [];
  for (let at = 0; at < names.length; at += READS_AT_ONCE) {
    const some = names.slice(at, at + READS_AT_ONCE);
    const runs = await Promise.all(some.map((name) => recoverEntry(paths, name, report)));
    found.push(...runs.filter((run) => run !== undefined));
  }
  return found;
}

async function recoverEntry(
  paths: RunPaths,
  name: string,
  report: ProblemReporter,
): Promise<RecoveredRun | undefined> {
  if (name.startsWith(REMOVED_PREFIX)) {
    await rm(join(paths.runsDir, name), { recursive: true, force: true });
    return undefined;
  }
  if (!isRunId(name)) return undefined;
  const directory = paths.runDir(name);
  for (const entry of await readdir(directory)) {
    if (isTemporaryName(entry)) await rm(join(directory, entry), { force: true });
  }
  const records = await readJournal(paths.journal(name), `journal of ${name}`, report);
  if (records === undefined) await rm(directory, { recursive: true, force: true });
  // A journal of unreadable lines was reported and stays for whoever looks into it.
  return records === undefined || records.length === 0 ? undefined : { runId: name, records };
}

/** Undefined when not even one record was written as a whole. */
async function readJournal(
  path: string,
  what: string,
  report: ProblemReporter,
): Promise<readonly JournalRecord[] | undefined> {
  const bytes = await ifPresent(readFile(path));
  if (bytes === undefined) return undefined;
  const wholeBytes = bytes.lastIndexOf(NEWLINE) + 1;
  if (wholeBytes < bytes.length) {
    report('journal.line_torn', tornLineError(what, bytes.length - wholeBytes));
    await cutOff(path, wholeBytes);
  }
  if (wholeBytes === 0) return undefined;
  const records: JournalRecord[] = [];
  for (let from = 0; from < wholeBytes;) {
    const at = bytes.indexOf(NEWLINE, from);
    const record = recordOfLine(bytes.subarray(from, at), what, report);
    if (isJournalRecord(record)) records.push(record);
    from = at + 1;
  }
  return records;
}

async function cutOff(path: string, size: number): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.truncate(size);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isJournalRecord(record: unknown): record is JournalRecord {
  return (
    typeof record === 'object' &&
    record !== null &&
    'type' in record &&
    typeof record.type === 'string' &&
    'at' in record &&
    typeof record.at === 'string'
  );
}
