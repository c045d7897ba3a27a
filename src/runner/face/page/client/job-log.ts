import { LogSections } from '../shared/log-sections.ts';
import { LogView } from './log-view.ts';
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
  readonly #lines = new Map<number, string[]>();
  readonly #views = new Map<number, LogView>();
  readonly #closing = new AbortController();

  constructor(runId: string, jobId: string) {
    const query = new URLSearchParams({ job: jobId, follow: '1', tail: String(TAIL_LINES) });
    this.#path = `/api/runs/${encodeURIComponent(runId)}/logs?${query.toString()}`;
    void this.#follow();
  }

  /** Shows the log of a step in `container`. Once for each step. */
  show(stepNumber: number, container: HTMLElement): void {
    if (this.#views.has(stepNumber)) {
      this.#views.get(stepNumber)?.refresh();
      return;
    }
    const view = new LogView(container, container.dataset['name'] ?? '');
    this.#views.set(stepNumber, view);
    view.add(this.#lines.get(stepNumber) ?? []);
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
        this.#lines.clear();
        for (const view of this.#views.values()) view.clear();
      }
    }
  }

  async #read(): Promise<void> {
    const response = await call('GET', this.#path);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    this.#closing.signal.addEventListener('abort', () => void reader?.cancel());
    const sections = new LogSections((step, lines) => this.#take(step, lines));
    for (;;) {
      const part = await reader?.read();
      if (part?.value === undefined) return;
      sections.push(part.value);
    }
  }

  #take(step: number, lines: readonly string[]): void {
    const known = this.#lines.get(step) ?? [];
    for (const line of lines) known.push(line);
    this.#lines.set(step, known);
    this.#views.get(step)?.add(lines);
  }
}
