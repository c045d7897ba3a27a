import type { EventPublisher, RunnerEvent } from '../model/events.ts';
import type { LogQuery, RunService } from '../model/ports.ts';
import type { Job, Step } from '../model/run.ts';
import { findLine, linesAt, linesOf, type LogPage, type LogSearch } from './log-pages.ts';
import { RunFeed, type FeedItem } from './run-feed.ts';

/** Run, job and number of a step. */
export type LogPlace = Parameters<ReadLog>;

/** Reads what is on disk of the log of a step: whole lines. */
export type ReadLog = (
  runId: string,
  jobId: string,
  stepNumber: number,
) => AsyncIterable<Uint8Array>;

const HEADER_AT_START = /^(?:=== Job:|--- Step)/;

/**
 * `GET /api/runs/:id/logs?follow=1`: what is on disk, then lines as they come, until the run ends.
 * Lines are on disk before they are emitted, so that the count of lines emitted of each step says
 * which of them a reader has seen: each line is written once, whatever overtakes what.
 */
export class LogFollower implements EventPublisher {
  readonly #runs: () => RunService;
  readonly #readLog: ReadLog;
  readonly #feeds = new Map<string, Set<RunFeed>>();
  /** Lines emitted, by run and then by step, of runs in progress. */
  readonly #counts = new Map<string, Map<string, number>>();

  constructor(runs: () => RunService, readLog: ReadLog) {
    this.#runs = runs;
    this.#readLog = readLog;
  }

  publish(event: RunnerEvent): void {
    const { runId } = event;
    if (event.type === 'step.log') {
      this.publishLog(runId, event.jobId, event.stepNumber, [event.line]);
      return;
    }
    if (event.type === 'step.started') {
      this.#countsOf(runId).set(keyOf(event.jobId, event.stepNumber), 0);
    } else if (event.type === 'step.completed') {
      this.#report(runId, { kind: 'step', jobId: event.jobId, step: event.step });
    } else if (event.type === 'run.completed') {
      this.#counts.delete(runId);
      this.#report(runId, { kind: 'end' });
    }
  }

  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void {
    const counts = this.#countsOf(runId);
    const key = keyOf(jobId, stepNumber);
    const first = counts.get(key) ?? 0;
    counts.set(key, first + lines.length);
    this.#report(runId, { kind: 'lines', jobId, stepNumber, first, lines });
  }

  /** The log of a run in progress in the form of the contract, growing; a step appears with its first line. */
  async *follow(runId: string, query: LogQuery): AsyncGenerator<string> {
    const feed = new RunFeed();
    const feeds = this.#feeds.get(runId) ?? new Set();
    this.#feeds.set(runId, feeds.add(feed));
    const text = new FollowedText(query);
    try {
      yield* this.#fromDisk(runId, text, query);
      // The run may have ended before the feed was there.
      while (this.#runs().get(runId)?.completedAt === undefined) {
        const item = await feed.next();
        if (item.kind === 'end') break;
        if (item.kind === 'lost') yield* this.#fromDisk(runId, text, {});
        else yield text.ofItem(item, this.#jobOf(runId, item.jobId));
      }
      yield* this.#fromDisk(runId, text, {});
    } finally {
      feeds.delete(feed);
      if (feeds.size === 0) this.#feeds.delete(runId);
    }
  }

  /** What was not written yet of every step that began. */
  async *#fromDisk(runId: string, text: FollowedText, query: LogQuery): AsyncGenerator<string> {
    for (const job of this.#runs().get(runId)?.jobs ?? []) {
      for (const step of job.steps) {
        if (!text.wants(job.id, step.number)) continue;
        if (step.startedAt !== undefined) {
          yield* text.ofFile(job, step, this.#readLog(runId, job.id, step.number), query.tail);
        }
        if (step.status === 'completed') yield text.header(job, step);
      }
    }
  }

  /** Lines of one step, by their numbers. Errors: those of reading. */
  lines(place: LogPlace, first: number, count: number): Promise<LogPage> {
    return linesAt(this.#readLog(...place), first, count);
  }

  /** The number of the next line of one step that has the text. Errors: those of reading. */
  find(place: LogPlace, search: LogSearch): Promise<number | undefined> {
    return findLine(this.#readLog(...place), search);
  }

  #jobOf(runId: string, jobId: string): Job | undefined {
    return this.#runs()
      .get(runId)
      ?.jobs.find(({ id }) => id === jobId);
  }

  #countsOf(runId: string): Map<string, number> {
    let counts = this.#counts.get(runId);
    if (counts === undefined) this.#counts.set(runId, (counts = new Map()));
    return counts;
  }

  #report(runId: string, item: FeedItem): void {
    const feeds = this.#feeds.get(runId);
    if (feeds === undefined) return;
    for (const feed of feeds) feed.push(item);
  }
}

