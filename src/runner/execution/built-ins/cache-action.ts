import { relative, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { globFiles } from '../../host/project/glob-files.ts';
import { mustCacheKey } from '../cache/cache-store.ts';
import { addPostStep } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, linesOf } from './built-in-call.ts';
import { JobPlaces } from './job-places.ts';

/** The key and those to restore by, together. */
const KEYS_MAX = 10;

type CacheInputs = {
  readonly key: string;
  readonly paths: readonly string[];
  readonly restoreKeys: readonly string[];
};

/** actions/cache: restores now, saves after the job when it succeeded and the key was not there. */
export async function runCache(call: BuiltInCall): Promise<boolean> {
  const inputs = inputsToRestore(call);
  const isExact = await restore(call, inputs);
  if (isExact === undefined) return false;
  if (!isExact) addSave(call, inputs);
  return true;
}

/** actions/cache/restore. */
export async function runCacheRestore(call: BuiltInCall): Promise<boolean> {
  return (await restore(call, inputsToRestore(call))) !== undefined;
}

/** actions/cache/save. */
export async function runCacheSave(call: BuiltInCall): Promise<boolean> {
  await save(call, inputsOf(call), call.run);
  return true;
}

function inputsOf({ given }: BuiltInCall): CacheInputs {
  return {
    key: inputOf(given, 'key'),
    paths: linesOf(inputOf(given, 'path')),
    restoreKeys: linesOf(inputOf(given, 'restore-keys')),
  };
}

/**
 * Reads the inputs of a step that restores, which fails by what a cache cannot have. Errors: INVALID_VALUE, INVALID_NAME.
 * Source: actions/cache, restoreImpl; actions/toolkit, cache, restoreCache.
 */
function inputsToRestore(call: BuiltInCall): CacheInputs {
  const inputs = inputsOf(call);
  if (inputs.key === '') throw notSupplied('key');
  if (inputs.paths.length === 0) throw notSupplied('path');
  const keys = [inputs.key, ...inputs.restoreKeys];
  if (keys.length > KEYS_MAX) {
    const text = `Key Validation Error: Keys are limited to a maximum of ${KEYS_MAX}.`;
    throw new AppError('INVALID_VALUE', text, { field: 'restore-keys' });
  }
  for (const key of keys) mustCacheKey(key);
  return inputs;
}

function notSupplied(field: string): AppError {
  return new AppError('INVALID_VALUE', `Input required and not supplied: ${field}`, { field });
}

/** Whether the very key was found; undefined when the step fails because nothing was. */
async function restore(call: BuiltInCall, inputs: CacheInputs): Promise<boolean | undefined> {
  const { run, frame, given } = call;
  const { cache } = frame.job.dependencies;
  const { key, paths, restoreKeys } = inputs;
  run.outputs.set('cache-primary-key', key);
  const found = isApart(call) ? undefined : cache.find([key, ...restoreKeys], paths);
  if (found === undefined) {
    run.outputs.set('cache-hit', '');
    const text = `Cache not found for input keys: ${[key, ...restoreKeys].join(', ')}`;
    if (inputOf(given, 'fail-on-cache-miss', 'false') === 'true') {
      run.log.error(`Failed to restore cache entry. Exiting as fail-on-cache-miss is set. ${text}`);
      return undefined;
    }
    run.log.say(text);
    return false;
  }
  const isExact = found.key === key;
  if (inputOf(given, 'lookup-only', 'false') !== 'true') {
    await cache.restore(found.key, paths, frame.job.folders.workspace, run.signal);
  }
  run.log.say(`Cache restored from key: ${found.key}`);
  run.outputs.set('cache-hit', String(isExact));
  run.outputs.set('cache-matched-key', found.key);
  return isExact;
}

/** Caches are the project's, whoever saved them: a fork could leave something in one for other runs. */
function isApart({ frame }: BuiltInCall): boolean {
  return frame.job.request.isolation !== undefined;
}

function addSave(call: BuiltInCall, inputs: CacheInputs): void {
  const { at, env } = call.definition;
  addPostStep(call.frame, call.step.key, {
    name: `Post ${call.run.name}`,
    definition: {
      kind: 'stage',
      at,
      if: { source: 'success()', at },
      env,
      body: async (run) => {
        await save(call, inputs, run);
        return true;
      },
    },
  });
}

/**
 * A cache that cannot be saved, for whatever reason, is a warning: the work of the job is done.
 * Source: actions/cache, saveImpl.
 */
async function save(call: BuiltInCall, inputs: CacheInputs, run: StepRun): Promise<void> {
  try {
    await mustSave(call, inputs, run);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    run.log.warn(`Cache save failed. ${error.message}`);
  }
}

async function mustSave(call: BuiltInCall, inputs: CacheInputs, run: StepRun): Promise<void> {
  const { dependencies, folders } = call.frame.job;
  const { key, paths } = inputs;
  mustCacheKey(key);
  if (paths.length === 0) throw notSupplied('path');
  if (isApart(call)) {
    run.log.say('A job of a fork saves nothing that other runs would get');
    return;
  }
  const { files: found } = await globFiles(
    folders.workspace,
    paths,
    {
      implicitDescendants: false,
      excludeHiddenFiles: false,
    },
    run.signal,
  );
  const places = new JobPlaces(folders);
  const files = found.filter((file) => {
    const isHeld = places.holds(file);
    if (!isHeld) run.log.warn(`'${file}' is left out: it leads out of the workspace`);
    return isHeld;
  });
  if (files.length === 0) {
    run.log.warn(`Nothing is saved: no file matches ${paths.join(' ')}`);
    return;
  }
  const isSaved = await dependencies.cache.save({
    key,
    paths,
    files: files.map((file) => nameFrom(folders.workspace, file)),
    workspace: folders.workspace,
    signal: run.signal,
  });
  run.log.say(isSaved ? `Cache saved with key: ${key}` : `There is a cache ${key} already`);
}

/** Relative within the workspace, so that a run elsewhere can restore it; else as it is. */
function nameFrom(workspace: string, file: string): string {
  return file.startsWith(workspace + sep) ? relative(workspace, file) : file;
}
