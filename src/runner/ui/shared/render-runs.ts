import type { WorkflowRun } from '../../model/run.ts';
import { html, type SafeHtml } from './html.ts';
import { stateIcon, type IconState } from './icons.ts';
import { ago, elapsed } from './times.ts';

/** The conclusion once there is one: it says more than the status. */
export function stateOf(thing: {
  readonly status: IconState;
  readonly conclusion?: IconState | undefined;
}): IconState {
  return thing.conclusion ?? thing.status;
}

export function runPath(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}

export function workflowPath(fileName: string): string {
  return `/workflows/${encodeURIComponent(fileName)}`;
}

/** refs/heads/main as people say it. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(heads|tags)\//, '').replace(/^([0-9a-f]{7})[0-9a-f]{33}$/, '$1');
}

/** Runs, newest first. */
export function renderRuns(runs: readonly WorkflowRun[], now: number, empty: string): SafeHtml {
  if (runs.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<ul class="runs">
    ${runs.map((run) => runRow(run, now))}
  </ul>`;
}

function runRow(run: WorkflowRun, now: number): SafeHtml {
  const { id, name, workflow, runNumber, attempt, trigger, createdAt, jobs } = run;
  const title = name === workflow ? null : html`<span class="muted">${workflow}</span> `;
  const ref = shortRef(trigger.ref);
  const done = jobs.filter((job) => job.status === 'completed').length;
  const progress =
    run.status === 'in_progress'
      ? html`<span class="muted">${done} of ${jobs.length} jobs</span>`
      : null;
  return html`<li data-key="run-${id}">
    <a class="run" href="${runPath(id)}">
      ${stateIcon(stateOf(run))}
      <span class="run-name"
        ><strong>${name}</strong
        ><span class="run-about"
          >${title}#${runNumber}${attempt > 1 ? `, attempt ${attempt}` : ''} ·
          ${trigger.event}${ref === '' ? null : html` · <span class="ref">${ref}</span>`}</span
        ></span
      >
      <span class="run-times"
        >${progress}${elapsed(run, now)}<span class="muted">${ago(createdAt, now)}</span></span
      >
    </a>
  </li>`;
}
