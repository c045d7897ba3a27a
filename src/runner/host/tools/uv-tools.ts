import { existsSync } from 'node:fs';
import { chmod, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type ToolEnvironment, type Installed, installedUvs } from './installed-tools.ts';
import type { PipClient } from './pip-client.ts';
import { inScratch, type ToolCache } from './tool-cache.ts';
import type { ToolAtHand, ToolKind } from './tool-source.ts';
import { semver } from './tool-version.ts';
import type { ProbeAnswer, VersionProbe } from './version-probe.ts';

export type UvToolsParts = {
  readonly cache: ToolCache;
  readonly pip: PipClient;
  readonly probe: VersionProbe;
  readonly environment: ToolEnvironment;
  readonly toolCaches: readonly string[];
  readonly refused: string | undefined;
};

/** uv, as its wheel has it. */
export class UvTools implements ToolKind {
  readonly title = 'uv';
  readonly #parts: UvToolsParts;

  constructor(parts: UvToolsParts) {
    this.#parts = parts;
  }

  installed(): readonly Installed[] {
    const { cache, environment, toolCaches } = this.#parts;
    const own = cache.versionsOf('uv').map((version): Installed => {
      const prefix = cache.dirOf('uv', version);
      return { version, prefix, program: join(prefix, 'uv'), source: 'installed before' };
    });
    return [...own, ...installedUvs(environment, toolCaches)];
  }

  async probe(program: string): Promise<ProbeAnswer> {
    return await this.#parts.probe.ask(
      program,
      ['--version'],
      (output) => /^uv (\d+\.\d+\.\d+\S*)/m.exec(output)?.[1],
    );
  }

  whyNoInstall(): string | undefined {
    return this.#parts.refused;
  }

  async available(signal: AbortSignal | undefined): Promise<readonly string[]> {
    const { cache, pip } = this.#parts;
    const versions = await inScratch(cache.root, (dir) => pip.versionsOf('uv', { dir, signal }));
    return versions.filter((version) => semver().valid(version) !== null);
  }

  async install(version: string, signal: AbortSignal | undefined): Promise<ToolAtHand> {
    const { cache, pip } = this.#parts;
    const make = (staging: string): Promise<void> =>
      inScratch(cache.root, async (dir) => {
        await pip.unpack(`uv==${version}`, join(dir, 'wheel'), { dir, signal });
        const scripts = join(dir, 'wheel', `uv-${version}.data/scripts`);
        for (const name of existsSync(scripts) ? await readdir(scripts) : []) {
          await rename(join(scripts, name), join(staging, name));
          await chmod(join(staging, name), 0o755);
        }
        if (!existsSync(join(staging, 'uv'))) {
          throw new AppError('UPSTREAM_ERROR', `the wheel of uv ${version} holds no program`);
        }
      });
    const prefix = await cache.place('uv', version, make, signal);
    return { version, prefix, program: join(prefix, 'uv'), source: 'installed now' };
  }
}
