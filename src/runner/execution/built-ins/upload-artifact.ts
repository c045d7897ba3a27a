import { createReadStream, createWriteStream, mkdtempSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../shared/app-error.ts';
import { openApart } from '../../host/isolation/open-apart.ts';
import { globFiles, type GlobResult } from '../../host/project/glob-files.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import type { ZipSource } from '../artifacts/write-zip.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, linesOf } from './built-in-call.ts';
import { JobPlaces } from './job-places.ts';

const NAME_DEFAULT = 'artifact';

/** actions/upload-artifact from version 4 on. Errors: those of ArtifactStore.add, INVALID_VALUE. */
export async function runUploadArtifact(call: BuiltInCall): Promise<boolean> {
  const { run, given, frame } = call;
  const { job } = frame;
  const name = inputOf(given, 'name', NAME_DEFAULT);
  if (job.masker.contains(name)) {
    throw new AppError('INVALID_NAME', 'The name of the artifact holds a secret', {
      field: 'name',
    });
  }
  const patterns = linesOf(inputOf(given, 'path'));
  if (patterns.length === 0) {
    throw new AppError('INVALID_VALUE', 'Input required and not supplied: path', { field: 'path' });
  }
  const found = await globFiles(
    job.folders.workspace,
    patterns,
    {
      implicitDescendants: true,
      excludeHiddenFiles: inputOf(given, 'include-hidden-files', 'false') !== 'true',
    },
    run.signal,
  );
  const { isolation } = job.request;
  const candidates = isolation === undefined ? filesToUpload(call, found) : apartFiles(found);
  const files =
    isolation === undefined
      ? candidates
      : await copyApart(job.request.jobDir, isolation, candidates);
  if (files.length === 0) return reportNothing(call, patterns);
  const artifact = await job.dependencies.artifacts.add({
    runId: job.request.runId,
    attempt: job.request.attempt,
    name,
    files,
    isOverwriting: inputOf(given, 'overwrite', 'false') === 'true',
  });
  run.outputs.set('artifact-id', artifact.id);
  run.outputs.set('artifact-digest', artifact.sha256);
  run.outputs.set('artifact-url', '');
  const count = files.length === 1 ? '1 file' : `${files.length} files`;
  run.log.say(`Artifact ${name}: ${count}, ${artifact.size} bytes, SHA-256 ${artifact.sha256}`);
  return true;
}

function reportNothing(call: BuiltInCall, patterns: readonly string[]): boolean {
  const { log } = call.run;
  const text = `No files were found with the provided path: ${patterns.join(' ')}. No artifacts will be uploaded.`;
  const behaviour = inputOf(call.given, 'if-no-files-found', 'warn');
  if (behaviour === 'error') {
    log.error(text);
    return false;
  }
  if (behaviour === 'ignore') log.say(text);
  else log.warn(text);
  return true;
}

/** Whether they are files is seen when they are opened. */
function apartFiles(found: GlobResult): ZipSource[] {
  const root = rootOf(found.searchPaths, found.files);
  return found.files.map((source) => ({ source, entry: relative(root, source) }));
}

/**
 * Copies what is the job's own, so that the store reads files that nobody changes or swaps meanwhile. All
 * else is left out. The folder goes with the job.
 */
async function copyApart(
  jobDir: string,
  isolation: JobIsolation,
  candidates: readonly ZipSource[],
): Promise<ZipSource[]> {
  const folder = mkdtempSync(join(jobDir, 'upload-'));
  const copied: ZipSource[] = [];
  for (const { source, entry } of candidates) {
    let fd: number;
    try {
      fd = openApart(source, isolation);
    } catch (error) {
      if (error instanceof AppError) continue;
      throw error;
    }
    const copy = join(folder, String(copied.length));
    const from = createReadStream(source, { fd, autoClose: true });
    await pipeline(from, createWriteStream(copy, { mode: 0o600 }));
    copied.push({ source: copy, entry });
  }
  return copied;
}

/** Files only; a link counts as the file it leads to, unless that lies outside of the workspace. */
function filesToUpload(call: BuiltInCall, found: GlobResult): ZipSource[] {
  const places = new JobPlaces(call.frame.job.folders);
  const sources: (Omit<ZipSource, 'entry'> & { readonly path: string })[] = [];
  for (const path of found.files) {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue;
    const place = places.sourceOf(path);
    if (place === undefined) {
      call.run.log.warn(`'${path}' is left out: it leads out of the workspace`);
      continue;
    }
    sources.push({ path, ...place });
  }
  const root = rootOf(
    found.searchPaths,
    sources.map(({ path }) => path),
  );
  return sources.map(({ path, ...place }) => ({ ...place, entry: relative(root, path) }));
}

/** Names in the artifact begin below this folder: the nearest one that all patterns begin in. */
function rootOf(searchPaths: readonly string[], files: readonly string[]): string {
  const [first = sep] = searchPaths;
  if (searchPaths.length <= 1)
    return files.length === 1 && files[0] === first ? dirname(first) : first;
  const paths = searchPaths.map((path) => path.split(sep));
  const common: string[] = [];
  for (const [index, part] of (paths[0] ?? []).entries()) {
    if (!paths.every((other) => other[index] === part)) break;
    common.push(part);
  }
  const folder = common.join(sep);
  // One of the patterns may be the very file.
  return files.includes(folder) ? dirname(folder) : folder === '' ? sep : folder;
}
