import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { WorkflowSource } from '../model/workflow.ts';
import { writeFileAtomic } from './atomic-file.ts';
import { ifPresent, storageError } from './file-errors.ts';

const FORMAT = 1;

/** Writes the texts of a run's workflow to `path`, making its folder. Errors: DISK_FULL, STORE_UNAVAILABLE. */
export async function keepSources(path: string, sources: readonly WorkflowSource[]): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFileAtomic(path, JSON.stringify({ format: FORMAT, sources }));
  } catch (error) {
    throw storageError('keeping the workflow of a run', error);
  }
}

/**
 * What `keepSources` wrote; undefined without a file. Errors: STORE_UNAVAILABLE, also for a file of
 * another form.
 */
export async function readSources(path: string): Promise<readonly WorkflowSource[] | undefined> {
  try {
    const text = await ifPresent(readFile(path, 'utf8'));
    if (text === undefined) return undefined;
    const sources = sourcesIn(JSON.parse(text));
    if (sources !== undefined) return sources;
    throw new AppError('STORE_UNAVAILABLE', 'the workflow that was kept has another form');
  } catch (error) {
    throw storageError('reading the workflow of a run', error);
  }
}

function sourcesIn(value: unknown): readonly WorkflowSource[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { format, sources } = value as Record<string, unknown>;
  const isOurs = format === FORMAT && Array.isArray(sources) && sources.every(isSource);
  return isOurs ? sources : undefined;
}

function isSource(value: unknown): value is WorkflowSource {
  if (typeof value !== 'object' || value === null) return false;
  const { text, fileName, path } = value as Record<string, unknown>;
  return [text, fileName, path].every((part) => typeof part === 'string');
}
