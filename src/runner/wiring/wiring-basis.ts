import { join } from 'node:path';
import { BackgroundLoops } from '../../observability/background-loops.ts';
import { eventLogOf, type Logger } from '../../observability/logger.ts';
import { type Clock, systemClock } from '../../shared/time/clock.ts';
import { isBuiltIn } from '../execution/built-ins/built-in-inputs.ts';
import { ActionLibrary } from '../host/actions/action-library.ts';
import type { EventPublisher } from '../model/events.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import type { EarlySupervision } from './early-supervision.ts';

export type WiringOptions = {
  readonly logger: Logger;
  readonly version: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute. */
  readonly workspace: string;
  readonly pingMs?: number | undefined;
  /** Whether the first job is likely to come at once: what it needs is started beside the rest. */
  readonly isEager?: boolean | undefined;
  /** The supervisors, if they were started before; closed with the rest. */
  readonly early?: EarlySupervision | undefined;
  /** Default true. What counts takes its time to load, and a command is asked by nobody. */
  readonly hasMetrics?: boolean | undefined;
  /** Is notified of every event too, after the streams: the command line. */
  readonly events?: EventPublisher | undefined;
};

/** What all parts of one workspace are opened from. */
export type WiringBasis = WiringOptions & {
  readonly settings: RunnerSettings;
  /** Absolute; all that the runner keeps. */
  readonly stateDir: string;
  /** Below it the runs and their artifacts lie. */
  readonly runsDir: string;
  readonly report: ProblemReporter;
  readonly loops: BackgroundLoops;
};

export function basisOf(settings: RunnerSettings, options: WiringOptions): WiringBasis {
  const stateDir = join(options.workspace, STATE_DIR);
  const runsDir = join(stateDir, 'runs');
  const { logger } = options;
  const describe = (error: unknown): Readonly<Record<string, unknown>> => ({
    error: String(error),
    cause: error instanceof Error ? causeText(error) : undefined,
  });
  const loops = new BackgroundLoops({ log: eventLogOf(logger), describe, ...systemClock });
  return { ...options, settings, stateDir, runsDir, report: reporterOf(logger), loops };
}

/** Problems that nobody can be notified of, as lines of the log. */
export function reporterOf(logger: Logger): ProblemReporter {
  return (event, error) => {
    logger.warn({ error: error.message, cause: causeText(error) }, event);
  };
}

function causeText(error: Error): string | undefined {
  return error.cause instanceof Error ? error.cause.message : undefined;
}

/** What was opened so far, to be closed in the reverse order: when a later part fails, and at the end. */
export class Closings {
  readonly #closings: (() => Promise<void>)[] = [];

  push(close: () => Promise<void>): void {
    this.#closings.push(close);
  }

  /** Idempotent. Errors: the first of a part that cannot be closed; those opened before it stay open. */
  async closeAll(): Promise<void> {
    const closings = this.#closings;
    for (let close = closings.pop(); close !== undefined; close = closings.pop()) await close();
  }
}

/** Opens parts. Errors: those of `open`, once what it had opened is closed again. */
export async function openOrClose<T>(open: (closings: Closings) => Promise<T>): Promise<T> {
  const closings = new Closings();
  try {
    return await open(closings);
  } catch (error) {
    await closings.closeAll();
    throw error;
  }
}

/** The actions of a project, as its settings say where they come from. */
export function openActions(settings: RunnerSettings, stateDir: string): ActionLibrary {
  const { actionsUrl, hostGitUrl, hostToken, actionsMirror, fetchActions } = settings;
  const url = (actionsUrl ?? hostGitUrl).replace(/\/+$/, '');
  // The token is for the code host, not for wherever else actions come from.
  const isHost = hostToken !== undefined && url === hostGitUrl.replace(/\/+$/, '');
  return new ActionLibrary({
    stateDir,
    mirror: actionsMirror,
    origin: { url, ...(isHost && /^https?:/.test(url) ? { token: hostToken } : {}) },
    fetchesInRuns: fetchActions,
    isBuiltIn,
  });
}
