import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type ToolEnvironment, type Installed, installedGos } from './installed-tools.ts';
import { type ClientEnvironment, type ClientOptions, mustRunClient } from './run-client.ts';
import { inScratch, type ToolCache } from './tool-cache.ts';
import type { ToolAtHand, ToolKind } from './tool-source.ts';
import { newestWish, prereleaseOf, semver, type VersionWish, wishFor } from './tool-version.ts';
import type { ProbeAnswer, VersionProbe } from './version-probe.ts';

const FIELD = 'go-version';

/**
 * What `go-version` asks for: `1.22` (its newest release), `1.22.3`, `1.23rc1`, a range, `stable`,
 * `oldstable`. `releases` are all there are, newest first, as semver; `oldstable` is the line before the
 * newest of them. Errors: INVALID_VALUE.
 */
export function goWish(text: string, releases: readonly string[] = []): VersionWish {
  const wanted = text.trim().replace(/^go(?=\d)/, '');
  if (wanted === 'stable' || wanted === 'latest') return newestWish(text);
  if (wanted === 'oldstable') return wishFor(text, oldLine(releases), FIELD);
  return wishFor(text, prereleaseOf(wanted), FIELD);
}

/** As semver: `go1.22` is 1.22.0, `go1.23rc1` is 1.23.0-rc.1. Undefined for what is no version. */
export function goSemver(version: string): string | undefined {
  const [, numbers, prerelease] = /^go(\d+(?:\.\d+){1,2})((?:beta|rc)\d+)?$/.exec(version) ?? [];
  if (numbers === undefined) return undefined;
  if (prerelease !== undefined) return prereleaseOf(`${numbers}${prerelease}`);
  return numbers.split('.').length === 2 ? `${numbers}.0` : numbers;
}

function oldLine(releases: readonly string[]): string {
  const [newest = '0.0.0'] = releases.filter((version) => !version.includes('-'));
  const [major = 0, minor = 0] = newest.split('.').map(Number);
  return `${major}.${minor - 1}.x`;
}

const MODULE = 'golang.org/toolchain';
/** The first whose go command can get toolchains: go.dev/doc/toolchain. */
const BOOTSTRAP_MIN = '1.21.0';
/** The first that knows -modcacherw: go.dev/doc/go1.14. */
const WRITABLE_FROM = '1.14.0';
/** Names of Go that differ from those of Node. */
const GO_ARCHS: ReadonlyMap<string, string> = new Map([
  ['x64', 'amd64'],
  ['ia32', '386'],
]);

export type GoToolsParts = {
  readonly cache: ToolCache;
  readonly client: ClientEnvironment;
  readonly probe: VersionProbe;
  readonly environment: ToolEnvironment;
  readonly toolCaches: readonly string[];
  readonly refused: string | undefined;
};

/**
 * Go, as the module proxy has it. Any Go from 1.21 on gets the others: it asks GOPROXY and compares what
 * came with the checksum database of GOSUMDB.
 */
export class GoTools implements ToolKind {
  readonly title = 'Go';
  readonly #parts: GoToolsParts;

  constructor(parts: GoToolsParts) {
    this.#parts = parts;
  }

  installed(): readonly Installed[] {
    const { cache, environment, toolCaches } = this.#parts;
    const own = cache.versionsOf('go').map((version): Installed => {
      const prefix = cache.dirOf('go', version);
      return { version, prefix, program: join(prefix, 'bin/go'), source: 'installed before' };
    });
    return [...own, ...installedGos(environment, toolCaches)];
  }

  async probe(program: string): Promise<ProbeAnswer> {
    const parse = (output: string): string | undefined =>
      goSemver(/^go version (go\S+)/m.exec(output)?.[1] ?? '');
    // Neither another Go's folder, nor a go.mod above, must answer instead; nor must the user's settings hold
    // flags that this one does not know, as an empty GOFLAGS would let them.
    const own = { GOROOT: '', GOTOOLCHAIN: 'local', GOFLAGS: '', GOWORK: 'off', GOENV: 'off' };
    return await this.#parts.probe.ask(program, ['version'], parse, own);
  }

  whyNoInstall(): string | undefined {
    return this.#parts.refused;
  }

