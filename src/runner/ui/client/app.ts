import { durationText } from '../../text/duration.ts';
import { renderMissing, renderPage, titleOf } from '../shared/render-page.ts';
import { jobToShow } from '../shared/render-run.ts';
import { agoText, aheadText } from '../shared/times.ts';
import type { PageView } from '../shared/views.ts';
import { runActions } from './actions.ts';
import { enableDispatch } from './dispatch-form.ts';
import { JobLog } from './job-log.ts';
import { morph } from './morph.ts';
import { call, CallFailed, eventsAddress, TokenNeeded } from './session.ts';
import { askForToken } from './token-form.ts';

const REFRESH_MS = 200;
const POLL_MS = 15_000;
const TICK_MS = 1_000;
const STATES = 'run.started,run.completed,job.started,job.completed,step.started,step.completed';

/**
 * Keeps a page up to date: every event says that something changed, and the page is fetched and drawn
 * again, at most a few times a second. Logs come on streams of their own.
 */
class App {
  readonly #main: HTMLElement;
  readonly #status: HTMLElement;
  readonly #path: string;
  /** The job that the reader chose; undefined to go with what happens. */
  #chosenJob = new URLSearchParams(location.search).get('job') ?? undefined;
  #shownJob: string | undefined;
  #view: PageView | undefined;
  /** Counts connections of the event stream: logs are fetched anew after one was lost. */
  #connection = 0;
  #events: EventSource | undefined;
  #isPlanned = false;
  #isFetching = false;
  #log: { readonly key: string; readonly log: JobLog } | undefined;
  /** Steps that were opened because they began. */
  readonly #autoOpened = new WeakSet<Element>();

  constructor(main: HTMLElement, status: HTMLElement, path: string) {
    this.#main = main;
    this.#status = status;
    this.#path = path;
  }

