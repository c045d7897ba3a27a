import { CallFailed, call, TokenNeeded } from './session.ts';

/** Makes the form of a workflow start runs; what is wrong is said at its field. */
export function enableDispatch(form: HTMLFormElement, onTokenNeeded: () => void): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(form).catch((error: unknown) => {
      if (error instanceof TokenNeeded) onTokenNeeded();
      else showFailure(form, error);
    });
  });
}

async function submit(form: HTMLFormElement): Promise<void> {
  clear(form);
  const button = form.querySelector('button');
  if (button !== null) button.disabled = true;
  try {
    const response = await call('POST', '/api/runs', bodyOf(form));
    const { id } = (await response.json()) as { id: string };
    location.assign(`/runs/${encodeURIComponent(id)}`);
  } finally {
    if (button !== null) button.disabled = false;
  }
}

function bodyOf(form: HTMLFormElement): object {
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
  return {
    workflow: form.dataset['workflow'],
    inputs: Object.fromEntries(inputs),
    ...(isAutomatic ? {} : { sandbox }),
  };
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
    const ref = form.querySelector('[data-option="ref"]');
    if (error.code === 'invalid_ref' && ref !== null) problems.set(ref, text);
  }
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
