import { existsSync, mkdirSync, symlinkSync, chmodSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { AppError } from '../../../shared/app-error.ts';
import { copyTree } from '../../host/tools/run-client.ts';
import type { ToolRegistry } from '../../host/tools/tool-registry.ts';
import {
  pickVersion,
  newestWish,
  type VersionWish,
  wishFor,
} from '../../host/tools/tool-version.ts';
import { at } from '../../host/tools/version-files.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import { inputOf } from '../steps/step-input.ts';
import { judgeExit, runStepProcess } from '../steps/step-process.ts';
import { processEnvironment } from '../steps/step-variables.ts';
import { mustWorkingFolder } from '../steps/working-folder.ts';
import { type BuiltInCall, pathOf } from './built-in-call.ts';
import { mustToolRegistry, readJobFile, reportCache } from './tool-request.ts';

type Install = { readonly args: readonly string[]; readonly cwd: string };

/**
 * pnpm/action-setup: the pnpm of `version`, else of `packageManager` in package.json, whose checksum then
 * counts. It runs on the Node that steps find. `run_install` installs packages. Errors: NOT_FOUND.
 */
export async function runSetupPnpm(call: BuiltInCall): Promise<boolean> {
  const { run, frame } = call;
  const asked = await askedPnpm(call);
  reportCache(call, 'cache');
  const registry = mustToolRegistry(call);
  const version = await versionFor(call, registry, asked);
  const dir = await layForJob(frame.job, `pnpm-${version}`, async (making) => {
    const from = await packageDir(call, registry, version, asked.integrity);
    await copyTree(from, join(making, 'lib/pnpm'));
    mkdirSync(join(making, 'bin'), { mode: 0o755 });
    for (const [name, file] of [
      ['pnpm', 'pnpm'],
      ['pnpx', 'pnpx'],
    ] as const) {
      const program = ['mjs', 'cjs']
        .map((end) => `${file}.${end}`)
        .find((one) => existsSync(join(making, 'lib/pnpm/bin', one)));
      if (program === undefined) continue;
      chmodSync(join(making, 'lib/pnpm/bin', program), 0o755);
      symlinkSync(join('../lib/pnpm/bin', program), join(making, 'bin', name));
    }
  });
  const bin = join(dir, 'bin');
  run.environment.addPath(bin);
  run.environment.set('PNPM_HOME', bin);
  run.log.say(`pnpm ${version}, for ${asked.wish.text}`);
  run.outputs.set('dest', dir);
  run.outputs.set('bin_dest', bin);
  for (const install of installsOf(call)) {
    if (!(await runInstall(call, join(bin, 'pnpm'), install))) return false;
  }
  return true;
}

type AskedVersion = { readonly wish: VersionWish; readonly integrity?: string | undefined };

async function askedPnpm(call: BuiltInCall): Promise<AskedVersion> {
  const given = inputOf(call.given, 'version');
  const file = inputOf(call.given, 'package_json_file', 'package.json');
  const path = pathOf(call, file);
  const json: unknown = existsSync(path) ? parse(await readJobFile(call, path)) : undefined;
  const manager = at(json, 'packageManager');
  const [, named, algorithm, digest] =
    /^pnpm@([^+]+)(?:\+(sha\d+)\.([0-9a-f]+))?$/.exec(typeof manager === 'string' ? manager : '') ??
    [];
  if (given !== '' && named !== undefined && given !== named) {
    const text = `Multiple versions of pnpm specified: ${given} by version, ${named} by packageManager of ${file}`;
    throw new AppError('INVALID_VALUE', text, { field: 'version' });
  }
  const engine = [at(json, 'devEngines', 'packageManager')]
    .flat()
    .find((one) => at(one, 'name') === 'pnpm');
  const fromEngine = at(engine, 'version');
  const wanted = named ?? (given === '' ? fromEngine : given);
  if (typeof wanted !== 'string') {
    const text = `No pnpm version is specified: neither by version nor by packageManager of ${file}`;
    throw new AppError('INVALID_VALUE', text, { field: 'version' });
  }
  const integrity =
    algorithm === undefined || digest === undefined
      ? undefined
      : `${algorithm}-${Buffer.from(digest, 'hex').toString('base64')}`;
  const wish = wanted === 'latest' ? newestWish(wanted) : wishFor(wanted, wanted, 'version');
  return { wish, integrity };
}

async function versionFor(
  call: BuiltInCall,
  registry: ToolRegistry,
  { wish }: AskedVersion,
): Promise<string> {
  const here = registry.cache.versionsOf('pnpm');
  // The registry may have a newer one, but what is here is what was asked for.
  const known = wish.isNewest ? undefined : pickVersion(here, wish);
  if (known !== undefined) return known;
  const refused = registry.refused ?? registry.npm.whyNot;
  const list = here.length === 0 ? 'none' : here.join(', ');
  const prefix = `pnpm '${wish.text}' is not to be had. Here: ${list}. It cannot be installed: `;
  if (refused !== undefined)
    throw new AppError('NOT_FOUND', prefix + refused, { field: 'version' });
  try {
    const place = { signal: call.run.signal };
    const found = pickVersion(
      await registry.withScratch((dir) => registry.npm.versionsOf('pnpm', { dir, ...place })),
      wish,
    );
    if (found !== undefined) return found;
  } catch (error) {
    if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
    throw new AppError('NOT_FOUND', prefix + error.message, { field: 'version' }, error);
  }
  throw new AppError('NOT_FOUND', `${prefix}the registry has none either`, { field: 'version' });
}

/** One that a checksum of the project is for is kept by it: another project may name another. */
async function packageDir(
  call: BuiltInCall,
  registry: ToolRegistry,
  version: string,
  integrity: string | undefined,
): Promise<string> {
  const { signal } = call.run;
  const make = (staging: string): Promise<void> =>
    registry.withScratch(async (dir) => {
      call.run.log.say(`Installing pnpm ${version}`);
      await rm(staging, { recursive: true, force: true });
      await registry.npm.unpack({ name: 'pnpm', version }, staging, { dir, signal }, integrity);
    });
  if (integrity === undefined) return await registry.cache.place('pnpm', version, make, signal);
  const digest = Buffer.from(integrity).toString('hex').slice(-24);
  return await registry.cache.place('pnpm-checked', `${version}-${digest}`, make, signal);
}

/** `run_install`: true, null, one object or a list of `{recursive, cwd, args}`. Errors: INVALID_VALUE. */
function installsOf(call: BuiltInCall): Install[] {
  const text = inputOf(call.given, 'run_install');
  if (text === '') return [];
  const value: unknown = parse(text);
  if (value === null || value === false) return [];
  const all: unknown[] = value === true ? [{}] : [value].flat();
  return all.map((one) => {
    const [recursive, cwd, args] = [at(one, 'recursive'), at(one, 'cwd'), at(one, 'args')];
    if (typeof one !== 'object' || (args !== undefined && !Array.isArray(args))) {
      throw new AppError('INVALID_VALUE', 'run_install: is neither true nor a list of installs', {
        field: 'run_install',
      });
    }
    const words = Array.isArray(args) ? args.map(String) : [];
    return {
      args: [...(recursive === true ? ['recursive'] : []), 'install', ...words],
      cwd: typeof cwd === 'string' ? cwd : '.',
    };
  });
}

async function runInstall(
  call: BuiltInCall,
  pnpm: string,
  { args, cwd }: Install,
): Promise<boolean> {
  const { run, frame, step } = call;
  const { job } = frame;
  const env = processEnvironment(job, run.environment, step.env, step.github, {});
  const folder = mustWorkingFolder(job, pathOf(call, cwd));
  const exit = await runStepProcess(job, run, { file: pnpm, args, cwd: folder, env });
  return judgeExit(run, 'pnpm', exit);
}
