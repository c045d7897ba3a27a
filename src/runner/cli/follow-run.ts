import type { Terminal } from '../../command-line/terminal.ts';
import { AppError } from '../../shared/app-error.ts';
import { createEchoFilter } from '../../shared/process/stop-signals.ts';
import type { Conclusion, WorkflowRun } from '../model/run.ts';
import { RunPrinter } from './run-printer.ts';
import { printSummary } from './run-summary.ts';
import type { LinkEvent, RunnerLink } from './runner-link.ts';

const TICK_MS = 100;
const LEFT_POLL_MS = 200;
/** One more ends this process at once. */
const SIGNALS_MAX = 2;
/** Shorter than for services: here a second Ctrl-C kills the run, and people press it soon. */
const ECHO_MS = 300;
const EXIT_OF: Readonly<Record<Conclusion, number>> = {
  success: 0,
  skipped: 0,
  failure: 1,
  cancelled: 130,
};
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type FollowOptions = {
  readonly link: RunnerLink;
  /** Results; the stream of events with `isJson`. */
  readonly output: Terminal;
  /** Words beside the results. */
  readonly notes: Terminal;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
};

/**
 * Starts a run with `begin`, says what happens until it ends, and resolves with the exit code of its
 * conclusion: 0, 1, or 130 for cancelled. The first Ctrl-C cancels it, the second one kills.
 * Errors: those of `begin`; BACKEND_UNAVAILABLE when the runner is gone.
 */
export async function followRun(
  options: FollowOptions,
  begin: () => Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }>,
): Promise<number> {
  const following = new FollowedRun(options);
  try {
    return await following.run(begin);
  } finally {
    following.stop();
  }
}

class FollowedRun {
  readonly #options: FollowOptions;
  readonly #printer: RunPrinter;
  readonly #onSignal = (signal: NodeJS.Signals): void => this.#cancel(signal);
  /** Events that came before the answer reported the id of the run. */
  #early: LinkEvent[] | undefined = [];
  #run: WorkflowRun | undefined;
  #signals = 0;
  readonly #isEcho = createEchoFilter(ECHO_MS);
  #asked = 0;
  #end: (result: WorkflowRun | AppError) => void = () => undefined;
  readonly #ended = new Promise<WorkflowRun | AppError>((resolve) => {
    this.#end = resolve;
  });
  #ticks: NodeJS.Timeout | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#printer = new RunPrinter(options.output, options.isQuiet);
  }

  async run(
    begin: () => Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }>,
  ): Promise<number> {
    const { link, output, notes, isJson, isQuiet } = this.#options;
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
    await link.subscribe((event) => this.#take(event));
    const { run, warnings } = await begin();
    this.#run = run;
    if (!isJson) {
      this.#printer.begin(run);
      if (output.isLive) this.#ticks = setInterval(() => this.#printer.tick(), TICK_MS);
    }
    for (const warning of warnings) notes.line(`warning: ${notes.foreign(warning)}`);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const event of early) this.#take(event);
    if (this.#signals > 0) this.#ask();
    const result = await this.#ended;
    if (result instanceof AppError) throw result;
    clearInterval(this.#ticks);
    output.status('');
    if (!isJson) await printSummary(output, this.#printer, link, result, isQuiet);
    await this.#waitForOthers();
    return EXIT_OF[result.conclusion ?? 'failure'];
  }

  stop(): void {
    clearInterval(this.#ticks);
    this.#options.output.status('');
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }

  #take(event: LinkEvent): void {
    if (this.#early !== undefined) {
      this.#early.push(event);
      return;
    }
    const id = this.#run?.id;
    if (event.type === 'lost') {
      return this.#end(
        new AppError('BACKEND_UNAVAILABLE', 'the runner is gone; the run may go on'),
      );
    }
    if (event.type === 'reset') {
      void this.#lookUp();
      return;
    }
    if (event.runId !== id) return;
    if (this.#options.isJson) this.#options.output.line(JSON.stringify(event));
    else this.#printer.take(event);
    if (event.type === 'run.completed') this.#end(event.run);
  }

  /** Events were lost, the end of the run perhaps among them. */
  async #lookUp(): Promise<void> {
    const { link, notes } = this.#options;
    notes.line('warning: events were lost; `logs` has all lines');
    try {
      const found = (await link.list({ limit: 1_000 })).find(({ id }) => id === this.#run?.id);
      if (found?.completedAt !== undefined) this.#end(found);
    } catch (error) {
      this.#end(error instanceof AppError ? error : new AppError('INTERNAL', String(error)));
    }
  }

  #cancel(signal: NodeJS.Signals): void {
    if (this.#isEcho()) return;
    this.#signals += 1;
    if (this.#signals > SIGNALS_MAX) process.exit(EXIT_OF.cancelled);
    if (this.#run === undefined) return;
    this.#ask();
    // A terminal that hangs up leaves nobody to ask twice.
    if (signal === 'SIGHUP') this.#ask();
  }

  /** The first time cancels, the second time kills. */
  #ask(): void {
    const { link, notes } = this.#options;
    this.#asked += 1;
    notes.line(this.#asked === 1 ? 'Cancelling the run; Ctrl-C again kills it' : 'Killing the run');
    link.cancel(this.#run?.id ?? '').catch((error: unknown) => {
      // It ended in the meantime: its own end says so.
      const isOver = error instanceof AppError && error.reason === 'RUN_NOT_CANCELLABLE';
      if (!isOver) notes.line(`error: ${error instanceof Error ? error.message : String(error)}`);
    });
  }

  /** Runs of other days that were queued, and of others through this process, are not cut short. */
  async #waitForOthers(): Promise<void> {
    const { link, notes } = this.#options;
    if (link.runsLeft() === 0) return;
    notes.line(
      `Waiting for ${link.runsLeft()} other run(s) of this workspace; Ctrl-C cancels them`,
    );
    const signals = this.#signals;
    while (link.runsLeft() > 0 && this.#signals === signals) {
      await new Promise((resolve) => setTimeout(resolve, LEFT_POLL_MS));
    }
  }
}
