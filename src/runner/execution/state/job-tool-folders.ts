import { mkdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobState } from './job-state.ts';

/** Fills `making`, which is there and empty; its content will lie in `final`. */
export type FillFolder = (making: string, final: string) => Promise<void>;

/**
 * A tool that belongs to one job, which may change it: what one job installs into it no other sees. Made
 * once for each `name`. That of a fork's job is made where the job cannot reach, given to it, then renamed
 * into its own folder. Whoever removes the folders of the job removes it. Errors: those of `fill`.
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
  const { isolation, jobDir } = job.request;
  // What the job may write to is not even looked into: only the folder above both is the runner's.
  const parent = join(isolation?.dir ?? jobDir, isolation === undefined ? 'tools' : 'own');
  const making = join(isolation?.dir ?? parent, `.making-${name}`);
  const final = join(parent, isolation === undefined ? name : `tool-${name}`);
  try {
    mkdirSync(making, { recursive: true, mode: 0o700 });
    await fill(join(making, 'tool'), final);
    if (isolation !== undefined) await isolation.give(join(making, 'tool'));
    await rename(join(making, 'tool'), final);
    return final;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
