import { existsSync, realpathSync } from 'node:fs';
import { arch, homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { isProgram } from './run-client.ts';
import { isFolder, namesIn } from './tool-cache.ts';

/** A tool that is on this machine, as its place says; whether it is what it claims is tried later. */
export type Installed = {
  /** What its folder is named, as semver; undefined where only the program knows. */
  readonly version: string | undefined;
  readonly program: string;
  /** The folder that holds `bin/`. */
  readonly prefix: string;
  /** For people: `nvm`, `PATH`… */
  readonly source: string;
};

export type ToolEnvironment = Readonly<Record<string, string | undefined>>;

type Folder = {
  readonly source: string;
  /** Holds a folder for each version. */
  readonly dir: string;
  /** From the folder of a version to the one that holds `bin/`. */
  readonly inner: string;
};

/** Names of this machine in the hosted tool cache. */
const HOSTED_ARCH = arch();

/** Nodes by nvm, fnm, mise, asdf, volta, n, in hosted tool caches and on the PATH. */
export function installedNodes(
  environment: ToolEnvironment,
  toolCaches: readonly string[],
): Installed[] {
  const { home, data } = placesOf(environment);
  const at = (name: string, fallback: string): string => given(environment, name) ?? fallback;
  const mise = at('MISE_DATA_DIR', join(data, 'mise'));
  const folders: Folder[] = [
    ...hosted(toolCaches, 'node'),
    { source: 'nvm', dir: join(at('NVM_DIR', join(home, '.nvm')), 'versions/node'), inner: '' },
    {
      source: 'fnm',
      dir: join(at('FNM_DIR', join(data, 'fnm')), 'node-versions'),
      inner: 'installation',
    },
    { source: 'fnm', dir: join(home, '.fnm/node-versions'), inner: 'installation' },
    { source: 'mise', dir: join(mise, 'installs/node'), inner: '' },
    {
      source: 'asdf',
      dir: join(at('ASDF_DATA_DIR', join(home, '.asdf')), 'installs/nodejs'),
      inner: '',
    },
    {
      source: 'volta',
      dir: join(at('VOLTA_HOME', join(home, '.volta')), 'tools/image/node'),
      inner: '',
    },
  ];
  return [...inFolders(folders, 'node'), ...onPath(environment, ['node'])];
}

/** CPython by pyenv, mise, asdf, uv, in hosted tool caches and on the PATH. */
export function installedPythons(
  environment: ToolEnvironment,
  toolCaches: readonly string[],
): Installed[] {
  const { home, data } = placesOf(environment);
  const at = (name: string, fallback: string): string => given(environment, name) ?? fallback;
  const folders: Folder[] = [
    ...hosted(toolCaches, 'Python'),
    { source: 'pyenv', dir: join(at('PYENV_ROOT', join(home, '.pyenv')), 'versions'), inner: '' },
    {
      source: 'mise',
      dir: join(at('MISE_DATA_DIR', join(data, 'mise')), 'installs/python'),
      inner: '',
    },
    {
      source: 'asdf',
      dir: join(at('ASDF_DATA_DIR', join(home, '.asdf')), 'installs/python'),
      inner: '',
    },
    { source: 'uv', dir: at('UV_PYTHON_INSTALL_DIR', join(data, 'uv/python')), inner: '' },
  ];
  const minors = Array.from({ length: 12 }, (_, index) => `python3.${index + 6}`);
  const found = inFolders(folders, 'python3').filter(({ prefix }) => !isVirtual(prefix));
  return [...found, ...onPath(environment, [...minors.toReversed(), 'python3', 'python'])];
}

/** Go by mise, goenv, asdf, golang.org/dl, the go command itself, in hosted tool caches and on the PATH. */
export function installedGos(
  environment: ToolEnvironment,
  toolCaches: readonly string[],
): Installed[] {
  const { home, data } = placesOf(environment);
  const at = (name: string, fallback: string): string => given(environment, name) ?? fallback;
  const modules = at('GOMODCACHE', join(at('GOPATH', join(home, 'go')), 'pkg/mod'));
  const folders: Folder[] = [
    ...hosted(toolCaches, 'go'),
    {
      source: 'mise',
      dir: join(at('MISE_DATA_DIR', join(data, 'mise')), 'installs/go'),
      inner: '',
    },
    { source: 'goenv', dir: join(at('GOENV_ROOT', join(home, '.goenv')), 'versions'), inner: '' },
    {
      source: 'asdf',
      dir: join(at('ASDF_DATA_DIR', join(home, '.asdf')), 'installs/golang'),
      inner: 'go',
    },
    { source: 'sdk', dir: join(home, 'sdk'), inner: '' },
    { source: 'go', dir: join(modules, 'golang.org'), inner: '' },
  ];
  return [
    ...inFolders(folders, 'go'),
    ...atPrefix('/usr/local/go', 'go'),
    ...onPath(environment, ['go']),
  ];
}

/** uv by mise, in hosted tool caches and on the PATH. */
export function installedUvs(
  environment: ToolEnvironment,
  toolCaches: readonly string[],
): Installed[] {
  const { data } = placesOf(environment);
  const mise = given(environment, 'MISE_DATA_DIR') ?? join(data, 'mise');
  const folders: Folder[] = [{ source: 'mise', dir: join(mise, 'installs/uv'), inner: '' }];
  const direct: Installed[] = [];
  for (const { dir, source } of [...hosted(toolCaches, 'uv'), ...folders]) {
    for (const name of namesIn(dir)) {
      for (const inner of ['', 'bin', hostedUvArch()]) {
        const program = join(dir, name, inner, 'uv');
        const prefix = dirname(program);
        if (isProgram(program)) direct.push({ version: versionIn(name), program, prefix, source });
      }
    }
  }
  return [...direct, ...onPath(environment, ['uv'])];
}

function hostedUvArch(): string {
  return HOSTED_ARCH === 'arm64' ? 'aarch64' : 'x86_64';
}

/** What the runner that GitHub hosts, or one of one's own, keeps of the setup actions. */
function hosted(toolCaches: readonly string[], tool: string): Folder[] {
  return toolCaches.map((dir) => ({
    source: 'tool cache',
    dir: join(dir, tool),
    inner: HOSTED_ARCH,
  }));
}

function atPrefix(prefix: string, program: string): Installed[] {
  const path = join(prefix, 'bin', program);
  if (!isProgram(path)) return [];
  return [{ version: undefined, program: path, prefix, source: prefix }];
}

function inFolders(folders: readonly Folder[], program: string): Installed[] {
  const found: Installed[] = [];
  for (const { source, dir, inner } of folders) {
    for (const name of namesIn(dir)) {
      const prefix = join(dir, name, inner);
      const path = join(prefix, 'bin', program);
      if (!isProgram(path)) continue;
      found.push({ version: versionIn(name), program: path, prefix, source });
    }
  }
  return found;
}

function onPath(environment: ToolEnvironment, programs: readonly string[]): Installed[] {
  const found: Installed[] = [];
  const seen = new Set<string>();
  for (const folder of (environment['PATH'] ?? '').split(delimiter)) {
    if (folder === '') continue;
    for (const name of programs) {
      const path = join(folder, name);
      // A shim of a version manager decides by the folder that it is started in.
      if (!isProgram(path) || /\/(?:shims|\.volta\/bin)$/.test(folder)) continue;
      const program = realpathSync(path);
      if (seen.has(program)) continue;
      seen.add(program);
      const prefix = dirname(dirname(program));
      found.push({ version: undefined, program, prefix, source: 'PATH' });
    }
  }
  return found;
}

/** `v20.1.0`, `20.1.0`, `go1.22.3`, `cpython-3.12.1-linux…`, `toolchain@v0.0.1-go1.22.5.linux-amd64`. */
function versionIn(name: string): string | undefined {
  const text = /(?:-go|^go|^v|^cpython-|^)(\d+\.\d+(?:\.\d+)?)(?:[.-].*)?$/.exec(
    name.replace(/^toolchain@v0\.0\.1/, ''),
  )?.[1];
  if (text === undefined) return undefined;
  return text.split('.').length === 2 ? `${text}.0` : text;
}

function isVirtual(prefix: string): boolean {
  return existsSync(join(prefix, 'pyvenv.cfg'));
}

function given(environment: ToolEnvironment, name: string): string | undefined {
  const value = environment[name];
  return value === undefined || value === '' ? undefined : value;
}

function placesOf(environment: ToolEnvironment): { readonly home: string; readonly data: string } {
  const home = given(environment, 'HOME') ?? homedir();
  return { home, data: given(environment, 'XDG_DATA_HOME') ?? join(home, '.local/share') };
}

/** Hosted tool caches of this machine. */
export function toolCachesOf(environment: ToolEnvironment): string[] {
  const names = ['AGENT_TOOLSDIRECTORY', 'RUNNER_TOOL_CACHE'];
  const set = names.flatMap((name) => given(environment, name) ?? []);
  return [...new Set([...set, '/opt/hostedtoolcache'])].filter(isFolder);
}
