import { html, type SafeHtml } from './html.ts';
import { renderHome } from './render-home.ts';
import { renderRun, type RunRendering } from './render-run.ts';
import { renderWorkflow } from './render-workflow.ts';
import type { PageView } from './views.ts';

/** What stands in <main>. */
export function renderPage(view: PageView, rendering: RunRendering): SafeHtml {
  switch (view.kind) {
    case 'home':
      return renderHome(view, rendering.now);
    case 'workflow':
      return renderWorkflow(view, rendering.now);
    case 'run':
      return renderRun(view, rendering);
  }
}

/** What stands there when it cannot be shown. */
export function renderMissing(reason: string): SafeHtml {
  return html`<div class="title">
    <h1>Not here</h1>
    <p>${reason}</p>
    <p><a href="/">All runs</a></p>
  </div>`;
}

/** The title of the window. */
export function titleOf(view: PageView): string {
  switch (view.kind) {
    case 'home':
      return 'Runs';
    case 'workflow':
      return view.info.name;
    case 'run':
      return `${view.run.name} #${view.run.runNumber}: ${view.run.conclusion ?? view.run.status}`;
  }
}
