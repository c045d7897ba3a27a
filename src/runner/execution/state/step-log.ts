import type { JobReport } from '../../model/execution.ts';
import type { Annotation, AnnotationLevel } from '../../model/run.ts';
import type { SessionOutput } from '../../step-output/command-session.ts';
import type { Masker } from '../../step-output/masker.ts';
import {
  ANNOTATION_CHARACTERS_MAX,
  ANNOTATIONS_PER_LEVEL_MAX,
  SUMMARY_CHARACTERS_MAX,
} from './limits.ts';

/** The place in a file that an annotation is about. */
export type AnnotationPlace = Omit<Annotation, 'level' | 'message' | 'jobId' | 'stepNumber'>;

/** Bytes of log that are left to a job. */
export class LogBudget {
  readonly #bytesMax: number;
  #bytesLeft: number;
  #isMarked = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#bytesLeft = bytesMax;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  get isExhausted(): boolean {
    return this.#bytesLeft <= 0;
  }

  /** The lines that still fit. `bytes` of all of them together, when it is known already. */
  take(lines: readonly string[], bytes: number = bytesOf(lines)): readonly string[] {
    if (bytes <= this.#bytesLeft) {
      this.#bytesLeft -= bytes;
      return lines;
    }
    let count = 0;
    for (const line of lines) {
      const size = bytesOf([line]);
      if (size > this.#bytesLeft) break;
      this.#bytesLeft -= size;
      count += 1;
    }
    this.#bytesLeft = 0;
    return lines.slice(0, count);
  }

  /** True for the first caller only. */
  mark(): boolean {
    const isFirst = !this.#isMarked;
    this.#isMarked = true;
    return isFirst;
  }
}

/** In UTF-8, with a line end each. */
function bytesOf(lines: readonly string[]): number {
  let bytes = lines.length;
  for (const line of lines) bytes += Buffer.byteLength(line);
  return bytes;
}

/** Where a step says things: masked, counted, and handed to the report under the step's number. */
export class StepLog {
  readonly number: number;
  readonly #jobId: string;
  readonly #report: JobReport;
  readonly #masker: Masker;
  readonly #budget: LogBudget;
  #summary = '';
  readonly #annotationCounts: Record<AnnotationLevel, number> = { notice: 0, warning: 0, error: 0 };

  constructor(
    number: number,
    job: {
      readonly jobId: string;
      readonly report: JobReport;
      readonly masker: Masker;
      readonly budget: LogBudget;
    },
  ) {
    this.number = number;
    this.#jobId = job.jobId;
    this.#report = job.report;
    this.#masker = job.masker;
    this.#budget = job.budget;
  }

  /**
   * Whole lines, masked already. `bytes` of them all, line ends included, when it is known. A promise
   * asks for a pause.
   */
  write(lines: readonly string[], bytes?: number): Promise<void> | undefined {
    if (lines.length === 0) return undefined;
    if (this.#budget.isExhausted) return this.#markEnd();
    const taken = this.#budget.take(lines, bytes);
    const pause = taken.length > 0 ? this.#report.log(this.number, taken) : undefined;
    return taken.length < lines.length ? (this.#markEnd() ?? pause) : pause;
  }

  /** What a step's own commands gave. */
  writeOutput(output: SessionOutput, bytes?: number): Promise<void> | undefined {
    for (const annotation of output.annotations) {
      if (this.#isAdmitted(annotation.level)) this.#report.annotate(annotation);
    }
    return this.write(output.lines, bytes);
  }

  /** A line from the runner itself, or several. */
  say(text: string): void {
    void this.write(this.#masker.mask(text).split('\n'));
  }

  /** A line `##[error]…` and an annotation. */
  error(message: string, place?: AnnotationPlace): void {
    this.say(`##[error]${message}`);
    this.annotate('error', message, place);
  }

  warn(message: string, place?: AnnotationPlace): void {
    this.say(`##[warning]${message}`);
    this.annotate('warning', message, place);
  }

  /** The annotation alone; those above the limit of their level are left out, as on GitHub. */
  annotate(level: AnnotationLevel, message: string, place: AnnotationPlace = {}): void {
    if (!this.#isAdmitted(level)) return;
    const { title, file, ...position } = place;
    this.#report.annotate({
      ...position,
      level,
      message: this.#masker.mask(message).slice(0, ANNOTATION_CHARACTERS_MAX),
      ...(title === undefined ? {} : { title: this.#masker.mask(title) }),
      ...(file === undefined ? {} : { file: this.#masker.mask(file) }),
      jobId: this.#jobId,
      stepNumber: this.number,
    });
  }

  /** Masked Markdown. The steps of a composite action add to that of the step which uses it. */
  addSummary(markdown: string): void {
    if (this.#summary.length + markdown.length > SUMMARY_CHARACTERS_MAX) {
      this.error(
        `The summary exceeds ${SUMMARY_CHARACTERS_MAX} characters; what follows is left out`,
      );
      return;
    }
    this.#summary += markdown;
    this.#report.summary(this.number, this.#summary);
  }

  /** Counts what the runner says and what commands say together, over all parts of a composite action. */
  #isAdmitted(level: AnnotationLevel): boolean {
    this.#annotationCounts[level] += 1;
    return this.#annotationCounts[level] <= ANNOTATIONS_PER_LEVEL_MAX;
  }

  #markEnd(): Promise<void> | undefined {
    if (!this.#budget.mark()) return undefined;
    const text = `The job has written its ${this.#budget.bytesMax} bytes of log; what follows is discarded`;
    this.annotate('warning', text);
    return this.#report.log(this.number, [`##[warning]${text}`]);
  }
}
