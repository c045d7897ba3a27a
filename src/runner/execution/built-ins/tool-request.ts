import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { readApart } from '../../host/isolation/open-apart.ts';
import type { ToolRegistry } from '../../host/tools/tool-registry.ts';
import type { ToolProgress } from '../../host/tools/tool-source.ts';
import { type VersionedTool, versionsInFile } from '../../host/tools/version-files.ts';
import type { StepRun } from '../state/step-run.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, isFrom, linesOf, pathOf } from './built-in-call.ts';

const FILE_BYTES_MAX = 1024 * 1024;

/** Errors: BACKEND_UNAVAILABLE where jobs run without tools. */
export function mustToolRegistry(call: BuiltInCall): ToolRegistry {
  const { tools } = call.frame.job.dependencies;
  if (tools !== undefined) return tools;
  throw new AppError('BACKEND_UNAVAILABLE', 'This runner is set up without tools');
}

/** The end of a step, and its log, for a tool that may have to be installed. */
export function progressOf({ signal, log }: Pick<StepRun, 'signal' | 'log'>): ToolProgress {
  return { signal, say: (text) => log.say(text) };
}

/**
 * What a setup action is asked for: its version input, else what its file says, else what one of `usual`
 * files in the workspace says, which are looked for only when neither is given. Empty when nothing is.
 * Errors: NOT_FOUND for a file that is not there, INVALID_VALUE for one that names no version.
 */
export async function askedVersions(
  call: BuiltInCall,
  tool: VersionedTool,
  inputs: { readonly version: string; readonly file: string; readonly usual: readonly string[] },
): Promise<{ readonly versions: readonly string[]; readonly from: string }> {
  const given = linesOf(inputOf(call.given, inputs.version));
  const file = inputOf(call.given, inputs.file);
  if (given.length > 0) {
    if (file !== '') {
      call.run.log.warn(
        `Both ${inputs.version} and ${inputs.file} are given: ${inputs.version} counts`,
      );
    }
    return { versions: given, from: inputs.version };
  }
  if (file !== '') {
    const versions = await versionsOfFile(call, tool, file);
    if (versions === undefined) {
      throw new AppError('NOT_FOUND', `${inputs.file}: there is no file '${file}'`, {
        field: inputs.file,
      });
    }
    if (versions.length > 0) return { versions, from: file };
    const text = `${inputs.file}: '${file}' names no version of ${tool}`;
    throw new AppError('INVALID_VALUE', text, { field: inputs.file });
  }
  for (const usual of inputs.usual) {
    const versions = (await versionsOfFile(call, tool, usual)) ?? [];
    if (versions.length > 0) return { versions, from: usual };
  }
  return { versions: [], from: '' };
}

async function versionsOfFile(
  call: BuiltInCall,
  tool: VersionedTool,
  file: string,
): Promise<string[] | undefined> {
  const path = pathOf(call, file);
  if (!existsSync(path)) return undefined;
  const text = await readJobFile(call, path);
  const prefersToolchain = isFrom(call.definition.uses, 6);
  return versionsInFile(tool, file, text, { prefersToolchain });
}

/** A small text file that the workflow names. Of a job of a fork only its own. Errors: INVALID_VALUE. */
export async function readJobFile({ frame }: BuiltInCall, path: string): Promise<string> {
  const { isolation } = frame.job.request;
  const bytes = isolation === undefined ? await readFile(path) : readApart(path, isolation);
  if (bytes.length <= FILE_BYTES_MAX) return bytes.toString('utf8');
  throw new AppError('INVALID_VALUE', `'${path}' is larger than ${FILE_BYTES_MAX} bytes`);
}

/** Package managers keep what they downloaded in the home folder, which outlives the job here. */
export function reportCache(call: BuiltInCall, name: string): void {
  call.run.outputs.set('cache-hit', 'false');
  const asked = inputOf(call.given, name);
  if (asked === '' || asked === 'false') return;
  call.run.log.say(`${name}: ${asked}: the cache of the user is used as it is`);
}

/** A folder of a job's tool, for a step to find: `bin` in front of PATH. */
export function addBin(call: BuiltInCall, dir: string): void {
  call.run.environment.addPath(join(dir, 'bin'));
}
