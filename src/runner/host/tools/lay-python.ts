import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { copyTree, mustRunClient, runClient } from './run-client.ts';
import { isFolder, namesIn } from './tool-cache.ts';
import type { ToolAtHand } from './tool-source.ts';

const PIP_TIMEOUT_MS = 120_000;
const SHEBANG_BYTES = 512;
/** What a new Python has in `bin/`. */
const OWN_SCRIPTS = /^(?:pip|wheel|2to3|idle|pydoc|python)[\d.-]*(?:config|gdb\.py)?$/;
/** What a new Python has; all else was installed by somebody. */
const OWN_PACKAGES =
  /^(?:pip|setuptools|wheel)(?:-.*)?$|^(?:_distutils_hack|pkg_resources|distutils-precedence\.pth|README\.txt)$/;
/** Within its own tests: what those of others import. */
const TEST_PARTS: readonly string[] = ['__init__.py', 'support', 'libregrtest'];

/**
 * Makes `dir` a Python that belongs to one job, which installs packages into it: a copy of `tool` with the
 * packages that a new one has. One that lives in a folder of the system is the base of a virtual
 * environment instead. Errors: UPSTREAM_ERROR when it can be neither. Cost: a copy of about 100 MB, or
 * clones where the file system can.
 */
export async function layPython(
  tool: ToolAtHand,
  { making: dir, final }: { readonly making: string; readonly final: string },
  signal: AbortSignal | undefined,
): Promise<void> {
  const line = tool.version.split('.').slice(0, 2).join('.');
  const name = `python${line}`;
  const library = join(tool.prefix, 'lib', name);
  const isOwnFolder = !/^\/(?:usr(?:\/local)?)?$/.test(tool.prefix);
  if (isOwnFolder && isFolder(library) && existsSync(join(tool.prefix, 'bin', name))) {
    await copyPython(tool, dir, name);
  } else {
    await makeEnvironment(tool, dir, signal);
  }
  for (const alias of ['python', 'python3']) {
    if (!existsSync(join(dir, 'bin', alias))) symlinkSync(name, join(dir, 'bin', alias));
  }
  await ensurePip(dir, signal);
  ownScripts([tool.prefix, dir], dir, final);
}

async function copyPython({ prefix }: ToolAtHand, dir: string, name: string): Promise<void> {
  const library = join('lib', name);
  mkdirSync(join(dir, library, 'site-packages'), { recursive: true, mode: 0o755 });
  for (const part of readdirSync(prefix)) {
    if (part !== 'lib') await copyTree(join(prefix, part), join(dir, part));
  }
  for (const part of readdirSync(join(prefix, 'lib'))) {
    if (part !== name) await copyTree(join(prefix, 'lib', part), join(dir, 'lib', part));
  }
  for (const part of readdirSync(join(prefix, library))) {
    const from = join(prefix, library, part);
    // Packages may be installed into this copy: it is nobody's but the job's.
    if (part === 'site-packages' || part === 'test' || part === 'EXTERNALLY-MANAGED') continue;
    await copyTree(from, join(dir, library, part));
  }
  const packages = join(library, 'site-packages');
  for (const part of namesIn(join(prefix, packages))) {
    if (OWN_PACKAGES.test(part)) {
      await copyTree(join(prefix, packages, part), join(dir, packages, part));
    }
  }
  for (const part of TEST_PARTS) {
    const from = join(prefix, library, 'test', part);
    if (existsSync(from)) await copyTree(from, join(dir, library, 'test', part));
  }
  await removeForeignScripts(join(dir, 'bin'), prefix);
}

/** Programs of packages that stayed behind. */
async function removeForeignScripts(bin: string, prefix: string): Promise<void> {
  for (const name of readdirSync(bin)) {
    if (OWN_SCRIPTS.test(name)) continue;
    const start = headOf(join(bin, name));
    if (start?.startsWith(`#!${prefix}/`) === true) await rm(join(bin, name));
  }
}

/** Scripts start the Python beside them, not the one that they were copied from or made for. */
function ownScripts(prefixes: readonly string[], dir: string, final: string): void {
  for (const name of readdirSync(join(dir, 'bin'))) {
    const path = join(dir, 'bin', name);
    const start = headOf(path);
    if (start === undefined) continue;
    const prefix = prefixes.find((one) => start.startsWith(`#!${one}/`));
    const isActivation = name.toLowerCase().startsWith('activate');
    if (prefix === undefined && !isActivation) continue;
    const { mode } = lstatSync(path);
    const text = readFileSync(path, 'utf8');
    const own =
      prefix === undefined
        ? text.replaceAll(dir, () => final)
        : `#!${final}${text.slice(2 + prefix.length)}`;
    writeFileSync(path, own, { mode });
  }
}

/** The start of a plain file. */
function headOf(path: string): string | undefined {
  if (!lstatSync(path).isFile()) return undefined;
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(SHEBANG_BYTES);
    return bytes.toString('latin1', 0, readSync(fd, bytes));
  } finally {
    closeSync(fd);
  }
}

async function makeEnvironment(
  { program, version }: ToolAtHand,
  dir: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    const args = ['-I', '-m', 'venv', '--without-pip', dir];
    await mustRunClient(program, args, { cwd: '/', env: systemEnvironment(dir), signal });
  } catch (error) {
    if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
    const text = `Python ${version} of the system can make no environment for the job: ${error.message}`;
    throw new AppError('UPSTREAM_ERROR', text, {}, error);
  }
}

async function ensurePip(dir: string, signal: AbortSignal | undefined): Promise<void> {
  const python = join(dir, 'bin/python');
  const options = { cwd: '/', env: systemEnvironment(dir), timeoutMs: PIP_TIMEOUT_MS, signal };
  const known = await runClient(python, ['-I', '-c', 'import pip'], options);
  if (known.code === 0) return;
  await mustRunClient(python, ['-I', '-m', 'ensurepip', '--default-pip'], options);
}

function systemEnvironment(dir: string): Readonly<Record<string, string>> {
  return { PATH: '/usr/bin:/bin', HOME: dir, LD_LIBRARY_PATH: join(dir, 'lib'), LC_ALL: 'C.UTF-8' };
}