  start(): void {
    document.documentElement.classList.add('js');
    runActions(this.#main, {
      onChanged: () => this.#soon(),
      onFailed: (error) => this.#failed(error),
      onJobChosen: (jobId) => this.#choose(jobId),
    });
    this.#main.addEventListener('toggle', (event) => this.#toggled(event), true);
    addEventListener('popstate', () => {
      this.#chosenJob = new URLSearchParams(location.search).get('job') ?? undefined;
      this.#draw();
    });
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#soon();
      else this.#pause();
    });
    setInterval(() => this.#tick(), TICK_MS);
    setInterval(() => this.#poll(), POLL_MS);
    void this.#fetch();
  }

  /** Something changed: fetch, when nobody does already, after more of it had time to come. */
  #soon(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => {
      this.#isPlanned = false;
      void this.#fetch();
    }, REFRESH_MS);
  }

  async #fetch(): Promise<void> {
    if (this.#isFetching) return this.#soon();
    this.#isFetching = true;
    try {
      const path = this.#path === '/' ? '/home' : this.#path;
      const response = await call('GET', `/api/page${path}`);
      this.#view = (await response.json()) as PageView;
      this.#say('');
      this.#draw();
      this.#listen();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#isFetching = false;
    }
  }

  #listen(): void {
    if (this.#events !== undefined || this.#view === undefined) return;
    const view = this.#view;
    const filter = view.kind === 'run' ? { types: STATES, runId: view.run.id } : { types: STATES };
    const events = new EventSource(eventsAddress(filter));
    this.#events = events;
    for (const type of [...STATES.split(','), 'reset', 'gap']) {
      events.addEventListener(type, () => this.#soon());
    }
    events.addEventListener('error', () => {
      this.#say('The connection was lost. Trying again…');
      // The browser comes back with Last-Event-ID by itself, unless it was refused.
      if (events.readyState !== EventSource.CLOSED) return;
      this.#events = undefined;
    });
    // What happened before the stream was there, or between two of them.
    events.addEventListener('open', () => {
      this.#connection += 1;
      this.#soon();
    });
  }

  /** A browser opens six connections to a host: tabs that nobody sees leave them to others. */
  #pause(): void {
    this.#events?.close();
    this.#events = undefined;
    this.#log?.log.close();
    this.#log = undefined;
  }

  #draw(): void {
    const view = this.#view;
    if (view === undefined) return;
    const jobId = this.#jobId(view);
    morph(this.#main, renderPage(view, { jobId, now: Date.now() }).text);
    document.title = `${titleOf(view)} · Gatehouse runner`;
    const form = this.#main.querySelector<HTMLFormElement>('form[data-workflow]');
    if (form !== null && form.dataset['ready'] === undefined) {
      form.dataset['ready'] = '';
      enableDispatch(form, () => this.#failed(new TokenNeeded()));
    }
    if (view.kind === 'run') this.#showLogs(view.run.id, jobId);
  }

  /** A job that was shown because it ran stays until it ended well and another one goes on or failed. */
  #jobId(view: PageView): string | undefined {
    if (view.kind !== 'run') return undefined;
    if (this.#chosenJob !== undefined) return this.#chosenJob;
    const shown = view.run.jobs.find(({ id }) => id === this.#shownJob);
    const next = jobToShow(view.run);
    const isNews =
      next?.conclusion === 'failure' ||
      (view.run.conclusion === 'failure' && next?.conclusion === 'cancelled') ||
      next?.status === 'in_progress';
    const isBusy = shown?.status === 'in_progress' || shown?.conclusion === 'failure';
    if (shown === undefined || (isNews && !isBusy)) this.#shownJob = next?.id;
    return this.#shownJob;
  }

  #showLogs(runId: string, jobId: string | undefined): void {
    const panel = this.#main.querySelector<HTMLElement>('.job-panel');
    const hasLog = panel?.querySelector('details[data-step]') !== null;
    const connection = Math.max(1, this.#connection);
    const key = `${jobId ?? ''} ${panel?.dataset['attempt'] ?? ''} ${connection}`;
    if (this.#log?.key !== key) {
      this.#log?.log.close();
      this.#log = undefined;
    }
    if (panel === null || panel === undefined || jobId === undefined || !hasLog) return;
    this.#log ??= { key, log: new JobLog(runId, jobId) };
    for (const step of panel.querySelectorAll<HTMLDetailsElement>('details[data-step]')) {
      this.#openOrClose(step);
      if (step.open) this.#showStep(step);
    }
  }

  /** A step is open while it runs and when it failed; what the reader opened or closed stays. */
  #openOrClose(step: HTMLDetailsElement): void {
    const { state, seen } = step.dataset;
    if (seen === state) return;
    step.dataset['seen'] = state ?? '';
    if (state === 'in_progress' || state === 'failure') {
      if (seen === undefined || !step.hasAttribute('data-chosen')) {
        this.#autoOpened.add(step);
        step.open = true;
      }
    } else if (this.#autoOpened.has(step) && !step.hasAttribute('data-chosen')) {
      step.open = false;
    }
  }

  #showStep(step: HTMLDetailsElement): void {
    const container = step.querySelector<HTMLElement>('.log');
    if (container === null) return;
    this.#log?.log.show(Number(step.dataset['step']), container);
  }

  #toggled(event: Event): void {
    const step = event.target;
    if (step instanceof HTMLDetailsElement && step.dataset['step'] !== undefined && step.open) {
      this.#showStep(step);
    }
  }

  #choose(jobId: string): void {
    this.#chosenJob = jobId;
    const address = new URL(location.href);
    address.searchParams.set('job', jobId);
    history.pushState(null, '', address);
    this.#draw();
  }

  #failed(error: unknown): void {
    if (error instanceof TokenNeeded) {
      this.#events?.close();
      this.#events = undefined;
      askForToken(this.#main, () => void this.#fetch());
    } else if (error instanceof CallFailed) {
      this.#say(error.message);
      // With a token the server could not say so itself.
      if (this.#view === undefined) morph(this.#main, renderMissing(error.message).text);
    } else if (error instanceof TypeError) {
      this.#say('The runner does not answer. Trying again…');
    } else throw error;
  }

  #say(text: string): void {
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  /** Queued runs are emitted by no event; and a stream may have been refused. */
  #poll(): void {
    if (document.visibilityState === 'visible') this.#soon();
  }

  #tick(): void {
    const now = Date.now();
    for (const element of document.querySelectorAll<HTMLElement>('[data-since]')) {
      element.textContent = durationText(now - Date.parse(element.dataset['since'] ?? ''));
    }
    for (const element of document.querySelectorAll<HTMLElement>('[data-ago]')) {
      element.textContent = agoText(element.dataset['ago'] ?? '', now);
    }
    for (const element of document.querySelectorAll<HTMLElement>('[data-ahead]')) {
      element.textContent = aheadText(element.dataset['ahead'] ?? '', now);
    }
  }
}

const main = document.querySelector<HTMLElement>('#main');
const status = document.querySelector<HTMLElement>('#status');
const path = document.body.dataset['path'];
if (main !== null && status !== null && path !== undefined) new App(main, status, path).start();
