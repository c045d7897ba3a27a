import type { Annotation, Artifact, Job, Step, WorkflowRun } from '../../model/run.ts';
import { fileNameOf } from '../../text/artifact-file.ts';
import { sizeText } from '../../text/duration.ts';
import { html, webAddress, type SafeHtml } from './html.ts';
import { stateIcon, stateWord } from './icons.ts';
import { markdown } from './markdown.ts';
import { runPath, shortRef, stateOf, workflowPath } from './render-runs.ts';
import { ago, elapsed } from './times.ts';
import type { RunView } from './views.ts';

export type RunRendering = {
  readonly jobId: string | undefined;
  readonly now: number;
  /** Last lines of the steps of that job, for readers without JavaScript. */
  readonly tails?: ReadonlyMap<number, readonly string[]> | undefined;
};

/**
 * The job to show when nobody chose one: one that failed, else one that runs, else of a run that failed one
 * that was cancelled, as one that timed out is, else the first that ran.
 */
export function jobToShow(run: WorkflowRun): Job | undefined {
  const { jobs } = run;
  const hasFailed = run.conclusion === 'failure';
  return (
    jobs.find(({ conclusion }) => conclusion === 'failure') ??
    jobs.find(({ status }) => status === 'in_progress') ??
    jobs.find(({ conclusion }) => hasFailed && conclusion === 'cancelled') ??
    jobs.find(({ startedAt }) => startedAt !== undefined) ??
    jobs[0]
  );
}

export function renderRun(view: RunView, rendering: RunRendering): SafeHtml {
  const { run, annotations, summary, artifacts } = view;
  const job = run.jobs.find(({ id }) => id === rendering.jobId) ?? jobToShow(run);
  return html`${runHead(run, rendering.now)}
    <div class="columns run-page">
      <nav class="side" aria-label="Jobs">
        <h2>Jobs</h2>
        <ul class="jobs">
          ${run.jobs.map((one) => jobRow(run, one, one === job, rendering.now))}
        </ul>
      </nav>
      <div class="wide">
        ${job === undefined ? null : jobPanel(run, job, rendering)}
        ${annotations.length === 0 ? null : annotationList(annotations)}
        ${
          summary.trim() === ''
            ? null
            : html`<section data-key="summary" class="card summary" aria-labelledby="summary-title">
                <h2 id="summary-title">Summary</h2>
                <div class="markdown">${markdown(summary)}</div>
              </section>`
        }
        ${artifacts.length === 0 ? null : artifactList(run, artifacts)} ${about(run)}
      </div>
    </div>`;
}

function runHead(run: WorkflowRun, now: number): SafeHtml {
  const { name, workflow, fileName, runNumber, attempt, trigger, createdAt } = run;
  const state = stateOf(run);
  const ref = shortRef(trigger.ref);
  return html`<div class="title run-title" data-key="head">
    <div class="run-head">
      ${stateIcon(state)}
      <h1>${name} <span class="muted">#${runNumber}</span></h1>
    </div>
    <p class="muted">
      <a href="${workflowPath(fileName)}">${workflow}</a> ·
      <span data-state="${state}">${stateWord(state)}</span
      >${attempt > 1 ? ` · attempt ${attempt}` : null} ·
      ${trigger.event}${ref === '' ? null : html` · <span class="ref">${ref}</span>`} ·
      ${ago(createdAt, now)} · ${elapsed(run, now)}
    </p>
    ${
      run.waitingFor === undefined
        ? null
        : html`<p class="notice">
            This run is for a pull request of another repository, and waits until somebody approves
            it. It gets no secrets and is kept apart from this machine as far as that can be done;
            look at what it changes first.
          </p>`
    }
    <div class="actions js-only">${actions(run)}</div>
  </div>`;
}