/** What one reader was given so far. */
class FollowedText {
  readonly #query: LogQuery;
  /** Lines of each step that were written or left out by `tail`. */
  readonly #seen = new Map<string, number>();
  #currentJob = '';
  #currentStep = '';

  constructor(query: LogQuery) {
    this.#query = query;
  }

  wants(jobId: string, stepNumber: number): boolean {
    const { jobId: job, stepNumber: step } = this.#query;
    return (job === undefined || job === jobId) && (step === undefined || step === stepNumber);
  }

  /** The header of a step that was not shown yet, '' otherwise. */
  header(job: Job, step: Step): string {
    const key = keyOf(job.id, step.number);
    if (this.#seen.has(key)) return '';
    this.#seen.set(key, 0);
    return this.#headers(job, step, key, 0);
  }

  /** The lines of a feed item that are new. */
  ofItem(item: Exclude<FeedItem, { kind: 'end' }>, job: Job | undefined): string {
    const number = item.kind === 'step' ? item.step.number : item.stepNumber;
    if (job === undefined || !this.wants(job.id, number)) return '';
    if (item.kind === 'step') return this.header(job, item.step);
    const step = job.steps.find((one) => one.number === number);
    if (step === undefined) return '';
    const seen = this.#seen.get(keyOf(job.id, number)) ?? 0;
    return this.#lines(job, step, item.lines.slice(Math.max(0, seen - item.first)), seen);
  }

  /** The lines of a file that are new; of those of the first reading only the last `tail`. */
  async *ofFile(
    job: Job,
    step: Step,
    chunks: AsyncIterable<Uint8Array>,
    tail: number | undefined,
  ): AsyncGenerator<string> {
    const key = keyOf(job.id, step.number);
    const skip = this.#seen.get(key) ?? 0;
    let count = 0;
    let last: string[] = [];
    for await (const lines of linesOf(chunks)) {
      const fresh = lines.slice(Math.max(0, skip - count));
      count += lines.length;
      if (tail === undefined) {
        yield this.#lines(job, step, fresh, count - fresh.length);
      } else {
        last.push(...fresh);
        if (last.length > tail) last = tail === 0 ? [] : last.slice(-tail);
      }
    }
    if (tail === undefined) return;
    yield this.#lines(job, step, last, count - last.length);
    if (count > 0) this.#seen.set(key, count);
  }

  #lines(job: Job, step: Step, lines: readonly string[], first: number): string {
    if (lines.length === 0) return '';
    const key = keyOf(job.id, step.number);
    const isNext = this.#currentStep === key && this.#seen.get(key) === first;
    const isSame = this.#query.isNumbered === true ? isNext : this.#currentStep === key;
    let text = isSame ? '' : this.#headers(job, step, key, first);
    for (const line of lines) text += `${HEADER_AT_START.test(line) ? ' ' : ''}${line}\n`;
    this.#seen.set(key, first + lines.length);
    return text;
  }

  /** `first`: lines of the step before the one below. */
  #headers(job: Job, step: Step, key: string, first: number): string {
    let text = '';
    if (this.#currentJob !== job.id) {
      const gap = this.#currentJob === '' ? '' : '\n';
      text = `${gap}=== Job: ${job.id} (${oneLine(job.name)}) ===\n`;
      this.#currentJob = job.id;
    }
    this.#currentStep = key;
    const state = step.conclusion ?? step.status;
    const place = this.#query.isNumbered === true ? ` from line ${first + 1}` : '';
    return `${text}--- Step ${step.number}${place}: ${oneLine(step.name)} [${state}] ---\n`;
  }
}

function keyOf(jobId: string, stepNumber: number): string {
  return `${stepNumber} ${jobId}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}
