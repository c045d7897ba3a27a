import type { ActivityStatus, Conclusion, RunStatus } from '../../model/run.ts';
import { html, type SafeHtml } from './html.ts';

export type IconState = Conclusion | ActivityStatus | RunStatus;

const WORDS: Readonly<Record<IconState, string>> = {
  success: 'Success',
  failure: 'Failure',
  cancelled: 'Cancelled',
  skipped: 'Skipped',
  queued: 'Queued',
  in_progress: 'In progress',
  completed: 'Completed',
  failed: 'Failed',
};

/** The state of a run, job or step in a word. */
export function stateWord(state: IconState): string {
  return WORDS[state];
}

/** The same as a picture; its word is for those who cannot see it. */
export function stateIcon(state: IconState): SafeHtml {
  const word = stateWord(state);
  return html`<span class="icon icon-${state}" title="${word}"
    >${picture(state)}<span class="sr">${word}: </span></span
  >`;
}

function picture(state: IconState): SafeHtml {
  switch (state) {
    case 'success':
    case 'completed':
      return html`<svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="8" />
        <path d="M4.4 8.3l2.4 2.4 4.8-5" />
      </svg>`;
    case 'failure':
    case 'failed':
      return html`<svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="8" />
        <path d="M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6" />
      </svg>`;
    case 'cancelled':
      return html`<svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="8" />
        <path d="M5 11l6-6" />
      </svg>`;
    case 'skipped':
      return html`<svg viewBox="0 0 16 16" aria-hidden="true">
        <circle class="hollow" cx="8" cy="8" r="7" />
        <path d="M5 8h6" />
      </svg>`;
    case 'queued':
      return html`<svg viewBox="0 0 16 16" aria-hidden="true">
        <circle class="hollow" cx="8" cy="8" r="7" />
        <path d="M8 4.5V8l2.4 1.6" />
      </svg>`;
    case 'in_progress':
      return html`<svg class="spin" viewBox="0 0 16 16" aria-hidden="true">
        <circle class="hollow faint" cx="8" cy="8" r="6.5" />
        <path d="M8 1.5a6.5 6.5 0 0 1 6.5 6.5" />
      </svg>`;
  }
}
