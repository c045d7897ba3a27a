import type { WorkflowInfo } from '../../model/workflow-info.ts';
import { html, type SafeHtml } from './html.ts';
import { ahead } from './times.ts';

/** Events that are chosen by other means, or by nothing. */
const NOT_OFFERED: ReadonlySet<string> = new Set(['workflow_dispatch', 'workflow_call']);

/** The part of the form that starts a run as if another event had happened. */
export function renderEvent({ triggers }: WorkflowInfo): SafeHtml {
  const events = triggers.filter((event) => !NOT_OFFERED.has(event));
  return html`<details class="more">
    <summary>As what happens</summary>
    <div class="field">
      <label for="event">Event</label
      ><select id="event" name="event" data-option="event" aria-describedby="event-error">
        <option value="">workflow_dispatch</option>
        ${events.map((event) => html`<option value="${event}">${event}</option>`)}
      </select>
      <p class="field-error" id="event-error" hidden></p>
    </div>
    <div class="field">
      <label for="payload">Payload</label>
      <p class="hint" id="payload-hint">
        JSON; what it leaves out is taken from the project. The files are those chosen above.
      </p>
      <textarea
        id="payload"
        name="payload"
        data-option="payload"
        rows="5"
        spellcheck="false"
        autocomplete="off"
        placeholder='{ "ref": "refs/heads/main" }'
        aria-describedby="payload-hint payload-error"
      ></textarea>
      <p class="field-error" id="payload-error" hidden></p>
    </div>
    <div class="field check">
      <input type="checkbox" id="force" data-option="force" /><label for="force"
        >Whatever its triggers say</label
      >
    </div>
  </details>`;
}

/** The times at which it would start, each with a button that starts it now. */
export function renderSchedules({ schedules = [] }: WorkflowInfo, now: number): SafeHtml | null {
  if (schedules.length === 0) return null;
  return html`<section class="schedules" aria-labelledby="schedules-title">
    <h3 id="schedules-title">Schedules</h3>
    <ul>
      ${schedules.map(
        ({ cron, timezone, nextAt }) =>
          html`<li>
            <span
              ><code>${cron}</code> ${timezone ?? 'UTC'}<span class="muted"
                >${nextAt === undefined ? ' never' : html` ${ahead(nextAt, now)}`}</span
              ></span
            ><button
              class="js-only"
              type="submit"
              form="start"
              data-schedule="${cron}"
              aria-label="Start ${cron} now"
            >
              Start now
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}
