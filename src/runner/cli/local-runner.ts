import type { LogLevel } from '../../observability/logger.ts';
import type { StartRequest } from '../model/ports.ts';
import type { Workflow } from '../model/workflow.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import type { ActionLink, RunnerLink, RunReader, SecretLink } from './runner-link.ts';
import type { Forecast, StartPlan } from './start-plan.ts';

/** What a runner in this process is made from. */
export type LocalContext = {
  readonly settings: RunnerSettings;
  /** Of the lines on standard error. */
  readonly logLevel: LogLevel;
  readonly version: string;
  /** Absolute. */
  readonly workspace: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/**
 * The runner in this process, for a workspace that no other one serves. It takes its time to load: who
 * calls another runner need not wait for it, so nothing is loaded before one of these is called.
 * Errors: STORE_UNAVAILABLE when another process has the workspace.
 */
export interface LocalRunner {
  /** Keeps other processes of this user from reading this one, before it holds secrets or runs steps. */
  conceal(): boolean;
  /** Serves the workspace until a signal, by these settings. Resolves when it is ready. */
  serve(environment: LocalContext['environment']): Promise<void>;
  /** Runs that waited in the queue when the last runner ended go on, too. */
  openLink(context: LocalContext): Promise<RunnerLink>;
  openSecrets(context: LocalContext): Promise<SecretLink>;
  /** What a start would run; nothing is locked, and no secret read. Errors: those of RunService.start. */
  planStart(context: LocalContext, request: StartRequest): Promise<StartPlan>;
  /** What the files show of the end of a run of all jobs. */
  forecast(context: LocalContext, workflow: Workflow): Promise<Forecast>;
  /** The recorded runs as they lie on the disk: nothing is started or recovered. */
  openStoredRuns(context: LocalContext): Promise<RunReader>;
  /** The actions that the project has: files alone, which any number of processes may use. */
  openActions(context: LocalContext): Promise<ActionLink>;
}
