import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { readApiToken } from '../storage/api-token-file.ts';
import { readEndpoint, STATE_DIR } from '../storage/endpoint-file.ts';
import { createHttpLink, createHttpSecrets, servesWorkspace } from './http-link.ts';
import type { LocalContext, LocalRunner } from './local-runner.ts';
import type { RunnerLink, RunReader, SecretLink } from './runner-link.ts';

export type CliContext = LocalContext & { readonly local: LocalRunner };

/**
 * The runner that has the workspace, or one in this process.
 * Errors: STORE_UNAVAILABLE when another process has it that cannot be called.
 */
export function connect(context: CliContext): Promise<RunnerLink> {
  return whoHas<RunnerLink>(context, () => context.local.openLink(context), createHttpLink);
}

/** Undefined when no runner serves the workspace: nothing is in progress then. Errors: as `connect`. */
export function connectToRunning(context: CliContext): Promise<RunnerLink | undefined> {
  return whoHas<RunnerLink | undefined>(
    context,
    async () => {
      // Only the lock says whether one is there.
      await (await context.local.openStoredRuns(context)).close();
      return undefined;
    },
    createHttpLink,
  );
}

/** Runs to read, without starting anything. Errors: as `connect`. */
export function connectToRead(context: CliContext): Promise<RunReader> {
  return whoHas<RunReader>(context, () => context.local.openStoredRuns(context), createHttpLink);
}

/** Errors: as `connect`. */
export function connectToSecrets(context: CliContext): Promise<SecretLink> {
  return whoHas<SecretLink>(context, () => context.local.openSecrets(context), createHttpSecrets);
}

async function whoHas<T>(
  { workspace, settings }: CliContext,
  inProcess: () => Promise<T>,
  remote: (url: string, token: string | undefined) => T,
): Promise<T> {
  const url = await servingUrl(workspace);
  if (url !== undefined) return remote(url, settings.apiToken ?? (await keptToken(workspace)));
  try {
    return await inProcess();
  } catch (error) {
    const isHeld = error instanceof AppError && error.reason === 'STORE_UNAVAILABLE';
    const holder = isHeld ? error.metadata['holder'] : undefined;
    if (holder === undefined) throw error;
    const text = `process ${holder} runs something in this workspace; try again when it has ended`;
    throw new AppError('STORE_UNAVAILABLE', text, { holder }, error);
  }
}

/**
 * The token that a runner without RUNNER_API_TOKEN has made. Most calls need none: a file that this user may
 * not read, or that the runner would refuse, counts as none.
 */
async function keptToken(workspace: string): Promise<string | undefined> {
  try {
    return await readApiToken(join(workspace, STATE_DIR));
  } catch (error) {
    if (error instanceof AppError && error.reason === 'STORE_UNAVAILABLE') return undefined;
    throw error;
  }
}

/** Where a runner answers that serves the workspace; an address that a crash left behind does not. */
async function servingUrl(workspace: string): Promise<string | undefined> {
  const endpoint = await readEndpoint(join(workspace, STATE_DIR));
  // Another program may have got the port since: it must not be sent the token.
  if (endpoint === undefined || !isAlive(endpoint.pid)) return undefined;
  return (await servesWorkspace(endpoint.url, workspace)) ? endpoint.url : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
