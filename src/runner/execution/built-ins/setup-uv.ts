import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { copyTree } from '../../host/tools/run-client.ts';
import { findOrGet, type ToolAtHand } from '../../host/tools/tool-source.ts';
import {
  newestWish,
  pythonRange,
  type VersionWish,
  wishFor,
} from '../../host/tools/tool-version.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import { inputOf } from '../steps/step-input.ts';
import { judgeExit, runStepProcess } from '../steps/step-process.ts';
import { processEnvironment } from '../steps/step-variables.ts';
import { type BuiltInCall, flagOf, pathOf } from './built-in-call.ts';
import { askedVersions, mustToolRegistry, progressOf, reportCache } from './tool-request.ts';

/**
 * astral-sh/setup-uv: the uv asked for by input, `uv.toml` or pyproject.toml, else the newest that can be
 * had. `python-version` becomes UV_PYTHON, `activate-environment` makes a virtual environment.
 * Errors: NOT_FOUND, which says what is here instead.
 */
export async function runSetupUv(call: BuiltInCall): Promise<boolean> {
  const { given, run, frame } = call;
  const usual = ['uv.toml', 'pyproject.toml'];
  const inputs = { version: 'version', file: 'version-file', usual };
  const { versions, from } = await askedVersions(call, 'uv', inputs);
  if (inputOf(given, 'checksum') !== '') {
    const text = 'it is of an archive that is not what is installed here: leave it out';
    throw new AppError('INVALID_VALUE', `checksum: ${text}`, { field: 'checksum' });
  }
  reportCache(call, 'enable-cache');
  const [asked] = versions;
  const registry = mustToolRegistry(call);
  const tool = await toolFor(call, asked);
  const { isolation } = frame.job.request;
  const dir =
    isolation === undefined
      ? tool.prefix
      : await layForJob(frame.job, `uv-${tool.version}`, (making) => copyTree(tool.prefix, making));
  // A folder of the system holds other programs, too: what is in front of the PATH is uv alone.
  const bin =
    isolation === undefined && !tool.prefix.startsWith(registry.cache.root)
      ? await layForJob(frame.job, `uv-${tool.version}`, (making) => aloneIn(tool, making))
      : dir;
  run.environment.addPath(bin);
  const python = inputOf(given, 'python-version');
  if (python !== '') run.environment.set('UV_PYTHON', python);
  run.log.say(
    `uv ${tool.version} (${tool.source})${asked === undefined ? '' : `, for ${asked} of ${from}`}`,
  );
  run.outputs.set('uv-version', tool.version);
  run.outputs.set('uv-path', join(bin, 'uv'));
  run.outputs.set('uvx-path', join(bin, 'uvx'));
  return flagOf(call, 'activate-environment')
    ? await activate(call, join(bin, 'uv'), python)
    : true;
}

async function toolFor(call: BuiltInCall, asked: string | undefined): Promise<ToolAtHand> {
  const { uv } = mustToolRegistry(call);
  const wish = asked === undefined ? wishFor('*', '*', 'version') : uvWish(asked);
  return await findOrGet(uv, {
    wish,
    isLatestWanted: asked === undefined,
    ...progressOf(call.run),
  });
}

/** A version or range of semver, or one of PEP 440, as `required-version` has it. */
function uvWish(text: string): VersionWish {
  const wanted = text.trim();
  if (wanted === 'latest') return newestWish(text);
  if (!/[,!]|~=|==/.test(wanted)) return wishFor(text, wanted, 'version');
  const { range, excluded } = pythonRange(wanted);
  return { ...wishFor(text, range, 'version'), excluded };
}

async function aloneIn({ program }: ToolAtHand, making: string): Promise<void> {
  await copyTree(program, join(making, 'uv'));
  await copyTree(program.replace(/uv$/, 'uvx'), join(making, 'uvx'));
}

async function activate(call: BuiltInCall, uv: string, python: string): Promise<boolean> {
  const { run, frame, step, given } = call;
  const { job } = frame;
  const venv = pathOf(call, inputOf(given, 'venv-path', '.venv'));
  const exit = await runStepProcess(job, run, {
    file: uv,
    args: ['venv', venv, ...(python === '' ? [] : ['--python', python])],
    cwd: job.folders.workspace,
    env: processEnvironment(job, run.environment, step.env, step.github, {}),
  });
  if (!judgeExit(run, uv, exit)) return false;
  run.environment.set('VIRTUAL_ENV', venv);
  run.environment.addPath(join(venv, 'bin'));
  run.outputs.set('venv', venv);
  return true;
}
