import { parse as parseToml } from 'smol-toml';
import { AppError } from '../../../shared/app-error.ts';

/** A kind of tool, by the names that version files have for it. */
export type VersionedTool = 'node' | 'python' | 'go' | 'uv' | 'pnpm';

const TOOL_VERSIONS_NAMES: Readonly<Record<VersionedTool, readonly string[]>> = {
  node: ['nodejs', 'node'],
  python: ['python'],
  go: ['golang', 'go'],
  uv: ['uv'],
  pnpm: ['pnpm'],
};

/**
 * The versions that a file names for a tool, by the kind of file that its name says. None when it names
 * none. `options.prefersToolchain`: of a go.mod, its `toolchain` before its `go`.
 * Errors: INVALID_VALUE for a file that cannot be understood.
 */
export function versionsInFile(
  tool: VersionedTool,
  path: string,
  text: string,
  options: { readonly prefersToolchain?: boolean | undefined } = {},
): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (name === '.tool-versions') return fromToolVersions(tool, text);
  if (/^\.?mise(?:\..+)?\.toml$/.test(name)) return fromMise(tool, path, text);
  if (tool === 'node' && name === 'package.json') return fromPackageJson(path, text);
  if (tool === 'go' && /^go\.(?:mod|work)$/.test(name)) {
    return fromGoMod(text, options.prefersToolchain === true);
  }
  if (tool === 'python' && name.endsWith('.toml')) return fromPyproject(path, text);
  if (tool === 'python' && name === 'Pipfile') {
    const full = fromToml(path, text, 'requires', 'python_full_version');
    return full.length > 0 ? full : fromToml(path, text, 'requires', 'python_version');
  }
  if (tool === 'uv' && name.endsWith('.toml')) return fromUvSettings(path, text);
  return plainLines(text).slice(0, tool === 'python' ? undefined : 1);
}

/** `.nvmrc`, `.node-version`, `.python-version`, `.go-version`. */
function plainLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/#.*$/, '').trim())
    .filter((line) => line !== '');
}

function fromToolVersions(tool: VersionedTool, text: string): string[] {
  for (const line of plainLines(text)) {
    const [name = '', ...versions] = line.split(/\s+/);
    if (TOOL_VERSIONS_NAMES[tool].includes(name)) return versions.slice(0, 1);
  }
  return [];
}

/** In the order in which actions/setup-node looks. */
function fromPackageJson(path: string, text: string): string[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new AppError(
      'INVALID_VALUE',
      `${path} is no JSON`,
      { field: 'node-version-file' },
      error,
    );
  }
  const runtimes = [at(json, 'devEngines', 'runtime')].flat();
  const runtime = runtimes.find((one) => at(one, 'name') === 'node');
  const found = [at(json, 'volta', 'node'), at(runtime, 'version'), at(json, 'engines', 'node')];
  const version = found.find((one) => typeof one === 'string' && one !== '');
  return typeof version === 'string' ? [version] : [];
}

function fromGoMod(text: string, prefersToolchain: boolean): string[] {
  const toolchain = /^toolchain go(\S+)/m.exec(text)?.[1];
  const go = /^go (\d+(?:\.\d+)*(?:(?:rc|beta)\d+)?)/m.exec(text)?.[1];
  const version = prefersToolchain ? (toolchain ?? go) : go;
  return version === undefined ? [] : [version];
}

function fromPyproject(path: string, text: string): string[] {
  const project = fromToml(path, text, 'project', 'requires-python');
  if (project.length > 0) return project;
  return fromToml(path, text, 'tool', 'poetry', 'dependencies', 'python');
}

function fromMise(tool: VersionedTool, path: string, text: string): string[] {
  for (const name of TOOL_VERSIONS_NAMES[tool]) {
    const found = fromToml(path, text, 'tools', name);
    if (found.length > 0) return found;
  }
  return [];
}

/** uv.toml, or the table of uv in pyproject.toml. */
function fromUvSettings(path: string, text: string): string[] {
  const table = path.endsWith('pyproject.toml') ? ['tool', 'uv'] : [];
  return fromToml(path, text, ...table, 'required-version');
}

/** The text, or the first of a list of texts, at `keys` of a TOML file. Errors: INVALID_VALUE. */
function fromToml(path: string, text: string, ...keys: readonly string[]): string[] {
  let document: unknown;
  try {
    document = parseToml(text);
  } catch (error) {
    throw new AppError('INVALID_VALUE', `${path} is no TOML`, { field: 'version-file' }, error);
  }
  const found = at(document, ...keys);
  const [value] = Array.isArray(found) ? (found as readonly unknown[]) : [found];
  const version = typeof value === 'object' ? at(value, 'version') : value;
  return typeof version === 'string' && version !== '' ? [version] : [];
}

/** A property of a property of any JSON. */
export function at(json: unknown, ...path: readonly string[]): unknown {
  let value = json;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}
