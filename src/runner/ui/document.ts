import { AppError } from '../../shared/app-error.ts';
import { PAGE_SCRIPT } from './assets.ts';
import { html, type SafeHtml } from './shared/html.ts';
import { renderMissing, renderPage, titleOf } from './shared/render-page.ts';
import type { RunRendering } from './shared/render-run.ts';
import type { PageView } from './shared/views.ts';

/** Seconds after which a reader without JavaScript gets a run that goes on again. */
const RELOAD_SECONDS = 5;

export type PagePlace = {
  /** That of the page, which the script shows; '' when there is nothing to keep up to date. */
  readonly path: string;
  /** The project's folder; '' where it is not to be reported. */
  readonly workspace: string;
};

/** A whole page. Without a view the browser fetches it: it needs the token. */
export function renderDocument(
  view: PageView | undefined,
  { path, workspace }: PagePlace,
  rendering: Partial<RunRendering>,
): string {
  if (view === undefined) {
    const main = html`<noscript
      ><p class="empty">This runner wants a token, which needs JavaScript to be given.</p></noscript
    >`;
    return frame('Runner', main, { path, workspace: '' }, false);
  }
  const { jobId, tails, now = Date.now() } = rendering;
  const isLive = view.kind === 'run' && view.run.completedAt === undefined;
  return frame(titleOf(view), renderPage(view, { jobId, now, tails }), { path, workspace }, isLive);
}

/** A page for what cannot be shown. */
export function renderProblem(error: unknown): string {
  const text = error instanceof AppError ? error.message : 'This cannot be shown.';
  const main = renderMissing(text);
  return frame('Not here', main, { path: '', workspace: '' }, false);
}

function frame(
  title: string,
  main: SafeHtml,
  { path, workspace }: PagePlace,
  isLive: boolean,
): string {
  const reload = isLive
    ? html`<noscript><meta http-equiv="refresh" content="${RELOAD_SECONDS}" /></noscript>`
    : null;
  const script = path === '' ? null : html`<script type="module" src="${PAGE_SCRIPT}"></script>`;
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>${title} · Gatehouse runner</title>
      <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
      <link rel="stylesheet" href="/assets/page.css" />
      ${reload}${script}
    </head>
    <body data-path="${path}">
      <a class="skip" href="#main">Skip to content</a>
      <header class="top">
        <a class="brand" href="/"
          ><img src="/assets/icon.svg" alt="" width="22" height="22" />Gatehouse runner</a
        >
        <span class="workspace" title="the project">${workspace}</span>
        <p id="status" role="status" aria-live="polite"></p>
      </header>
      <main id="main" tabindex="-1">${main}</main>
    </body>
  </html>`;
  return `<!doctype html>\n${page.text}\n`;
}
