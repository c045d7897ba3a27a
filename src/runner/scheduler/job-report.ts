import { AppError } from '../../shared/app-error.ts';
import type { JobReport } from '../model/execution.ts';
import type { Annotation, Conclusion, Step } from '../model/run.ts';
import type { LogWriter } from '../model/storage.ts';
import type { RunContext } from './run-context.ts';
import type { PlannedStep } from './state/journal-records.ts';

/**
 * What a job in progress says, as records of its run. The executor is never failed by what goes wrong
 * here: it is reported, and the record is left out.
 */
export class JobReporter implements JobReport {
  readonly #context: RunContext;
  readonly #jobId: string;
  /** Of the workflow that the job stands in: where annotations without a file point. */
  readonly #workflowPath: string;
  readonly #logs = new Map<number, LogWriter>();
  readonly #writing = new Set<Promise<void>>();
  #isClosed = false;
  #isLogBroken = false;

  constructor(context: RunContext, jobId: string, workflowPath: string) {
    this.#context = context;
    this.#jobId = jobId;
    this.#workflowPath = workflowPath;
  }

  get isLogLost(): boolean {
    return this.#isLogBroken;
  }

  stepsKnown(steps: readonly PlannedStep[]): void {
    this.#guarded(() => {
      this.#context.recorder.record({ type: 'steps.known', jobId: this.#jobId, steps });
    });
  }

  stepStarted(number: number, name: string): void {
    this.#guarded(() => {
      this.#know(number, name);
      const jobId = this.#jobId;
      this.#context.recorder.record({ type: 'step.started', jobId, number, name });
      // The lines of an earlier attempt go, also when this one will have none.
      if (this.#context.facts.attempt > 1) this.#logOf(number);
    });
  }

  log(number: number, lines: readonly string[]): Promise<void> | undefined {
    if (this.#isClosed || this.#isLogBroken || lines.length === 0) return undefined;
    try {
      const written = this.#logOf(number).write(lines);
      const emitted = this.#context.recorder.log(this.#jobId, number, lines);
      if (written === undefined || emitted === undefined) return written ?? emitted;
      return Promise.all([written, emitted]).then(() => undefined);
    } catch (error) {
      this.#loseLog(number, error);
      return undefined;
    }
  }

  /** A log with holes would lie: it ends here, says so, and what it is of is no success. */
  #loseLog(number: number, error: unknown): void {
    if (this.#isLogBroken) return;
    this.#isLogBroken = true;
    this.#report(error);
    const why =
      error instanceof AppError && error.reason === 'DISK_FULL' ? ' (the disk is full)' : '';
    const message = `The log could not be written${why}: lines of this job are missing from here on, so that it fails`;
    this.annotate({ level: 'error', message, stepNumber: number });
  }

  stepCompleted(number: number, result: Parameters<JobReport['stepCompleted']>[1]): void {
    this.#guarded(() => {
      this.#know(number, result.name);
      this.#closeLog(number);
      const { outputs, name } = result;
      const conclusion = this.#withLog(result.conclusion);
      const outcome = this.#withLog(result.outcome);
      const jobId = this.#jobId;
      this.#context.recorder.record({
        type: 'step.completed',
        jobId,
        number,
        name,
        conclusion,
        outcome,
        outputs,
      });
    });
  }

  #withLog(conclusion: Conclusion): Conclusion {
    return this.#isLogBroken && conclusion === 'success' ? 'failure' : conclusion;
  }

  annotate(annotation: Annotation): void {
    if (this.#isClosed) return;
    const { level, message, stepNumber } = annotation;
    const title = annotation.title ?? this.#titleOf(annotation);
    // A line without a file says nothing.
    const placed =
      annotation.file === undefined
        ? { level, message, stepNumber, file: this.#workflowPath }
        : annotation;
    this.#guarded(() => this.#context.annotate({ ...placed, title, jobId: this.#jobId }));
  }

  /** The step that it comes from, else the job. */
  #titleOf({ stepNumber }: Annotation): string | undefined {
    const step = this.#steps().find(({ number }) => number === stepNumber);
    return step?.name ?? this.#context.recorder.live.jobs.get(this.#jobId)?.job.name;
  }

  summary(number: number, markdown: string): void {
    this.#guarded(() => {
      const { recorder, options } = this.#context;
      const jobId = this.#jobId;
      const writing = options.store
        .writeSummary(recorder.runId, jobId, number, markdown)
        .then(() => recorder.record({ type: 'summary', jobId, number }))
        .catch((error: unknown) => this.#report(error))
        .finally(() => this.#writing.delete(writing));
      this.#writing.add(writing);
    });
  }

  /** Waits for summaries, then completes the steps that are still open. Nothing is reported after it. */
  async close(): Promise<void> {
    await Promise.all(this.#writing);
    for (const number of this.#logs.keys()) this.#closeLog(number);
    for (const step of this.#steps()) {
      if (step.status !== 'completed') this.#completeOpen(step);
    }
    this.#isClosed = true;
  }

  #completeOpen({ number, name, status }: Step): void {
    const conclusion = status === 'in_progress' ? 'cancelled' : 'skipped';
    this.stepCompleted(number, { conclusion, outcome: conclusion, outputs: {}, name });
  }

  #steps(): readonly Step[] {
    return this.#context.recorder.live.jobs.get(this.#jobId)?.job.steps ?? [];
  }

  /** A step that was not emitted is known from now on. */
  #know(number: number, name: string): void {
    if (this.#steps().some((step) => step.number === number)) return;
    this.stepsKnown([{ number, name }]);
  }

  #logOf(number: number): LogWriter {
    let log = this.#logs.get(number);
    if (log === undefined) {
      log = this.#context.options.store.openLog(this.#context.recorder.runId, this.#jobId, number);
      this.#logs.set(number, log);
    }
    return log;
  }

  #closeLog(number: number): void {
    const log = this.#logs.get(number);
    this.#logs.delete(number);
    try {
      log?.close();
    } catch (error) {
      this.#loseLog(number, error);
    }
  }

  #guarded(action: () => void): void {
    if (this.#isClosed) return;
    try {
      action();
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#context.options.report('runner.record', cause);
  }
}
