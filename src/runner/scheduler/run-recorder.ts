import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { EventPublisher, RunnerEvent } from '../model/events.ts';
import type { Job } from '../model/run.ts';
import type { JournalRecord, RunStore } from '../model/storage.ts';
import type { RunRecord, RunRecordBody } from './state/journal-records.ts';
import { applyRecord } from './state/run-state-reducer.ts';
import { type RunState, runView } from './state/run-state.ts';

/** Lines that may wait for the disk before the writer is asked to pause. */
const WAITING_LINES_MAX = 50_000;
/** Events that are over are dropped in blocks: the queue may never be empty in a busy run. */
const FORGET_AFTER = 1000;

type Emission =
  | { readonly kind: 'record'; readonly record: RunRecord; isSettled: boolean }
  | {
      readonly kind: 'log';
      readonly jobId: string;
      readonly stepNumber: number;
      readonly lines: readonly string[];
    };

/** Two states of one run: as it is, for decisions, and as the disk has it, for everybody else. */
export type StatePair = { readonly live: RunState; readonly visible: RunState };

export type RecorderOptions = {
  readonly states: StatePair;
  readonly store: RunStore;
  readonly events: EventPublisher;
  readonly clock: Clock;
  /** Called once, when the journal cannot be written any more. */
  readonly onBroken: (error: Error) => void;
};

/** ISO 8601, UTC, milliseconds. */
export function isoTime(clock: Clock): string {
  return new Date(clock.nowMs()).toISOString();
}

/**
 * Records what happens to one run. A record changes the live state at once, so that nothing waits for
 * the disk; it is emitted, and shown by the visible state, when it is on the disk (I11). What is
 * emitted keeps the order of the calls, log lines included (I12).
 *
 * When the disk refuses, the rest of the run is emitted all the same: whoever waits for its end
 * would wait for ever. After a restart such a run is one that was in progress.
 */
export class RunRecorder {
  readonly live: RunState;
  readonly visible: RunState;
  readonly #options: RecorderOptions;
  readonly #queue: Emission[] = [];
  #head = 0;
  #waitingLines = 0;
  /** How many events were made before the queue was last emptied. */
  #emittedBefore = 0;
  readonly #waiters: { readonly position: number; readonly resolve: () => void }[] = [];
  #isBroken = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.live = options.states.live;
    this.visible = options.states.visible;
  }

  get runId(): string {
    return this.live.run.id;
  }

  /** Errors: RefusedRecord; then nothing is recorded. */
  record(body: RunRecordBody): void {
    const { store, clock } = this.#options;
    const now = isoTime(clock);
    // A clock that is set back does not make time run backwards within a run.
    const at = now > this.live.run.updatedAt ? now : this.live.run.updatedAt;
    const record: RunRecord = { ...body, at };
    applyRecord(this.live, record);
    const emission: Emission = { kind: 'record', record, isSettled: this.#isBroken };
    this.#queue.push(emission);
    if (this.#isBroken) {
      this.#drain();
      return;
    }
    const settle = (): void => {
      emission.isSettled = true;
      this.#drain();
    };
    store.append(this.runId, record).then(settle, (error: unknown) => {
      this.#break(error);
      settle();
    });
  }

  /** Emits lines that the store has; a promise asks for a pause until it resolves. */
  log(jobId: string, stepNumber: number, lines: readonly string[]): Promise<void> | undefined {
    if (this.#head === this.#queue.length) {
      this.#options.events.publishLog(this.runId, jobId, stepNumber, lines);
      return undefined;
    }
    this.#queue.push({ kind: 'log', jobId, stepNumber, lines });
    this.#waitingLines += lines.length;
    return this.#waitingLines > WAITING_LINES_MAX ? this.settled() : undefined;
  }

  /** Resolves when everything so far was emitted. */
  settled(): Promise<void> {
    if (this.#head === this.#queue.length) return Promise.resolve();
    const position = this.#emittedBefore + this.#queue.length;
    return new Promise((resolve) => this.#waiters.push({ position, resolve }));
  }

  #break(error: unknown): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#options.onBroken(
      error instanceof Error
        ? error
        : new AppError('INTERNAL', 'the journal could not be written', {}, error),
    );
  }

  #drain(): void {
    this.#emit();
    const emitted = this.#emittedBefore + this.#head;
    if (this.#head === this.#queue.length || this.#head > FORGET_AFTER) {
      this.#emittedBefore = emitted;
      this.#queue.splice(0, this.#head);
      this.#head = 0;
    }
    while (this.#waiters[0] !== undefined && this.#waiters[0].position <= emitted) {
      this.#waiters.shift()?.resolve();
    }
  }

  /** Up to the first record that the disk does not have yet. */
  #emit(): void {
    const { events } = this.#options;
    for (; this.#head < this.#queue.length; this.#head += 1) {
      const next = this.#queue[this.#head];
      if (next === undefined) break;
      if (next.kind === 'log') {
        this.#waitingLines -= next.lines.length;
        events.publishLog(this.runId, next.jobId, next.stepNumber, next.lines);
        continue;
      }
      if (!next.isSettled) return;
      applyRecord(this.visible, next.record);
      const event = eventOf(this.visible, next.record);
      if (event !== undefined) events.publish(event);
    }
  }
}

/** What the streams are notified of a record that was applied to `state`; undefined for what they are not. */
function eventOf(state: RunState, record: RunRecord): RunnerEvent | undefined {
  const runId = state.run.id;
  switch (record.type) {
    case 'run.started':
    case 'run.completed':
      return { type: record.type, runId, run: runView(state) };
    case 'job.started':
    case 'job.completed': {
      const job = jobOf(state, record.jobId);
      return { type: record.type, runId, jobId: record.jobId, job };
    }
    case 'step.started':
    case 'step.completed': {
      const { jobId, number } = record;
      const step = jobOf(state, jobId).steps.find((each) => each.number === number);
      if (step === undefined) throw new AppError('INTERNAL', 'a step that is not there');
      return { type: record.type, runId, jobId, stepNumber: number, step };
    }
    default:
      return undefined;
  }
}

function jobOf(state: RunState, jobId: string): Job {
  const entry = state.jobs.get(jobId);
  if (entry === undefined) throw new AppError('INTERNAL', 'a job that is not there');
  return entry.job;
}

/**
 * The state that the records of a journal lead to, twice: one to go on with, one to show. Undefined
 * when there is none. A record that cannot follow ends it, as a torn line would; `onRefused` is reported.
 */
export function replayRecords(
  records: readonly JournalRecord[],
  onRefused: (error: Error) => void,
): StatePair | undefined {
  let live: RunState | undefined;
  let visible: RunState | undefined;
  for (const record of records as unknown as readonly RunRecord[]) {
    try {
      live = applyRecord(live, record);
      visible = applyRecord(visible, record);
    } catch (error) {
      onRefused(error instanceof Error ? error : new Error(String(error)));
      break;
    }
  }
  return live === undefined || visible === undefined ? undefined : { live, visible };
}
