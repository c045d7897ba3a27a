import { lstatSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type ToolEnvironment, type Installed, installedPythons } from './installed-tools.ts';
import { type ClientEnvironment, type ClientOptions, mustRunClient } from './run-client.ts';
import { inScratch, isFolder, namesIn, type ToolCache } from './tool-cache.ts';
import { findOrGet, type ToolAtHand, type ToolKind } from './tool-source.ts';
import { prereleaseOf, semver, wishFor } from './tool-version.ts';
import type { UvTools } from './uv-tools.ts';
import type { ProbeAnswer, VersionProbe } from './version-probe.ts';

/** One without these, as distributions have it, can give no job a Python of its own. */
const PROBE =
  'import sys, ensurepip, venv, platform as p; print("@", p.python_implementation(), sys.version.split()[0])';

export type PythonToolsParts = {
  readonly cache: ToolCache;
  readonly uv: UvTools;
  readonly client: ClientEnvironment;
  readonly probe: VersionProbe;
  readonly environment: ToolEnvironment;
  readonly toolCaches: readonly string[];
  readonly refused: string | undefined;
};

type Download = {
  readonly version: string;
  readonly implementation: string;
  readonly variant?: string;
};

/** CPython. What is not here is got by uv, which knows the checksum of each build that it can get. */
export class PythonTools implements ToolKind {
  readonly title = 'Python';
  readonly #parts: PythonToolsParts;

  constructor(parts: PythonToolsParts) {
    this.#parts = parts;
  }

  installed(): readonly Installed[] {
    const { cache, environment, toolCaches } = this.#parts;
    const own = cache.versionsOf('python').map((version): Installed => {
      const prefix = cache.dirOf('python', version);
      return { version, prefix, program: join(prefix, 'bin/python3'), source: 'installed before' };
    });
    return [...own, ...installedPythons(environment, toolCaches)];
  }

  async probe(program: string): Promise<ProbeAnswer> {
    // Without what the user or an environment adds.
    return await this.#parts.probe.ask(program, ['-I', '-c', PROBE], (output) => {
      const [, implementation, version = ''] = /^@ (\S+) (\S+)$/m.exec(output) ?? [];
      return implementation === 'CPython' ? prereleaseOf(version.replace(/\+$/, '')) : undefined;
    });
  }

  whyNoInstall(): string | undefined {
    return this.#parts.refused;
  }

  async available(signal: AbortSignal | undefined): Promise<readonly string[]> {
    const choice = ['--all-versions', '--only-downloads', '--output-format', 'json'];
    const text = await this.#runUv(['python', 'list', ...choice], signal);
    return (JSON.parse(text) as readonly Download[])
      .filter(({ implementation }) => implementation === 'cpython')
      .filter(({ variant }) => variant === undefined || variant === 'default')
      .map(({ version }) => prereleaseOf(version))
      .filter((version) => semver().valid(version) !== null);
  }

  async install(version: string, signal: AbortSignal | undefined): Promise<ToolAtHand> {
    const { cache } = this.#parts;
    const make = async (staging: string): Promise<void> => {
      const pythons = join(staging, 'pythons');
      const name = version.replace(/-(?:alpha|beta|rc)\./, (mark) => MARKS[mark] ?? mark);
      const args = ['python', 'install', `cpython@${name}`, '--install-dir', pythons, '--force'];
      await this.#runUv(args, signal, { UV_PYTHON_INSTALL_BIN: '0' });
      // Beside it uv puts a link to it that names the minor version alone.
      const found = namesIn(pythons).find(
        (one) => lstatSync(join(pythons, one)).isDirectory() && isFolder(join(pythons, one, 'bin')),
      );
      if (found === undefined) throw new AppError('UPSTREAM_ERROR', `uv has put Python nowhere`);
      const whole = `${staging}.python`;
      await rename(join(pythons, found), whole);
      await rm(staging, { recursive: true });
      await rename(whole, staging);
    };
    const prefix = await cache.place('python', version, make, signal);
    return { version, prefix, program: join(prefix, 'bin/python3'), source: 'installed now' };
  }

  async #runUv(
    args: readonly string[],
    signal: AbortSignal | undefined,
    more: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { uv, cache, client } = this.#parts;
    // A newer uv knows newer Pythons.
    const wish = wishFor('*', '*', 'uv');
    const { program } = await findOrGet(uv, { wish, isLatestWanted: true, signal });
    return await inScratch(cache.root, async (dir) => {
      const own = { UV_CACHE_DIR: join(dir, 'cache'), UV_NO_CONFIG: '1', UV_NO_PROGRESS: '1' };
      const env = { ...client, ...own, UV_PYTHON_INSTALL_DIR: join(dir, 'pythons'), ...more };
      const options: ClientOptions = { cwd: dir, env, signal };
      return await mustRunClient(program, args, options);
    });
  }
}

const MARKS: Readonly<Record<string, string>> = { '-alpha.': 'a', '-beta.': 'b', '-rc.': 'rc' };
