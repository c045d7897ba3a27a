import { LogLines } from '../shared/log-lines.ts';
import { LogSections } from '../shared/log-sections.ts';
import { LogView, type LogSource } from './log-view.ts';
import { call } from './session.ts';

const RETRY_MS = 2_000;
/** Lines of each step that are fetched. */
const TAIL_LINES = 200_000;

/**
 * The logs of one attempt of one job: one stream that goes on until the run ends, its lines handed to
 * the views of the steps. A stream that breaks is begun anew, from the start.
 */
export class JobLog {
  readonly #path: string;
  readonly #base: string;
  readonly #job: string;
  readonly #lines = new Map<number, LogLines>();
  readonly #views = new Map<number, LogView>();
  readonly #closing = new AbortController();

  constructor(runId: string, jobId: string) {
    const tail = String(TAIL_LINES);
    const query = new URLSearchParams({ job: jobId, follow: '1', numbered: '1', tail });
    this.#base = `/api/runs/${encodeURIComponent(runId)}/logs`;
    this.#job = jobId;
    this.#path = `${this.#base}?${query.toString()}`;
    void this.#follow();
  }

  /** Shows the log of a step in `container`. Once for each step. */
  show(stepNumber: number, container: HTMLElement): void {
    if (this.#views.has(stepNumber)) {
      this.#views.get(stepNumber)?.refresh();
      return;
    }
    const source: LogSource = {
      load: (first, count) => this.#ask(stepNumber, 'lines', { first, count }),
      find: (text, from, backward) => this.#ask(stepNumber, 'search', { text, from, backward }),
    };
    const name = container.dataset['name'] ?? '';
    this.#views.set(stepNumber, new LogView(container, name, this.#linesOf(stepNumber), source));
  }

  close(): void {
    this.#closing.abort();
  }

  async #follow(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#read();
        return;
      } catch (error) {
        if (this.#closing.signal.aborted || !(error instanceof TypeError)) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        for (const lines of this.#lines.values()) lines.clear();
        for (const view of this.#views.values()) view.refresh();
      }
    }
  }

  async #read(): Promise<void> {
    const response = await call('GET', this.#path);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    this.#closing.signal.addEventListener('abort', () => void reader?.cancel());
    const sections = new LogSections((step, lines, first) => this.#take(step, lines, first));
    for (;;) {
      const part = await reader?.read();
      if (part?.value === undefined) return;
      sections.push(part.value);
    }
  }

  #take(step: number, lines: readonly string[], first: number): void {
    const view = this.#views.get(step);
    this.#linesOf(step).add(first, lines, view?.place);
    view?.refresh();
  }

  #linesOf(step: number): LogLines {
    let lines = this.#lines.get(step);
    if (lines === undefined) this.#lines.set(step, (lines = new LogLines()));
    return lines;
  }

  async #ask<T>(
    step: number,
    what: 'lines' | 'search',
    given: Readonly<Record<string, string | number | boolean>>,
  ): Promise<T> {
    const query = new URLSearchParams({ job: this.#job, step: String(step) });
    for (const [name, value] of Object.entries(given)) query.set(name, String(value));
    const response = await call('GET', `${this.#base}/${what}?${query.toString()}`);
    return (await response.json()) as T;
  }
}
