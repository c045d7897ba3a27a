import { execFile, type ExecFileException } from 'node:child_process';
import { access, constants, mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SOPS_VERSION = 'v3.13.3';
const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/sops');
const BUILD_TIMEOUT_MS = 20 * 60_000;

/** A program on this machine, or why there is none. */
export type FoundTool =
  | { readonly path: string; readonly reason?: undefined }
  | { readonly path?: undefined; readonly reason: string };

/** sops on PATH, else one built by the Go toolchain, once, into node_modules/.cache. */
export async function findSops(): Promise<FoundTool> {
  const built = join(CACHE, 'sops');
  const present = (await onPath('sops')) ?? ((await isExecutable(built)) ? built : undefined);
  if (present !== undefined) return { path: present };
  const go = (await onPath('go')) ?? '/usr/local/go/bin/go';
  if (!(await isExecutable(go))) return { reason: 'there is neither sops nor Go' };
  try {
    await mkdir(CACHE, { recursive: true });
    await run(go, ['install', `github.com/getsops/sops/v3/cmd/sops@${SOPS_VERSION}`], {
      env: { ...process.env, GOBIN: CACHE },
      timeout: BUILD_TIMEOUT_MS,
    });
    return { path: built };
  } catch (error) {
    const [line = ''] = ((error as ExecFileException).stderr ?? String(error)).split('\n');
    return { reason: `sops could not be built: ${line}` };
  }
}

export async function findAge(): Promise<FoundTool> {
  const path = await onPath('age');
  return path === undefined ? { reason: 'there is no age' } : { path };
}

async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, name);
    if (folder !== '' && (await isExecutable(path))) return path;
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