function actions(run: WorkflowRun): SafeHtml {
  if (run.completedAt === undefined) {
    const approve =
      run.waitingFor === undefined
        ? null
        : html`<button type="button" data-action="approve">Approve run</button>`;
    return run.cancelRequestedAt === undefined
      ? html`${approve}<button type="button" data-action="cancel">Cancel run</button>`
      : html`<button type="button" class="danger" data-action="cancel">Force cancel</button>`;
  }
  const hasFailed = run.jobs.some(
    ({ conclusion }) => conclusion === 'failure' || conclusion === 'cancelled',
  );
  return html`${hasFailed ? html`<button type="button" data-action="rerun-failed">Re-run failed jobs</button>` : null}<button
      type="button"
      data-action="rerun"
    >
      Re-run all jobs
    </button>`;
}

function jobRow(run: WorkflowRun, job: Job, isShown: boolean, now: number): SafeHtml {
  const needs =
    job.needs.length === 0 ? null : html`<span class="needs">after ${job.needs.join(', ')}</span>`;
  const link = `${runPath(run.id)}?job=${encodeURIComponent(job.id)}`;
  return html`<li data-key="job-${job.id}">
    <a
      class="job"
      href="${link}"
      data-job="${job.id}"
      ${isShown ? html` aria-current="true"` : null}
      >${stateIcon(stateOf(job))}<span class="job-name">${job.name}${needs}</span
      >${elapsed(job, now)}</a
    >
  </li>`;
}

function jobPanel(run: WorkflowRun, job: Job, { now, tails }: RunRendering): SafeHtml {
  const { environment } = job;
  const url = environment?.url === undefined ? undefined : webAddress(environment.url);
  const place =
    environment === undefined
      ? null
      : html` ·
          <span class="ref">${environment.name}</span
          >${url === undefined ? null : html` <a href="${url}" rel="noreferrer noopener" target="_blank">${url}</a>`}`;
  const raw = `/api/runs/${encodeURIComponent(run.id)}/logs?job=${encodeURIComponent(job.id)}`;
  const rerun =
    run.completedAt === undefined
      ? null
      : html`<button
          type="button"
          class="small js-only"
          data-action="rerun-job"
          data-job="${job.id}"
        >
          Re-run job
        </button>`;
  const outputs = Object.entries(job.outputs);
  return html`<section
    class="card job-panel"
    data-key="panel-${job.id}"
    data-attempt="${job.attempt}"
    aria-labelledby="job-title"
  >
    <header>
      <h2 id="job-title">${stateIcon(stateOf(job))} ${job.name}</h2>
      <p class="muted">${stateWord(stateOf(job))}${place} ${elapsed(job, now)}</p>
      <span class="job-tools"
        ><a href="${raw}" data-api data-file="${run.id}-${job.id}.log">Raw log</a>${rerun}</span
      >
    </header>
    ${
      job.steps.length === 0
        ? html`<p class="empty">${emptyText(job)}</p>`
        : html`<ol class="steps">
            ${job.steps.map((step) => stepRow(job, step, now, tails?.get(step.number)))}
          </ol>`
    }
    ${
      outputs.length === 0
        ? null
        : html`<details class="outputs">
            <summary>Outputs</summary>
            <dl>
              ${outputs.map(
                ([name, value]) =>
                  html`<dt>${name}</dt>
                    <dd>${value}</dd>`,
              )}
            </dl>
          </details>`
    }
  </section>`;
}

function emptyText(job: Job): string {
  if (job.status === 'queued') return 'It waits for its turn.';
  return job.status === 'in_progress' ? 'It is being prepared.' : 'It had no steps to run.';
}

