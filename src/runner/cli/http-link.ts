import { readServerEvents } from '../../command-line/server-events.ts';
import { AppError } from '../../shared/app-error.ts';
import type { LogQuery, StartRequest } from '../model/ports.ts';
import type { RunnerErrorReason } from '../model/reasons.ts';
import type { Annotation, Artifact, WorkflowRun } from '../model/run.ts';
import {
  type LinkEvent,
  type RerunChoice,
  type RunnerLink,
  type RunQuery,
  type SecretLink,
  type SecretLocation,
  type VaultStatus,
  vaultProblemIn,
} from './runner-link.ts';

const RETRY_MS = 500;
/** Breaks of the stream in a row, without an event in between, after which the runner counts as gone. */
const BREAKS_MAX = 10;

/** Calls of one runner. Errors are AppErrors by the code that it answers; BACKEND_UNAVAILABLE when it does not. */
class LinkCaller {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, token: string | undefined) {
    this.#url = url;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  async call(method: string, path: string, options: LinkCallOptions = {}): Promise<Response> {
    const { body, headers, signal } = options;
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    let response: Response;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers: { ...this.#headers, ...json, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      const text = `the runner at ${this.#url} does not answer`;
      throw new AppError('BACKEND_UNAVAILABLE', text, {}, error);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await (await this.call(method, path, { body })).json()) as T;
  }
}

type LinkCallOptions = {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

type ErrorBody = {
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly details?: Readonly<Record<string, string>>;
  };
};

async function errorOf(response: Response): Promise<AppError> {
  const body = (await response.json().catch(() => ({}))) as ErrorBody;
  const {
    code = 'internal',
    message = `status ${response.status}`,
    details = {},
  } = body.error ?? {};
  // The wire spells reasons in lower case.
  return new AppError(code.toUpperCase() as RunnerErrorReason, message, details);
}

/** Does a runner answer at `url`, and serve `workspace`? */
export async function servesWorkspace(url: string, workspace: string): Promise<boolean> {
  try {
    const health = (await (await fetch(`${url}/health`)).json()) as { workspace?: string };
    return health.workspace === workspace;
  } catch {
    // Whatever is there, it is not the runner.
    return false;
  }
}

/** Runs of another process. */
export function createHttpLink(url: string, token: string | undefined): RunnerLink {
  return new HttpLink(new LinkCaller(url, token));
}

/** Secrets of another process. */
export function createHttpSecrets(url: string, token: string | undefined): SecretLink {
  const caller = new LinkCaller(url, token);
  const path = (name: string): string => `/api/secrets/${encodeURIComponent(name)}`;
  const fieldsOf = ({ environment, backend }: SecretLocation): object => ({ environment, backend });
  return {
    list: ({ environment, backend }) =>
      caller.json('GET', `/api/secrets?${queryOf({ env: environment, backend })}`),
    vaultProblem: async () =>
      vaultProblemIn(await caller.json<VaultStatus>('GET', '/api/secrets/status')),
    put: async (request) => {
      const body = { value: request.value, ...fieldsOf(request) };
      const response = await caller.call('PUT', path(request.name), { body });
      await response.arrayBuffer();
      return { isCreated: response.status === 201 };
    },
    remove: async (place) => {
      await caller.call('DELETE', path(place.name), { body: fieldsOf(place) });
    },
    close: () => Promise.resolve(),
  };
}

class HttpLink implements RunnerLink {
  readonly #caller: LinkCaller;
  readonly #closing = new AbortController();
  #onEvent: ((event: LinkEvent) => void) | undefined;
  #lastEventId = '';

  constructor(caller: LinkCaller) {
    this.#caller = caller;
  }

  async subscribe(onEvent: (event: LinkEvent) => void): Promise<void> {
    this.#onEvent = onEvent;
    const stream = await this.#openStream();
    void this.#readAll(stream);
  }

  async start(
    request: StartRequest,
  ): Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }> {
    const { workflow, inputs, sandbox, env, event, payload } = request;
    const { jobs, matrix, secrets, variables, isForced: force } = request;
    const chosen = { jobs, matrix, secrets, variables, force };
    const body = { workflow, inputs, sandbox, env, event, payload, ...chosen };
    const response = await this.#caller.call('POST', '/api/runs', { body });
    const warning = response.headers.get('x-runner-warning');
    const run = (await response.json()) as WorkflowRun;
    return { run, warnings: warning === null ? [] : [warning] };
  }

  rerun(id: string, which: RerunChoice): Promise<WorkflowRun> {
    return this.#caller.json('POST', `${pathOf(id)}/rerun`, which);
  }

  async approve(id: string): Promise<void> {
    await this.#caller.json('POST', `${pathOf(id)}/approve`);
  }

  async cancel(id: string): Promise<void> {
    await this.#caller.json('POST', `${pathOf(id)}/cancel`);
  }

  list({ limit, status, workflow }: RunQuery): Promise<readonly WorkflowRun[]> {
    const query = queryOf({ limit: String(limit), status, workflow });
    return this.#caller.json('GET', `/api/runs?${query}`);
  }

  async *logs(id: string, query: LogQuery): AsyncGenerator<Uint8Array> {
    const text = queryOf({
      job: query.jobId,
      step: query.stepNumber?.toString(),
      tail: query.tail?.toString(),
    });
    const response = await this.#caller.call('GET', `${pathOf(id)}/logs?${text}`);
    if (response.body !== null) yield* response.body;
  }

  annotations(id: string): Promise<readonly Annotation[]> {
    return this.#caller.json('GET', `${pathOf(id)}/annotations`);
  }

  async summary(id: string): Promise<string> {
    return (await this.#caller.call('GET', `${pathOf(id)}/summary`)).text();
  }

  artifacts(id: string): Promise<readonly Artifact[]> {
    return this.#caller.json('GET', `${pathOf(id)}/artifacts`);
  }

  runsLeft(): number {
    return 0;
  }

  close(): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }

  #openStream(): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.#lastEventId !== '') headers['last-event-id'] = this.#lastEventId;
    return this.#caller.call('GET', '/api/events', { headers, signal: this.#closing.signal });
  }

  /** Until the link is closed; a stream that breaks is taken up where it broke. */
  async #readAll(first: Response): Promise<void> {
    let response: Response | undefined = first;
    let breaks = 0;
    while (!this.#closing.signal.aborted) {
      try {
        response ??= await this.#openStream();
        for await (const { id, event, data } of readServerEvents(response)) {
          if (id !== '') this.#lastEventId = id;
          if (event === 'ping') continue;
          breaks = 0;
          this.#deliver(event, data);
        }
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        if (!(error instanceof Error)) throw error;
      }
      response = undefined;
      breaks += 1;
      if (breaks > BREAKS_MAX) return this.#deliver('lost', '{}');
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  #deliver(type: string, data: string): void {
    // The runner's own frames: their form is that of LinkEvent.
    this.#onEvent?.({ type, ...(JSON.parse(data) as object) } as LinkEvent);
  }
}

function pathOf(id: string): string {
  return `/api/runs/${encodeURIComponent(id)}`;
}

function queryOf(fields: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(name, value);
  }
  return query.toString();
}
