import { readFile, rm } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { writeFileAtomic } from './atomic-file.ts';
import { ifPresent } from './file-errors.ts';

/** Where a runner that has the workspace can be called. A crash leaves it behind: the lock says. */
export type RunnerEndpoint = { readonly url: string; readonly pid: number };

/** Of all that the runner keeps, below the workspace. */
export const STATE_DIR = '.runner';
const FILE = 'endpoint.json';

/** Notifies programs of the same user where this process listens. */
export async function writeEndpoint(stateDir: string, host: string, port: number): Promise<void> {
  const url = `http://${addressOf(host)}:${port}`;
  await writeFileAtomic(join(stateDir, FILE), `${JSON.stringify({ url, pid: process.pid })}\n`);
}

export async function removeEndpoint(stateDir: string): Promise<void> {
  await rm(join(stateDir, FILE), { force: true });
}

/** Undefined when no runner wrote one, or it cannot be understood. */
export async function readEndpoint(stateDir: string): Promise<RunnerEndpoint | undefined> {
  const text = await ifPresent(readFile(join(stateDir, FILE), 'utf8'));
  if (text === undefined) return undefined;
  try {
    const { url, pid } = JSON.parse(text) as Partial<RunnerEndpoint>;
    return typeof url === 'string' && typeof pid === 'number' ? { url, pid } : undefined;
  } catch {
    // Not ours, or of another version: as good as none.
    return undefined;
  }
}

/** An address that a client can connect to: those that mean all of them do not name one. */
function addressOf(host: string): string {
  if (host === '0.0.0.0' || host.toLowerCase() === 'localhost') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIPv6(host) ? `[${host}]` : host;
}
