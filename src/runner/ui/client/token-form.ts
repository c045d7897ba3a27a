import { html } from '../shared/html.ts';
import { keepToken, token } from './session.ts';

/** Asks for the token of the runner in place of the page; `onGiven` when there is one to try. */
export function askForToken(main: HTMLElement, onGiven: () => void): void {
  const problem =
    token() === ''
      ? null
      : html`<p class="field-error" id="token-error">The runner refused this token.</p>`;
  main.innerHTML = html`<form class="token" novalidate>
    <h1>Token needed</h1>
    <p>
      This runner wants its token for that: the value of <code>RUNNER_API_TOKEN</code>, else the
      content of <code>.runner/api-token</code> in the project. It is kept until this tab is closed.
    </p>
    <div class="field">
      <label for="token">Token</label
      ><input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck="false"
        aria-describedby="token-error"
      />${problem}
    </div>
    <button type="submit" class="primary">Continue</button>
  </form>`.text;
  const field = main.querySelector<HTMLInputElement>('#token');
  field?.focus();
  main.querySelector('form')?.addEventListener('submit', (event) => {
    event.preventDefault();
    const value = field?.value.trim() ?? '';
    if (value === '') return field?.focus();
    keepToken(value);
    onGiven();
  });
}
