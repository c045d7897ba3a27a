import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sweepProcesses } from '../host/process/sweep.ts';
import { ifPresent } from '../storage/file-errors.ts';

/** A folder for each job in progress, below the project's `.runner`; empty where the job has another one. */
export const JOBS_FOLDER = 'jobs';

/** RUNNER_TRACKING_ID of the processes of the job in `folder`: known again as long as the folder is there. */
export function trackingIdOf(folder: string): string {
  return `github_${folder}`;
}

/**
 * Kills the processes and removes the folders of jobs that were in progress when the process before this
 * one ended. Cost: one look at all processes for each such job.
 */
export async function removeJobLeftovers(projectDir: string): Promise<void> {
  const jobsDir = join(projectDir, '.runner', JOBS_FOLDER);
  const folders = (await ifPresent(readdir(jobsDir))) ?? [];
  for (const folder of folders) await sweepProcesses(trackingIdOf(folder));
  await rm(jobsDir, { recursive: true, force: true, maxRetries: 3 });
}
