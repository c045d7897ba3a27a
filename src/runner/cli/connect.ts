import { join } from 'node:path';
import type { Logger } from '../../observability/logger.ts';
import { AppError } from '../../shared/app-error.ts';
import { readEndpoint } from '../endpoint-file.ts';
import { reporterOf, STATE_DIR } from '../runner-parts.ts';
import type { RunnerSettings } from '../settings.ts';
import { createHttpLink, createHttpSecrets, servesWorkspace } from './http-link.ts';
import { lockHolderOf, openLocalLink, openLocalSecrets } from './local-link.ts';
import type { RunnerLink, RunReader, SecretLink } from './runner-link.ts';
import { openStoredRuns } from './stored-runs.ts';

export type CliContext = {
  readonly settings: RunnerSettings;
  readonly logger: Logger;
  readonly version: string;
  /** Absolute. */
  readonly workspace: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/**
 * The runner that has the workspace, or one in this process.
 * Errors: STORE_UNAVAILABLE when another process has it that cannot be called.
 */
export function connect(context: CliContext): Promise<{
  readonly link: RunnerLink;
  /** False: over HTTP. */
  readonly isLocal: boolean;
}> {
  return whoHas<{ readonly link: RunnerLink; readonly isLocal: boolean }>(
    context,
    async () => ({ link: await openLocalLink(context.settings, context), isLocal: true }),
    (url) => ({ link: createHttpLink(url, context.settings.apiToken), isLocal: false }),
  );
}

/** Undefined when no runner serves the workspace: nothing is in progress then. Errors: as `connect`. */
export function connectToRunning(context: CliContext): Promise<RunnerLink | undefined> {
  return whoHas<RunnerLink | undefined>(
    context,
    async () => {
      // Only the lock tells whether one is there.
      await (await openStoredRuns(context.workspace, reporterOf(context.logger))).close();
      return undefined;
    },
    (url) => createHttpLink(url, context.settings.apiToken),
  );
}

/** Runs to read, without starting anything. Errors: as `connect`. */
export function connectToRead(context: CliContext): Promise<RunReader> {
  return whoHas<RunReader>(
    context,
    () => openStoredRuns(context.workspace, reporterOf(context.logger)),
    (url) => createHttpLink(url, context.settings.apiToken),
  );
}

/** Errors: as `connect`. */
export function connectToSecrets(context: CliContext): Promise<SecretLink> {
  return whoHas<SecretLink>(
    context,
    () => openLocalSecrets(context.settings, context),
    (url) => createHttpSecrets(url, context.settings.apiToken),
  );
}

async function whoHas<T>(
  { workspace }: CliContext,
  local: () => Promise<T>,
  remote: (url: string) => T,
): Promise<T> {
  try {
    return await local();
  } catch (error) {
    const holder = lockHolderOf(error);
    if (holder === undefined) throw error;
    const endpoint = await readEndpoint(join(workspace, STATE_DIR));
    // One that a crash left behind names another process.
    const isHolder = endpoint !== undefined && String(endpoint.pid) === holder;
    if (isHolder && (await servesWorkspace(endpoint.url, workspace))) return remote(endpoint.url);
    const text = `process ${holder} runs something in this workspace; try again when it has ended`;
    throw new AppError('STORE_UNAVAILABLE', text, { holder }, error);
  }
}
