import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { layPython } from '../../host/tools/lay-python.ts';
import { pythonWish } from '../../host/tools/python-version.ts';
import { refuseOtherArchitecture, type ToolRegistry } from '../../host/tools/tool-registry.ts';
import { findOrGet } from '../../host/tools/tool-source.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, flagOf } from './built-in-call.ts';
import {
  addBin,
  askedVersions,
  mustToolRegistry,
  progressOf,
  reportCache,
} from './tool-request.ts';

/**
 * actions/setup-python: CPython in the versions asked for, found on this machine or installed, as the job's
 * own; the first of several is the one that `python` means. Errors: NOT_FOUND, which says what is here instead.
 */
export async function runSetupPython(call: BuiltInCall): Promise<boolean> {
  const { given, run } = call;
  refuseOtherArchitecture(inputOf(given, 'architecture'));
  if (flagOf(call, 'freethreaded')) {
    throw new AppError('INVALID_VALUE', 'freethreaded: such a Python cannot be had', {
      field: 'freethreaded',
    });
  }
  const usual = ['.python-version'];
  const inputs = { version: 'python-version', file: 'python-version-file', usual };
  const { versions, from } = await askedVersions(call, 'python', inputs);
  reportCache(call, 'cache');
  if (versions.length === 0) {
    run.log.warn('No version is asked for: steps use the Python that they find on this host');
    return true;
  }
  const registry = mustToolRegistry(call);
  const made: { readonly version: string; readonly dir: string }[] = [];
  for (const asked of versions) made.push(await oneVersion(call, registry, asked, from));
  const [first] = made;
  if (first === undefined) return true;
  if (flagOf(call, 'update-environment', true)) {
    // The last one added stands first.
    for (const { dir } of made.toReversed()) addBin(call, dir);
    setVariables(call, first.dir);
  }
  run.outputs.set('python-version', first.version);
  run.outputs.set('python-path', join(first.dir, 'bin/python'));
  return true;
}

async function oneVersion(
  call: BuiltInCall,
  registry: ToolRegistry,
  asked: string,
  from: string,
): Promise<{ readonly version: string; readonly dir: string }> {
  const { run, frame } = call;
  const wish = pythonWish(asked, flagOf(call, 'allow-prereleases'));
  const isLatestWanted = flagOf(call, 'check-latest');
  const tool = await findOrGet(registry.python, { wish, isLatestWanted, ...progressOf(run) });
  const dir = await layForJob(frame.job, `python-${tool.version}`, (making, final) =>
    layPython(tool, { making, final }, run.signal),
  );
  run.log.say(`Python ${tool.version} (${tool.source}), for ${asked} of ${from}`);
  return { version: tool.version, dir };
}

/** As the action does, so that build tools find it. */
function setVariables({ run, frame }: BuiltInCall, dir: string): void {
  const { environment } = run;
  for (const name of [
    'pythonLocation',
    'Python_ROOT_DIR',
    'Python2_ROOT_DIR',
    'Python3_ROOT_DIR',
  ]) {
    environment.set(name, dir);
  }
  environment.set('PKG_CONFIG_PATH', join(dir, 'lib/pkgconfig'));
  const before =
    environment.values['LD_LIBRARY_PATH'] ?? frame.job.baseVariables['LD_LIBRARY_PATH'];
  const library = join(dir, 'lib');
  environment.set('LD_LIBRARY_PATH', before === undefined ? library : `${library}:${before}`);
}
