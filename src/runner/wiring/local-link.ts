import { createLogger } from '../../observability/logger.ts';
import { systemClock } from '../../shared/time/clock.ts';
import type { LocalContext } from '../cli/local-runner.ts';
import {
  type LinkEvent,
  type RerunChoice,
  type RunnerLink,
  type RunQuery,
  type SecretLink,
  vaultProblemIn,
} from '../cli/runner-link.ts';
import type { EventPublisher } from '../model/events.ts';
import type { LogQuery, StartRequest } from '../model/ports.ts';
import type { Annotation, Artifact, WorkflowRun } from '../model/run.ts';
import type { EarlySupervision } from './early-supervision.ts';
import { startSecrets } from './foundation.ts';
import { startParts, type RunnerWiring } from './runner-wiring.ts';

/**
 * Runs in this process. Runs that waited in the queue when the last runner ended go on, too. What was
 * started early is ended with the link, and when it cannot be opened.
 * Errors: STORE_UNAVAILABLE when another process has the workspace.
 */
export async function openLocalLink(
  { settings, ...context }: LocalContext,
  early: EarlySupervision,
): Promise<RunnerLink> {
  const taker = new Taker();
  const parts = await startParts(settings, {
    ...context,
    logger: createLogger(context.logLevel),
    clock: systemClock,
    events: taker,
    early,
    hasMetrics: false,
  });
  return new LocalLink(parts, taker);
}

/** The secrets of the workspace. Errors: as openLocalLink. */
export async function openLocalSecrets({
  settings,
  ...context
}: LocalContext): Promise<SecretLink> {
  const { secrets, stop } = await startSecrets(settings, {
    ...context,
    logger: createLogger(context.logLevel),
    clock: systemClock,
  });
  return {
    list: ({ environment, backend }) => secrets.listNames(environment, backend),
    vaultProblem: async () => vaultProblemIn(await secrets.status()),
    put: async (request) => ({ isCreated: (await secrets.put(request)).isCreated }),
    remove: (place) => secrets.remove(place),
    close: stop,
  };
}

/** Hands events on as they come: a terminal that lags holds the steps back, and nothing is lost. */
class Taker implements EventPublisher {
  onEvent: ((event: LinkEvent) => void) | undefined;

  publish(event: LinkEvent): void {
    this.onEvent?.(event);
  }

  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void {
    if (this.onEvent === undefined) return;
    for (const line of lines) this.onEvent({ type: 'step.log', runId, jobId, stepNumber, line });
  }
}

class LocalLink implements RunnerLink {
  readonly #parts: RunnerWiring;
  readonly #taker: Taker;

  constructor(parts: RunnerWiring, taker: Taker) {
    this.#parts = parts;
    this.#taker = taker;
  }

  subscribe(onEvent: (event: LinkEvent) => void): Promise<void> {
    this.#taker.onEvent = onEvent;
    return Promise.resolve();
  }

  start(
    request: StartRequest,
  ): Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }> {
    return this.#parts.runs.start(request);
  }

  rerun(id: string, which: RerunChoice): Promise<WorkflowRun> {
    return this.#parts.runs.rerun(id, which);
  }

  async approve(id: string): Promise<void> {
    await this.#parts.runs.approve(id);
  }

  async cancel(id: string): Promise<void> {
    await this.#parts.runs.cancel(id);
  }

  list(query: RunQuery): Promise<readonly WorkflowRun[]> {
    return Promise.resolve(this.#parts.runs.list(query));
  }

  logs(id: string, query: LogQuery): AsyncIterable<Uint8Array | string> {
    return this.#parts.runs.logs(id, query);
  }

  annotations(id: string): Promise<readonly Annotation[]> {
    return Promise.resolve(this.#parts.runs.annotations(id));
  }

  summary(id: string): Promise<string> {
    return Promise.resolve(this.#parts.runs.summary(id));
  }

  artifacts(id: string): Promise<readonly Artifact[]> {
    return Promise.resolve(this.#parts.runs.artifacts(id));
  }

  runsLeft(): number {
    const { queued, inProgress } = this.#parts.runs.counts();
    // Those stay queued until somebody approves them.
    return queued + inProgress - this.#parts.runs.waitingForApproval();
  }

  async close(): Promise<void> {
    this.#parts.schedule?.stop();
    await this.#parts.runs.shutdown();
    await this.#parts.stop();
  }
}
