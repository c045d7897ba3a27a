const TOKEN_KEY = 'gatehouse-runner-token';

/** The runner refuses a call that has no token, or a wrong one. */
export class TokenNeeded extends Error {}

/** An error answer of the API. */
export class CallFailed extends Error {
  readonly code: string;
  readonly details: Readonly<Record<string, string>>;

  constructor(code: string, message: string, details: Readonly<Record<string, string>>) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** The token that was entered in this tab; '' when none was. */
export function token(): string {
  return sessionStorage.getItem(TOKEN_KEY) ?? '';
}

/** Kept until the tab is closed. */
export function keepToken(value: string): void {
  sessionStorage.setItem(TOKEN_KEY, value);
}

type ApiErrorBody = {
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly details?: Readonly<Record<string, string>>;
  };
};

/** Errors: TokenNeeded, CallFailed, and TypeError when the runner does not answer. */
export async function call(method: string, path: string, body?: unknown): Promise<Response> {
  const headers = new Headers();
  if (token() !== '') headers.set('authorization', `Bearer ${token()}`);
  const init: RequestInit = { method, headers, cache: 'no-store' };
  if (body !== undefined) {
    headers.set('content-type', 'application/json');
    init.body = JSON.stringify(body);
  }
  const response = await fetch(path, init);
  if (response.ok) return response;
  if (response.status === 401) throw new TokenNeeded();
  const { error = {} } = (await response.json().catch(() => ({}))) as ApiErrorBody;
  const text = error.message ?? `The runner answered ${response.status}.`;
  throw new CallFailed(error.code ?? 'internal', text, error.details ?? {});
}

/** The address of an event stream: EventSource cannot send headers. */
export function eventsAddress(parameters: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(parameters);
  if (token() !== '') query.set('access_token', token());
  return `/api/events?${query.toString()}`;
}