function stepRow(job: Job, step: Step, now: number, tail: readonly string[] | undefined): SafeHtml {
  const state = stateOf(step);
  const isForgiven = step.outcome === 'failure' && step.conclusion === 'success';
  const head = html`${stateIcon(state)}<span class="step-name"
      >${step.name}${isForgiven ? html` <span class="muted">failure allowed</span>` : null}</span
    >${elapsed(step, now)}`;
  const key = `step-${job.id}-${job.attempt}-${step.number}`;
  if (step.startedAt === undefined)
    return html`<li data-key="${key}" class="step idle">${head}</li>`;
  const isOpen = state === 'failure' || state === 'in_progress';
  const lines =
    tail === undefined || tail.length === 0
      ? null
      : html`<pre class="tail">${tail.join('\n')}</pre>`;
  return html`<li data-key="${key}" class="step">
    <details data-step="${step.number}" data-state="${state}" ${isOpen ? html` open` : null}>
      <summary>${head}</summary>
      <div class="log" data-keep data-name="${step.name}">${lines}</div>
    </details>
  </li>`;
}

function annotationList(annotations: readonly Annotation[]): SafeHtml {
  return html`<section class="card" data-key="annotations" aria-labelledby="annotations-title">
    <h2 id="annotations-title">Annotations <span class="count">${annotations.length}</span></h2>
    <ul class="annotations">
      ${annotations.map(({ level, message, title, file, line, jobId, stepNumber }) => {
        const place =
          file === undefined
            ? null
            : html`<code>${file}${line === undefined ? null : `:${line}`}</code> `;
        const where =
          jobId === undefined
            ? null
            : html`<span class="muted"
                >${jobId}${stepNumber === undefined ? null : `, step ${stepNumber}`}</span
              >`;
        return html`<li class="annotation ${level}">
          <span class="level">${level}</span>
          <div>
            ${place}${title === undefined ? null : html`<strong>${title}</strong> `}<span
              class="message"
              >${message}</span
            >
            ${where}
          </div>
        </li>`;
      })}
    </ul>
  </section>`;
}

function artifactList(run: WorkflowRun, artifacts: readonly Artifact[]): SafeHtml {
  return html`<section class="card" data-key="artifacts" aria-labelledby="artifacts-title">
    <h2 id="artifacts-title">Artifacts <span class="count">${artifacts.length}</span></h2>
    <ul class="artifacts">
      ${artifacts.map(({ name, size, mimeType, sha256 }) => {
        const path = `/api/runs/${encodeURIComponent(run.id)}/artifacts/${encodeURIComponent(name)}`;
        return html`<li>
          <a href="${path}" download data-api data-file="${fileNameOf({ name, mimeType })}"
            >${name}</a
          ><span class="muted" title="SHA-256 ${sha256}">${mimeType} · ${sizeText(size)}</span>
        </li>`;
      })}
    </ul>
  </section>`;
}

/** A matrix may have more jobs than anybody reads. */
const FOLDERS_SHOWN_MAX = 20;

function about(run: WorkflowRun): SafeHtml {
  const inputs = Object.entries(run.inputs ?? {});
  const { sandbox, trigger, env = {} } = run;
  return html`<details class="about" data-key="about">
    <summary>About this run</summary>
    <dl>
      <dt>Run</dt>
      <dd><code>${run.id}</code></dd>
      ${
        /^0*$/.test(trigger.sha)
          ? null
          : html`<dt>Commit</dt>
              <dd><code>${trigger.sha}</code></dd>`
      }
      ${
        sandbox === undefined
          ? null
          : html`<dt>Working copy</dt>
              <dd>${sandbox.strategy} <code>${sandbox.path}</code></dd>`
      }
      ${run.jobs
        .flatMap(({ name, sandbox: own }) =>
          own === undefined || own.path === sandbox?.path ? [] : [{ name, path: own.path }],
        )
        .slice(0, FOLDERS_SHOWN_MAX)
        .map(
          ({ name, path }) =>
            html`<dt>Folder of ${name}</dt>
              <dd><code>${path}</code></dd>`,
        )}
      ${inputs.map(
        ([name, value]) =>
          html`<dt>Input ${name}</dt>
            <dd>${value === '' ? html`<span class="muted">empty</span>` : value}</dd>`,
      )}
      ${Object.entries(env).map(
        ([name, value]) =>
          html`<dt>env ${name}</dt>
            <dd>${value}</dd>`,
      )}
    </dl>
  </details>`;
}
