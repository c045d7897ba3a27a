import { mkdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { JobState } from './job-state.ts';

/** Fills `making`, which is there and empty; its content will lie in `final`. */
export type FillFolder = (making: string, final: string) => Promise<void>;

/**
 * A tool that belongs to one job, which may change it: what one job installs into it no other sees. Made
 * once for each `name`. That of a fork's job is made where the job cannot reach, given to it, then renamed
 * into its own folder. Removed with the job. Errors: BACKEND_UNAVAILABLE, those of `fill`.
 */
export async function layForJob(job: JobState, name: string, fill: FillFolder): Promise<string> {
  const known = job.laidTools.get(name);
  if (known !== undefined) return await known;
  const laying = lay(job, name, fill);
  job.laidTools.set(name, laying);
  try {
    return await laying;
  } catch (error) {
    job.laidTools.delete(name);
    throw error;
  }
}

async function lay(job: JobState, name: string, fill: FillFolder): Promise<string> {
  const { isolation } = job.request;
  // What the job may write to is not even looked into: only the folder above both is the runner's.
  const parent = isolation === undefined ? ownFolder(job) : join(isolation.dir, 'own');
  const making = join(isolation?.dir ?? parent, `.making-${name}`);
  const final = join(parent, isolation === undefined ? name : `tool-${name}`);
  try {
    mkdirSync(making, { mode: 0o700 });
    await fill(join(making, 'tool'), final);
    if (isolation !== undefined) await isolation.give(join(making, 'tool'));
    await rename(join(making, 'tool'), final);
    return final;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

function ownFolder(job: JobState): string {
  const { tools } = job.dependencies;
  if (tools === undefined) {
    throw new AppError('BACKEND_UNAVAILABLE', 'This runner is set up without tools');
  }
  job.toolsDir ??= tools.jobs.open(basename(job.request.jobDir));
  return job.toolsDir;
}

/** With the job; those of a fork's go with its other folders. Never rejects. */
export async function removeJobTools(job: JobState): Promise<void> {
  if (job.toolsDir === undefined) return;
  try {
    await rm(job.toolsDir, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    // It goes with the runner, or with the next one.
    const cause = error instanceof Error ? error : new Error(String(error));
    job.dependencies.onProblem?.('job_tools_left', cause);
  }
}
