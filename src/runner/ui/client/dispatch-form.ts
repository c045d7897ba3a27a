import { CallFailed, call, TokenNeeded } from './session.ts';

/** Fields of the request that are fields of the form, too. */
const EVENT_FIELDS: ReadonlySet<string> = new Set(['event', 'payload']);

/** Makes the form of a workflow start runs; what is wrong is said at its field. */
export function enableDispatch(form: HTMLFormElement, onTokenNeeded: () => void): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(form, event.submitter).catch((error: unknown) => {
      if (error instanceof TokenNeeded) onTokenNeeded();
      else showFailure(form, error);
    });
  });
}

async function submit(form: HTMLFormElement, submitter: HTMLElement | null): Promise<void> {
  clear(form);
  const buttons = form.querySelectorAll('button');
  for (const button of buttons) button.disabled = true;
  try {
    const response = await call('POST', '/api/runs', bodyOf(form, submitter?.dataset['schedule']));
    const { id } = (await response.json()) as { id: string };
    location.assign(`/runs/${encodeURIComponent(id)}`);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

/** `schedule` is the cron whose button was pressed. Errors: PayloadWrong. */
function bodyOf(form: HTMLFormElement, schedule: string | undefined): object {
  const inputs = new Map<string, string>();
  for (const control of form.querySelectorAll<HTMLInputElement>('[data-input]')) {
    const isBox = control.type === 'checkbox';
    inputs.set(control.dataset['input'] ?? '', isBox ? String(control.checked) : control.value);
  }
  const option = (name: string): string | undefined => {
    const control = form.querySelector<HTMLInputElement>(`[data-option="${name}"]`);
    return control === null || control.value.trim() === '' ? undefined : control.value.trim();
  };
  const sandbox = { ref: option('ref'), strategy: option('strategy') };
  const isAutomatic = sandbox.ref === undefined && sandbox.strategy === undefined;
  const start = schedule === undefined ? eventOf(form, option) : scheduled(schedule);
  return {
    workflow: form.dataset['workflow'],
    // Other events have none.
    ...(start.event === undefined ? { inputs: Object.fromEntries(inputs) } : {}),
    ...start,
    ...(isAutomatic ? {} : { sandbox }),
  };
}

type Start = { readonly event?: string; readonly payload?: unknown; readonly force?: boolean };

/** The text of the payload is no JSON. */
class PayloadWrong extends Error {}

function scheduled(cron: string): Start {
  return { event: 'schedule', payload: { schedule: cron } };
}

function eventOf(form: HTMLFormElement, option: (name: string) => string | undefined): Start {
  const event = option('event');
  const text = option('payload');
  const isForced = form.querySelector<HTMLInputElement>('[data-option="force"]')?.checked === true;
  return {
    ...(event === undefined ? {} : { event }),
    ...(text === undefined ? {} : { payload: parsed(text) }),
    ...(isForced ? { force: true } : {}),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PayloadWrong(error instanceof Error ? error.message : String(error));
  }
}

function clear(form: HTMLFormElement): void {
  for (const error of form.querySelectorAll<HTMLElement>('.field-error, .form-error')) {
    error.hidden = true;
    error.textContent = '';
  }
  for (const control of form.querySelectorAll('[aria-invalid]')) {
    control.removeAttribute('aria-invalid');
  }
}

function showFailure(form: HTMLFormElement, error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const problems = new Map<Element, string>();
  if (error instanceof CallFailed) {
    for (const control of form.querySelectorAll<HTMLElement>('[data-input]')) {
      const problem = error.details[control.dataset['input'] ?? ''];
      if (error.code === 'invalid_inputs' && problem !== undefined) problems.set(control, problem);
    }
    const at = (name: string): Element | null => form.querySelector(`[data-option="${name}"]`);
    const [field = ''] = (error.details['field'] ?? '').split('.');
    const named =
      error.code === 'invalid_ref' ? at('ref') : EVENT_FIELDS.has(field) ? at(field) : null;
    if (named !== null) problems.set(named, text);
  }
  const payload = form.querySelector('[data-option="payload"]');
  if (error instanceof PayloadWrong && payload !== null) problems.set(payload, text);
  for (const [control, problem] of problems) showAt(form, control, problem);
  const [first] = problems.keys();
  first?.closest('details')?.setAttribute('open', '');
  if (first instanceof HTMLElement) first.focus();
  if (problems.size > 0) return;
  const general = form.querySelector<HTMLElement>('[data-form-error]');
  if (general === null) return;
  general.textContent = text;
  general.hidden = false;
}

function showAt(form: HTMLFormElement, control: Element, problem: string): void {
  control.setAttribute('aria-invalid', 'true');
  const place = form.querySelector<HTMLElement>(`#${control.id}-error`);
  if (place === null) return;
  place.textContent = problem.charAt(0).toUpperCase() + problem.slice(1);
  place.hidden = false;
}
