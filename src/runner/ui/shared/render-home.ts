import type { WorkflowInfo } from '../../model/workflow-info.ts';
import { html, type SafeHtml } from './html.ts';
import { renderRuns, workflowPath } from './render-runs.ts';
import { isOnlyCalled } from './render-workflow.ts';
import type { HomeView } from './views.ts';

/** The first page: runs beside the workflows. */
export function renderHome(view: HomeView, now: number): SafeHtml {
  const more = view.hasMore
    ? html`<p class="muted">
        Older runs are in <a href="/api/runs?limit=1000" data-api>the list of all runs</a>.
      </p>`
    : null;
  return html`<div class="columns">
    <section class="side" aria-labelledby="workflows-title">
      <h2 id="workflows-title">Workflows</h2>
      ${
        view.workflows.length === 0
          ? html`<p class="empty">
              There are no workflow files in <code>.github/workflows</code>.
            </p>`
          : html`<ul class="workflows">
              ${view.workflows.map(workflowRow)}
            </ul>`
      }
    </section>
    <section class="wide" aria-labelledby="runs-title">
      <h1 id="runs-title">Runs</h1>
      ${renderRuns(view.runs, now, 'Nothing has run yet. Choose a workflow to start one.')}${more}
    </section>
  </div>`;
}

function workflowRow({ name, fileName, triggers, errors = [] }: WorkflowInfo): SafeHtml {
  const about = errors.length === 0 ? triggers.join(', ') : null;
  const canStart = errors.length === 0 && !isOnlyCalled(triggers);
  const go = canStart ? html`<span class="go">Run…</span>` : null;
  return html`<li data-key="workflow-${fileName}">
    <a class="workflow" href="${workflowPath(fileName)}">
      <strong>${name}</strong
      ><span class="muted"
        >${name === fileName ? null : html`${fileName} · `}${about}${errors.length === 0 ? null : html`<span class="bad">${errors.length} ${errors.length === 1 ? 'error' : 'errors'}</span>`}</span
      >${go}</a
    >
  </li>`;
}
