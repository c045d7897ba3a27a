import type { Conclusion } from '../../model/run.ts';
import type { JobEnvironment } from './job-environment.ts';
import type { StepLog } from './step-log.ts';

/** `interrupt`: the kill escalation from its start. `kill`: now. A kill may follow an interrupt, never the reverse. */
type StopKind = 'interrupt' | 'kill';

/**
 * Says whatever runs right now to stop. Unlike an AbortSignal it can be asked twice: first politely,
 * then for good.
 */
class StopSignal {
  #kind: StopKind | undefined;
  readonly #listeners = new Set<(kind: StopKind) => void>();

  /** What was asked for so far. */
  get kind(): StopKind | undefined {
    return this.#kind;
  }

  request(kind: StopKind): void {
    if (this.#kind === kind || this.#kind === 'kill') return;
    this.#kind = kind;
    for (const listener of this.#listeners) listener(kind);
  }

  /** Calls `listener` with each request, at once if there was one. Returns how to stop that. */
  onRequest(listener: (kind: StopKind) => void): () => void {
    this.#listeners.add(listener);
    if (this.#kind !== undefined) listener(this.#kind);
    return () => this.#listeners.delete(listener);
  }
}

/** What a step ended with. */
export type StepResult = {
  readonly outcome: Conclusion;
  readonly conclusion: Conclusion;
  readonly outputs: Readonly<Record<string, string>>;
};

/** One execution of a step. Steps of a composite action write to the log of the step that uses it. */
export class StepRun {
  readonly log: StepLog;
  readonly environment: JobEnvironment;
  readonly stop = new StopSignal();
  /** Aborted with the first request to stop, for work that is no process of the step. */
  readonly #abort = new AbortController();
  readonly outputs = new Map<string, string>();
  /** STATE_* for the post step. */
  readonly state: Map<string, string>;
  name: string;
  /** A composite action is not stopped itself when the job is cancelled: its steps are asked one by one. */
  isComposite = false;
  isTimedOut = false;
  /** The job was cancelled, and the step's `if` no longer holds; or a cancel step named it. */
  isCancelled = false;
  /** Asked again when the job is cancelled. */
  readonly mayGoOn: () => Promise<boolean>;

  constructor(parts: {
    readonly name: string;
    readonly log: StepLog;
    readonly environment: JobEnvironment;
    readonly mayGoOn: () => Promise<boolean>;
    readonly state: Map<string, string>;
  }) {
    this.name = parts.name;
    this.log = parts.log;
    this.environment = parts.environment;
    this.mayGoOn = parts.mayGoOn;
    this.state = parts.state;
    this.stop.onRequest(() => this.#abort.abort());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Stops the step unless its condition holds in spite of the cancel. */
  async reconsider(): Promise<void> {
    if (this.isCancelled || (await this.mayGoOn())) return;
    this.isCancelled = true;
    if (!this.isComposite) this.stop.request('interrupt');
  }

  cancel(): void {
    this.isCancelled = true;
    this.stop.request('interrupt');
  }

  timeOut(): void {
    this.isTimedOut = true;
    this.stop.request('interrupt');
  }
}
