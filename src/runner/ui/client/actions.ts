import { call, token } from './session.ts';

type Hooks = {
  readonly onChanged: () => void;
  readonly onFailed: (error: unknown) => void;
  readonly onJobChosen: (jobId: string) => void;
};

/** Buttons and links of a run: cancel, rerun, another job, downloads. */
export function runActions(main: HTMLElement, hooks: Hooks): void {
  main.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const summary = target?.closest('summary');
    // From now on the reader says whether this step is open.
    summary?.parentElement?.setAttribute('data-chosen', '');
    const button = target?.closest<HTMLButtonElement>('button[data-action]');
    if (button !== null && button !== undefined) {
      act(button).then(hooks.onChanged, hooks.onFailed);
      return;
    }
    const link = target?.closest('a');
    if (link === null || link === undefined || isForBrowser(event)) return;
    const jobId = link.dataset['job'];
    if (jobId !== undefined) {
      event.preventDefault();
      hooks.onJobChosen(jobId);
    } else if (link.dataset['api'] !== undefined && token() !== '') {
      // A link sends no token.
      event.preventDefault();
      download(link).catch(hooks.onFailed);
    }
  });
}

function isForBrowser(event: MouseEvent): boolean {
  return event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
}

async function act(button: HTMLButtonElement): Promise<void> {
  const id = location.pathname.split('/')[2] ?? '';
  const { action, job } = button.dataset;
  button.disabled = true;
  try {
    if (action === 'cancel') await call('POST', `/api/runs/${id}/cancel`);
    else if (action === 'approve') await call('POST', `/api/runs/${id}/approve`);
    else if (action === 'rerun') await call('POST', `/api/runs/${id}/rerun`, {});
    else if (action === 'rerun-failed') {
      await call('POST', `/api/runs/${id}/rerun`, { failedOnly: true });
    } else if (action === 'rerun-job') await call('POST', `/api/runs/${id}/rerun`, { job });
  } finally {
    button.disabled = false;
  }
}

/** Through memory: the only way to a file that wants a header. */
async function download(link: HTMLAnchorElement): Promise<void> {
  const response = await call('GET', link.href);
  const address = URL.createObjectURL(await response.blob());
  const saving = document.createElement('a');
  saving.href = address;
  saving.download = link.dataset['file'] ?? 'download';
  saving.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
