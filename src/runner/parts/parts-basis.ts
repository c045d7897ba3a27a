import { join } from 'node:path';
import type { Logger } from '../../observability/logger.ts';
import type { Clock } from '../../shared/clock.ts';
import type { EventPublisher } from '../model/events.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import type { EarlySupervision } from './early-supervision.ts';
import { reporterOf } from './problem-reporter.ts';

export type PartsOptions = {
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
  /** Is told of every event too, after the streams: the command line. */
  readonly events?: EventPublisher | undefined;
};

/** What all parts of one workspace are opened from. */
export type PartsBasis = PartsOptions & {
  readonly settings: RunnerSettings;
  /** Absolute; all that the runner keeps. */
  readonly stateDir: string;
  /** Below it the runs and their artifacts lie. */
  readonly runsDir: string;
  readonly report: ProblemReporter;
};

export function basisOf(settings: RunnerSettings, options: PartsOptions): PartsBasis {
  const stateDir = join(options.workspace, STATE_DIR);
  const runsDir = join(stateDir, 'runs');
  return { ...options, settings, stateDir, runsDir, report: reporterOf(options.logger) };
}
