import {
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  mkdtempSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../shared/app-error.ts';
import { openApart } from '../../host/isolation/open-apart.ts';
import { globFiles, type GlobResult } from '../../host/project/glob-files.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import { mustArtifactName } from '../artifacts/artifact-names.ts';
import { EXTRACT_LIMITS } from '../artifacts/extract-zip.ts';
import type { ZipSource } from '../artifacts/write-zip.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, flagOf, isFrom, linesOf } from './built-in-call.ts';
import { JobPlaces } from './job-places.ts';

const NAME_DEFAULT = 'artifact';
/** The first major version that has the input `archive`. */
const ARCHIVE_FROM = 7;
const COMPRESSION_MAX = 9;
/** Bytes of a job that is kept apart, before they are packed: as much as an archive may hold. */
const COPIED_BYTES_MAX = EXTRACT_LIMITS.bytesMax;

type Behaviour = 'warn' | 'error' | 'ignore';

type UploadInputs = {
  readonly patterns: readonly string[];
  readonly isOverwriting: boolean;
  readonly includesHidden: boolean;
  /** False, from version 7 on: the only file is the artifact, of its own name. */
  readonly isArchive: boolean;
  readonly ifNothing: Behaviour;
};

/** actions/upload-artifact from version 4 on. Errors: those of ArtifactStore.add, INVALID_VALUE. */
export async function runUploadArtifact(call: BuiltInCall): Promise<boolean> {
  const { run, given, frame } = call;
  const { job } = frame;
  const inputs = inputsOf(call);
  const { patterns, isArchive } = inputs;
  const givenName = inputOf(given, 'name', NAME_DEFAULT);
  if (isArchive) mustBeName(call, givenName, 'name');
  const found = await globFiles(
    job.folders.workspace,
    patterns,
    {
      implicitDescendants: true,
      excludeHiddenFiles: !inputs.includesHidden,
    },
    run.signal,
  );
  const { isolation } = job.request;
  const candidates = isolation === undefined ? filesToUpload(call, found) : apartFiles(found);
  const sources =
    isolation === undefined ? candidates : await copyApart(call, isolation, candidates);
  if (sources.length === 0) return reportNothing(call, inputs);
  const only = isArchive ? undefined : onlyFile(call, sources);
  const files = only === undefined ? sources : [only];
  const name = only?.entry ?? givenName;
  const artifact = await job.dependencies.artifacts.add({
    runId: job.request.runId,
    attempt: job.request.attempt,
    name,
    files,
    isOverwriting: inputs.isOverwriting,
    isUnarchived: !isArchive,
  });
  run.outputs.set('artifact-id', artifact.id);
  run.outputs.set('artifact-digest', artifact.sha256);
  run.outputs.set('artifact-url', '');
  const count = files.length === 1 ? '1 file' : `${files.length} files`;
  run.log.say(`Artifact ${name}: ${count}, ${artifact.size} bytes, SHA-256 ${artifact.sha256}`);
  return true;
}

function inputsOf(call: BuiltInCall): UploadInputs {
  const { given, definition } = call;
  const patterns = linesOf(inputOf(given, 'path'));
  if (patterns.length === 0) {
    throw new AppError('INVALID_VALUE', 'Input required and not supplied: path', { field: 'path' });
  }
  const ifNothing = inputOf(given, 'if-no-files-found', 'warn');
  if (ifNothing !== 'warn' && ifNothing !== 'error' && ifNothing !== 'ignore') {
    throw invalid('if-no-files-found', 'must be warn, error or ignore');
  }
  mustBeNumber(given, 'retention-days', Infinity);
  mustBeNumber(given, 'compression-level', COMPRESSION_MAX);
  return {
    patterns,
    ifNothing,
    isOverwriting: flagOf(call, 'overwrite'),
    includesHidden: flagOf(call, 'include-hidden-files'),
    isArchive: !isFrom(definition.uses, ARCHIVE_FROM) || flagOf(call, 'archive', true),
  };
}

/** Both inputs change nothing here; what fails there fails here. */
function mustBeNumber(given: BuiltInCall['given'], name: string, max: number): void {
  const text = inputOf(given, name, '0');
  const value = Number.parseInt(text, 10);
  if (value >= 0 && value <= max) return;
  const bound = max === Infinity ? 'a number' : `a number of 0 to ${max}`;
  throw invalid(name, `must be ${bound}`);
}

function invalid(field: string, text: string): AppError {
  return new AppError('INVALID_VALUE', `${field}: ${text}`, { field });
}

/** The name may be a file's, which the job made. */
function mustBeName(call: BuiltInCall, name: string, field: 'name' | 'path'): void {
  mustArtifactName(name, field);
  if (call.frame.job.masker.contains(name)) {
    const text = `${field}: The name of the artifact holds a secret`;
    throw new AppError('INVALID_NAME', text, { field });
  }
}

/** The file by its base name, which the artifact has as well. A link has its own, whatever it leads to. */
function onlyFile(call: BuiltInCall, sources: readonly ZipSource[]): ZipSource {
  const [only] = sources;
  if (only === undefined || sources.length > 1) {
    throw invalid('path', `archive: false uploads one file, and ${sources.length} were found`);
  }
  const entry = basename(only.entry);
  mustBeName(call, entry, 'path');
  return { ...only, entry };
}

function reportNothing(call: BuiltInCall, { patterns, ifNothing }: UploadInputs): boolean {
  const { log } = call.run;
  const text = `No files were found with the provided path: ${patterns.join(' ')}. No artifacts will be uploaded.`;
  if (ifNothing === 'error') {
    log.error(text);
    return false;
  }
  if (ifNothing === 'ignore') log.say(text);
  else log.warn(text);
  return true;
}

/** Whether they are files is seen when they are opened. */
function apartFiles(found: GlobResult): ZipSource[] {
  const root = rootOf(found.searchPaths, found.files);
  return found.files.map((source) => ({ source, entry: relative(root, source) }));
}

/**
 * Copies what is the job's own, as large as it is when it is opened, so that the store reads files that
 * nobody changes or swaps meanwhile. All else is left out. The folder goes with the job.
 * Errors: RESULT_TOO_LARGE.
 */
async function copyApart(
  { run, frame }: BuiltInCall,
  isolation: JobIsolation,
  candidates: readonly ZipSource[],
): Promise<ZipSource[]> {
  const folder = mkdtempSync(join(frame.job.request.jobDir, 'upload-'));
  const copied: ZipSource[] = [];
  let bytesLeft = COPIED_BYTES_MAX;
  for (const { source, entry } of candidates) {
    let fd: number;
    try {
      fd = openApart(source, isolation);
    } catch (error) {
      if (error instanceof AppError) continue;
      throw error;
    }
    const { size } = fstatSync(fd);
    bytesLeft -= size;
    if (bytesLeft < 0) {
      closeSync(fd);
      const text = `path: the files have more than ${COPIED_BYTES_MAX} bytes together`;
      throw new AppError('RESULT_TOO_LARGE', text, { field: 'path' });
    }
    const copy = join(folder, String(copied.length));
    const from = createReadStream(source, { fd, autoClose: true, end: Math.max(size, 1) - 1 });
    const to = createWriteStream(copy, { mode: 0o600 });
    await pipeline(from, to, { signal: run.signal });
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