  async available(signal: AbortSignal | undefined): Promise<readonly string[]> {
    const suffix = `.${systemName()}`;
    const text = await this.#inScratch(signal, async (options, dir) =>
      mustRunClient(
        await this.#bootstrap(),
        ['list', '-m', '-versions', `${MODULE}@v0.0.1-go1.21.0${suffix}`],
        { ...options, env: { ...options.env, GOMODCACHE: join(dir, 'mod') } },
      ),
    );
    return text.split(/\s+/).flatMap((version) => {
      const name = version.endsWith(suffix) ? version.slice('v0.0.1-'.length, -suffix.length) : '';
      return goSemver(name) ?? [];
    });
  }

  async install(version: string, signal: AbortSignal | undefined): Promise<ToolAtHand> {
    const { cache } = this.#parts;
    const make = async (staging: string): Promise<void> => {
      const bootstrap = await this.#bootstrap();
      await this.#inScratch(signal, async (options, dir) => {
        const mod = join(dir, 'mod');
        const name = goName(version);
        // Else Go closes the folders that it makes, so that they can be neither moved nor removed. What it got
        // is what answers in the end, and refuses a flag that it does not know; -v is one that all know, and
        // it goes before those of the user.
        const knowsFlag = semver().gte(version, WRITABLE_FROM);
        const own = {
          GOMODCACHE: mod,
          GOTOOLCHAIN: name,
          GOFLAGS: knowsFlag ? '-modcacherw' : '-v',
        };
        try {
          await mustRunClient(bootstrap, ['version'], {
            ...options,
            env: { ...options.env, ...own },
          });
        } finally {
          if (!knowsFlag) await openFolders(mod, options);
        }
        const root = join(mod, `${MODULE}@v0.0.1-${name}.${systemName()}`);
        if (!existsSync(join(root, 'bin/go'))) {
          throw new AppError('UPSTREAM_ERROR', `the toolchain of Go ${version} holds no bin/go`);
        }
        await rm(staging, { recursive: true });
        await rename(root, staging);
      });
    };
    const prefix = await cache.place('go', version, make, signal);
    return { version, prefix, program: join(prefix, 'bin/go'), source: 'installed now' };
  }

  async #bootstrap(): Promise<string> {
    for (const { program } of this.installed()) {
      const { version } = await this.probe(program);
      if (version !== undefined && semver().gte(version, BOOTSTRAP_MIN)) return program;
    }
    throw new AppError('UPSTREAM_ERROR', 'it takes some Go from 1.21 on to get another one');
  }

  async #inScratch<T>(
    signal: AbortSignal | undefined,
    use: (options: ClientOptions, dir: string) => Promise<T>,
  ): Promise<T> {
    const { cache, client } = this.#parts;
    return await inScratch(cache.root, (dir) => {
      const own = { GOPATH: join(dir, 'path'), GOCACHE: join(dir, 'build'), GOWORK: 'off' };
      const env = { ...client, GOTOOLCHAIN: 'local', GOFLAGS: '', GO111MODULE: 'on', ...own };
      return use({ cwd: dir, env, signal }, dir);
    });
  }
}

/** Gives its owner the right to change the folders below `dir` that Go closed; their files stay as they are. */
async function openFolders(dir: string, { cwd, env }: ClientOptions): Promise<void> {
  const args = [dir, '-type', 'd', '-exec', 'chmod', 'u+w', '{}', '+'];
  // Without the signal: a step that was stopped leaves nothing either.
  if (existsSync(dir)) await mustRunClient('find', args, { cwd, env });
}

/** 1.22.5 is go1.22.5; 1.20.0 was go1.20, as all before 1.21 without a third number; 1.23.0-rc.1 is go1.23rc1. */
function goName(version: string): string {
  const parsed = semver().parse(version);
  if (parsed === null) return `go${version}`;
  const { major, minor, patch, prerelease } = parsed;
  const [stage, count] = prerelease;
  const isShort = patch === 0 && (minor < 21 || stage !== undefined);
  const numbers = isShort ? `${major}.${minor}` : `${major}.${minor}.${patch}`;
  return `go${numbers}${stage === undefined ? '' : `${stage}${count ?? ''}`}`;
}

function systemName(): string {
  return `${platform()}-${GO_ARCHS.get(arch()) ?? arch()}`;
}
