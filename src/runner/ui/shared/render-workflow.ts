import type { WorkflowInfoError } from '../../model/workflow-info.ts';
import type { WorkflowInput } from '../../model/workflow.ts';
import { html, type SafeHtml } from './html.ts';
import { renderEvent, renderSchedules } from './render-event.ts';
import { renderRuns } from './render-runs.ts';
import type { WorkflowView } from './views.ts';

/** A workflow: what is wrong with it, the form that starts it, its runs. */
export function renderWorkflow(view: WorkflowView, now: number): SafeHtml {
  const { info, runs } = view;
  const { name, fileName, triggers, errors = [], warnings = [] } = info;
  return html`<div class="title">
      <h1>${name}</h1>
      <p class="muted">
        <code>${fileName}</code>${triggers.length === 0 ? null : ` · on ${triggers.join(', ')}`}
      </p>
    </div>
    ${problems('Errors', fileName, errors)} ${problems('Warnings', fileName, warnings)}
    <div class="columns">
      <section class="side form-side" aria-labelledby="start-title">
        <h2 id="start-title">Start a run</h2>
        ${startOf(view, now)}
      </section>
      <section class="wide" aria-labelledby="runs-title">
        <h2 id="runs-title">Runs</h2>
        ${renderRuns(runs, now, 'It has not run yet.')}
      </section>
    </div>`;
}

/** Whether a workflow runs only where another one calls it. */
export function isOnlyCalled(triggers: readonly string[]): boolean {
  return triggers.length > 0 && triggers.every((event) => event === 'workflow_call');
}

function startOf(view: WorkflowView, now: number): SafeHtml {
  const { triggers, errors = [] } = view.info;
  if (errors.length > 0) {
    return html`<p class="empty">It cannot run before its errors are gone.</p>`;
  }
  return isOnlyCalled(triggers)
    ? html`<p class="empty">It runs where another workflow calls it.</p>`
    : form(view, now);
}

function problems(
  title: 'Errors' | 'Warnings',
  fileName: string,
  found: readonly WorkflowInfoError[],
): SafeHtml | null {
  if (found.length === 0) return null;
  const id = `${title.toLowerCase()}-title`;
  return html`<section class="problems" aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    <ul>
      ${found.map(({ message, line, col, file }) => html`<li><code>${file ?? fileName}:${line}:${col}</code> ${message}</li>`)}
    </ul>
  </section>`;
}

function form({ info, environments }: WorkflowView, now: number): SafeHtml {
  const inputs = Object.entries(info.inputs ?? {});
  return html`<noscript
      ><p class="empty">
        Starting a run needs JavaScript, or <code>gatehouse-runner run ${info.fileName}</code>.
      </p></noscript
    >
    <form
      class="js-only"
      id="start"
      data-key="form"
      data-keep
      data-workflow="${info.fileName}"
      novalidate
    >
      <p class="form-error" data-form-error role="alert" hidden></p>
      ${inputs.map(([name, input], index) => field(name, input, `input-${index}`, environments))}
      <details class="more">
        <summary>Where it runs</summary>
        <div class="field">
          <label for="ref">Branch, tag or commit</label
          ><input
            id="ref"
            name="ref"
            data-option="ref"
            autocomplete="off"
            spellcheck="false"
            placeholder="what is there now"
            aria-describedby="ref-error"
          />
          <p class="field-error" id="ref-error" hidden></p>
        </div>
        <div class="field">
          <label for="strategy">Working copy</label
          ><select
            id="strategy"
            name="strategy"
            data-option="strategy"
            aria-describedby="strategy-error"
          >
            <option value="">automatic</option>
            <option value="worktree">worktree: a clean checkout</option>
            <option value="copy">copy: with uncommitted changes</option>
            <option value="none">none: in the project itself</option>
          </select>
          <p class="field-error" id="strategy-error" hidden></p>
        </div>
      </details>
      ${renderEvent(info)}
      <button type="submit" class="primary">Run workflow</button>
    </form>
    ${renderSchedules(info, now)}`;
}

function field(
  name: string,
  input: WorkflowInput,
  id: string,
  environments: readonly string[],
): SafeHtml {
  const { description, required = false, type = 'string' } = input;
  const star = required ? html` <span class="required" title="required">*</span>` : null;
  const hint =
    description === undefined ? null : html`<p class="hint" id="${id}-hint">${description}</p>`;
  const label = html`<label for="${id}">${name}${star}</label>`;
  const control = controlOf(name, input, id, environments);
  const error = html`<p class="field-error" id="${id}-error" hidden></p>`;
  return type === 'boolean'
    ? html`<div class="field check" data-field="${name}">${control}${label}${hint}${error}</div>`
    : html`<div class="field" data-field="${name}">${label}${hint}${control}${error}</div>`;
}

function controlOf(
  name: string,
  input: WorkflowInput,
  id: string,
  environments: readonly string[],
): SafeHtml {
  const { required = false, type = 'string', options = [] } = input;
  const value = input.default ?? '';
  const described = html`aria-describedby="${input.description === undefined ? '' : `${id}-hint `}${id}-error"`;
  const isRequired = required ? html` aria-required="true"` : null;
  if (type === 'boolean') {
    return html`<input
      type="checkbox"
      id="${id}"
      data-input="${name}"
      ${described}${value === 'true' ? html` checked` : null}
    />`;
  }
  if (type === 'choice') {
    return html`<select id="${id}" data-input="${name}" ${described}${isRequired}>
      ${options.map((option) => choice(option, option === value))}
    </select>`;
  }
  if (type === 'environment' && environments.length > 0) {
    const names =
      environments.includes(value) || value === '' ? environments : [value, ...environments];
    return html`<select id="${id}" data-input="${name}" ${described}${isRequired}>
      ${choice('', value === '')}${names.map((option) => choice(option, option === value))}
    </select>`;
  }
  const mode = type === 'number' ? html` inputmode="decimal"` : null;
  return html`<input
    type="text"
    id="${id}"
    data-input="${name}"
    value="${value}"
    autocomplete="off"
    spellcheck="false"
    ${described}${isRequired}${mode}
  />`;
}

function choice(value: string, isSelected: boolean): SafeHtml {
  return html`<option value="${value}" ${isSelected ? html` selected` : null}>${value}</option>`;
}
