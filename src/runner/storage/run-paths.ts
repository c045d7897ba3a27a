import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { isRunId } from '../model/run.ts';

const READABLE_CHARACTERS = 40;
const HASH_CHARACTERS = 24;
const STEP_NUMBER_MAX = 1_000_000;
const FOLDERS_REMEMBERED = 10_000;

/** Where the parts of a run lie. Text of users becomes a hash: no name of theirs is ever a path. */
export interface RunPaths {
  readonly runsDir: string;
  runDir(runId: string): string;
  journal(runId: string): string;
  workflow(runId: string): string;
  log(runId: string, jobId: string, stepNumber: number): string;
  summary(runId: string, jobId: string, stepNumber: number): string;
}

/** Errors of all functions: RUN_NOT_FOUND for an id that cannot be one, INVALID_VALUE for a step number. */
export function createRunPaths(stateDir: string): RunPaths {
  const runsDir = join(stateDir, 'runs');
  const folders = new Map<string, string>();
  const runDir = (runId: string): string => {
    if (!isRunId(runId)) throw new AppError('RUN_NOT_FOUND', 'there is no such run');
    return join(runsDir, runId);
  };
  const folderOf = (jobId: string): string => {
    let folder = folders.get(jobId);
    if (folder === undefined) {
      folder = folderOfJob(jobId);
      if (folders.size >= FOLDERS_REMEMBERED) folders.clear();
      folders.set(jobId, folder);
    }
    return folder;
  };
  return {
    runsDir,
    runDir,
    journal: (runId) => join(runDir(runId), 'journal.jsonl'),
    workflow: (runId) => join(runDir(runId), 'workflow.json'),
    log: (runId, jobId, number) =>
      join(runDir(runId), 'logs', folderOf(jobId), `${mustStepNumber(number)}.log`),
    summary: (runId, jobId, number) =>
      join(runDir(runId), 'summaries', folderOf(jobId), `${mustStepNumber(number)}.md`),
  };
}

/** The readable part is for people who look into the folder; the hash distinguishes ids, also where case does not count. */
function folderOfJob(jobId: string): string {
  const readable = jobId.replaceAll(/[^A-Za-z0-9_-]+/g, '_').slice(0, READABLE_CHARACTERS);
  const hash = createHash('sha256').update(jobId).digest('hex').slice(0, HASH_CHARACTERS);
  return `${readable}.${hash}`;
}

function mustStepNumber(number: number): number {
  if (Number.isInteger(number) && number >= 0 && number <= STEP_NUMBER_MAX) return number;
  throw new AppError('INVALID_VALUE', 'not a step number', { field: 'step' });
}
