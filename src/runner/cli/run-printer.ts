import type { Style, Terminal } from '../../command-line/terminal.ts';
import type { Conclusion, Job, Step, WorkflowRun } from '../model/run.ts';
import { durationText } from '../text/duration.ts';
import type { LinkEvent } from './runner-link.ts';

const JOB_STYLES: readonly Style[] = ['cyan', 'magenta', 'blue', 'yellow', 'green'];
const JOB_WIDTH_MAX = 24;
/** Of one job in the status line. */
const STATUS_LENGTH_MAX = 36;
const MARKED_LINE = /^##\[(group|endgroup|error|warning|notice|debug|command)\](.*)$/s;

type Active = { readonly since: number; step: string };

/**
 * Notifies a run while it goes on: one line for each thing that happens, the job in front of it, so that
 * it can be read when several jobs run at once; on a terminal also what is in progress and for how long.
 */
export class RunPrinter {
  readonly #terminal: Terminal;
  readonly #isQuiet: boolean;
  readonly #active = new Map<string, Active>();
  readonly #styles = new Map<string, Style>();
  /** Jobs whose lines stand in a group of the log. */
  readonly #grouped = new Set<string>();
  #width = 0;

  constructor(terminal: Terminal, isQuiet: boolean) {
    this.#terminal = terminal;
    this.#isQuiet = isQuiet;
  }

  /** The head of a run that was just started, or started again. */
  begin(run: WorkflowRun): void {
    const { ref, sha, event } = run.trigger;
    const place = [
      event,
      ref.replace(/^refs\/(heads|tags)\//, ''),
      /^0+$/.test(sha) ? '' : sha.slice(0, 7),
    ];
    const attempt = run.attempt > 1 ? ` attempt ${run.attempt}` : '';
    const title = `${this.#terminal.foreign(run.name)} #${run.runNumber}${attempt}`;
    const words = place.filter((word) => word !== '').map((word) => this.#terminal.foreign(word));
    this.#terminal.line(
      `${this.#terminal.paint(title, 'bold')}  ${this.#terminal.paint(`${this.#terminal.foreign(run.fileName)} · ${words.join(' · ')} · ${run.id}`, 'dim')}`,
    );
    this.#width = Math.min(JOB_WIDTH_MAX, Math.max(0, ...run.jobs.map(({ id }) => id.length)));
  }

  take(event: LinkEvent): void {
    switch (event.type) {
      case 'run.started':
      case 'run.completed':
      case 'reset':
      case 'lost':
        return;
      case 'gap':
        this.#terminal.line(
          this.#terminal.paint(`${event.dropped} log lines are not shown here`, 'yellow'),
        );
        return;
      case 'job.started':
        this.#active.set(event.jobId, { since: Date.now(), step: '' });
        if (!this.#isQuiet)
          this.#say(event.job.id, `${this.#terminal.paint('●', 'blue')} ${this.#name(event.job)}`);
        return;
      case 'job.completed':
        this.#active.delete(event.jobId);
        this.#say(event.jobId, `${this.mark(event.job.conclusion)} ${this.#jobResult(event.job)}`);
        return;
      case 'step.started':
        this.#stepStarted(event.jobId, event.step);
        return;
      case 'step.completed':
        this.#stepCompleted(event.jobId, event.step);
        return;
      case 'step.log':
        if (!this.#isQuiet) this.#logLine(event.jobId, event.line);
        return;
    }
  }

  /** Redraws the status line: what is in progress. */
  tick(): void {
    const now = Date.now();
    const parts = [...this.#active].map(([id, { since, step }]) => {
      const where = step === '' ? id : `${id} › ${step}`;
      return `${this.#terminal.brief(where, STATUS_LENGTH_MAX)} ${durationText(now - since)}`;
    });
    this.#terminal.status(parts.length === 0 ? '' : `⏳ ${parts.join('   ')}`);
  }

  mark(conclusion: Conclusion | undefined): string {
    switch (conclusion) {
      case 'success':
        return this.#terminal.paint('✓', 'green');
      case 'failure':
        return this.#terminal.paint('✗', 'red');
      case 'cancelled':
        return this.#terminal.paint('⊘', 'yellow');
      default:
        return this.#terminal.paint('-', 'dim');
    }
  }

  #stepStarted(jobId: string, step: Step): void {
    const active = this.#active.get(jobId);
    if (active !== undefined) active.step = step.name;
    this.#grouped.delete(jobId);
    if (!this.#isQuiet) {
      const name = this.#terminal.paint(this.#terminal.foreign(step.name), 'bold');
      this.#say(jobId, `${this.#terminal.paint('▸', 'blue')} ${name}`);
    }
  }

  #stepCompleted(jobId: string, step: Step): void {
    this.#grouped.delete(jobId);
    const isNews = step.outcome === 'failure' || step.conclusion === 'failure';
    if (this.#isQuiet && !isNews) return;
    const name = this.#terminal.foreign(step.name);
    const isForgiven = step.outcome === 'failure' && step.conclusion === 'success';
    const note = isForgiven ? ' (failed, continue-on-error)' : '';
    const time = step.durationMs === undefined ? '' : durationText(step.durationMs);
    const text =
      step.conclusion === 'skipped' ? this.#terminal.paint(`${name} skipped`, 'dim') : name;
    this.#say(
      jobId,
      `${this.mark(step.conclusion)} ${text}${note} ${this.#terminal.paint(time, 'dim')}`,
    );
  }

  #logLine(jobId: string, line: string): void {
    const [, mark, text = ''] = MARKED_LINE.exec(line) ?? [];
    if (mark === 'endgroup') {
      this.#grouped.delete(jobId);
      return;
    }
    const indent = this.#grouped.has(jobId) ? '  ' : '';
    const shown = this.#marked(mark, this.#terminal.foreign(mark === undefined ? line : text));
    this.#say(jobId, `${this.#terminal.paint('│', 'dim')} ${indent}${shown}`);
    if (mark === 'group') this.#grouped.add(jobId);
  }

  #marked(mark: string | undefined, text: string): string {
    switch (mark) {
      case 'group':
        return this.#terminal.paint(`▾ ${text}`, 'bold');
      case 'error':
        return this.#terminal.paint(`Error: ${text}`, 'red');
      case 'warning':
        return this.#terminal.paint(`Warning: ${text}`, 'yellow');
      case 'notice':
        return this.#terminal.paint(`Notice: ${text}`, 'cyan');
      case 'debug':
      case 'command':
        return this.#terminal.paint(text, 'dim');
      default:
        return text;
    }
  }

  #jobResult(job: Job): string {
    const time = job.durationMs === undefined ? '' : ` in ${durationText(job.durationMs)}`;
    const word = job.conclusion ?? job.status;
    return `${this.#name(job)} ${this.#terminal.paint(`${word}${time}`, 'dim')}`;
  }

  #name(job: Job): string {
    return this.#terminal.paint(this.#terminal.foreign(job.name), 'bold');
  }

  #say(jobId: string, text: string): void {
    let style = this.#styles.get(jobId);
    if (style === undefined) {
      style = JOB_STYLES[this.#styles.size % JOB_STYLES.length] ?? 'cyan';
      this.#styles.set(jobId, style);
    }
    const id = jobId.length > JOB_WIDTH_MAX ? `${jobId.slice(0, JOB_WIDTH_MAX - 1)}…` : jobId;
    this.#width = Math.max(this.#width, id.length);
    const prefix = this.#terminal.paint(this.#terminal.foreign(id.padEnd(this.#width)), style);
    this.#terminal.line(`${prefix} ${text}`.trimEnd());
  }
}
