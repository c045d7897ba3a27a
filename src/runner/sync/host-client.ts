import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { objectOf } from './cache-entry.ts';
import {
  messageOfAnswer,
  printable,
  rateLimitFromHeaders,
  rateLimitWaitMs,
  readBounded,
  type HostAnswer,
  type HostRateLimit,
} from './host-answer.ts';

/** The API version in which stacks of pull requests exist; older hosts ignore the header. */
export const STACKS_API_VERSION = '2026-03-10';
const API_VERSION = '2022-11-28';
const USER_AGENT = 'gatehouse-runner';
const ATTEMPTS_MAX = 4;
const BACKOFF_MS_MIN = 500;
const BACKOFF_MS_MAX = 15_000;
/** A host that wants a longer pause gets it, but the caller is reported instead of kept waiting. */
const RATE_WAIT_MS_MAX = 60_000;
const ATTEMPT_TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
const REDIRECTS_MAX = 5;

export type HostRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Below the API's URL, beginning with `/`; or absolute (from a Link header), of the same origin. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Sent as If-None-Match; a 304 is then an answer. */
  readonly etag?: string | undefined;
  readonly apiVersion?: string | undefined;
  /** Statuses that are an answer besides 2xx. */
  readonly accept?: readonly number[] | undefined;
  /** May be sent again after a 5xx or a broken connection. Default: all but POST. */
  readonly isRepeatable?: boolean | undefined;
};

/** The REST and GraphQL API of the code host. */
export interface HostClient {
  /**
   * Errors: UPSTREAM_ERROR, with metadata.status when the host answered, metadata.retryAfterSeconds
   * when it wants a pause; SHUTTING_DOWN after the signal.
   */
  send(request: HostRequest): Promise<HostAnswer>;
  /** The `data` of a GraphQL query. Errors: as `send`. */
  query(query: string, variables: Readonly<Record<string, unknown>>): Promise<unknown>;
  rateLimit(): HostRateLimit | undefined;
}

export type HostClientOptions = {
  readonly apiUrl: string;
  readonly token: string | undefined;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** Resolves after that time; rejects when the signal says so. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Ends everything in flight. */
  readonly signal: AbortSignal;
};

/**
 * A client that stays polite and safe: credentials go to the API's origin alone, redirects to another
 * origin are refused, answers are bounded in time and bytes, rate limits are applied (what the host
 * asks for, up to a minute; beyond, calls fail at once until it is over), failed calls are repeated
 * with jitter when repeating them cannot do harm.
 */
export function createHostClient(options: HostClientOptions): HostClient {
  return new FetchHostClient(options);
}

class FetchHostClient implements HostClient {
  readonly #options: HostClientOptions;
  readonly #base: URL;
  #rateLimit: HostRateLimit | undefined;
  #blockedUntilMs = 0;

  constructor(options: HostClientOptions) {
    this.#options = options;
    this.#base = httpUrl(options.apiUrl, 'hostApiUrl');
  }

  rateLimit(): HostRateLimit | undefined {
    return this.#rateLimit;
  }

  async send(request: HostRequest): Promise<HostAnswer> {
    const isRepeatable = request.isRepeatable ?? request.method !== 'POST';
    const url = this.#urlOf(request.path);
    this.#assertNotBlocked();
    let waitedMs = 0;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(request, url);
      if ('answer' in outcome) return outcome.answer;
      const { error, rateWaitMs, isPassing } = outcome;
      if (rateWaitMs === undefined) {
        if (!isPassing || !isRepeatable || attempt === ATTEMPTS_MAX) throw error;
        await this.#wait(this.#backoffMs(attempt));
        continue;
      }
      waitedMs += rateWaitMs;
      if (attempt === ATTEMPTS_MAX || waitedMs > RATE_WAIT_MS_MAX) {
        this.#blockedUntilMs = this.#options.clock.nowMs() + rateWaitMs;
        throw error;
      }
      await this.#wait(rateWaitMs);
    }
  }

  async query(query: string, variables: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { json } = await this.send({
      method: 'POST',
      path: this.#graphqlUrl(),
      body: { query, variables },
      isRepeatable: true,
    });
    const { data, errors } = (json ?? {}) as { data?: unknown; errors?: unknown };
    if (errors !== undefined && errors !== null) {
      if (isRateLimited(errors)) throw this.#blocked();
      const text = messageOfAnswer({ errors });
      throw new AppError('UPSTREAM_ERROR', `the code host refused a GraphQL query: ${text}`);
    }
    return data;
  }

  /** GraphQL notifies an exhausted budget with status 200. */
  #blocked(): AppError {
    const nowMs = this.#options.clock.nowMs();
    const resetMs = Date.parse(this.#rateLimit?.resetAt ?? '') || 0;
    this.#blockedUntilMs = Math.max(resetMs, nowMs + RATE_WAIT_MS_MAX);
    return rateLimited(this.#blockedUntilMs - nowMs);
  }

  /** github.com: api.github.com/graphql; on a server of one's own /api/v3 stands beside /api/graphql. */
  #graphqlUrl(): string {
    const base = this.#base.href.replace(/\/+$/, '');
    return base.endsWith('/api/v3') ? `${base.slice(0, -3)}/graphql` : `${base}/graphql`;
  }

  #urlOf(path: string): URL {
    const base = this.#base.href.replace(/\/+$/, '');
    const url = path.startsWith('/') ? new URL(base + path) : new URL(path);
    this.#assertSameOrigin(url, 'a link');
    return url;
  }

  #assertSameOrigin(url: URL, what: string): void {
    if (url.origin === this.#base.origin) return;
    throw new AppError(
      'UPSTREAM_ERROR',
      `the code host answered with ${what} to another origin (${printable(url.host)}); it was not followed`,
    );
  }

  #assertNotBlocked(): void {
    const leftMs = this.#blockedUntilMs - this.#options.clock.nowMs();
    if (leftMs > 0) throw rateLimited(leftMs);
  }

  async #attempt(
    request: HostRequest,
    url: URL,
  ): Promise<
    | { readonly answer: HostAnswer }
    | {
        readonly error: AppError;
        readonly isPassing: boolean;
        readonly rateWaitMs?: number | undefined;
      }
  > {
    let answer: HostAnswer;
    try {
      answer = await this.#exchange(request, url);
    } catch (error) {
      if (this.#options.signal.aborted) throw shuttingDown();
      if (error instanceof AppError) return { error, isPassing: false };
      return { error: unreachable(error), isPassing: true };
    }
    const { status, headers, json } = answer;
    const limit = rateLimitFromHeaders(headers);
    if (limit !== undefined) this.#rateLimit = limit;
    if (status >= 200 && status < 300) return { answer };
    if (status === 304 && request.etag !== undefined) return { answer };
    const message = this.#withoutToken(messageOfAnswer(json));
    const rateWaitMs = rateLimitWaitMs(status, headers, message, this.#options.clock.nowMs());
    if (rateWaitMs !== undefined) {
      return { error: rateLimited(rateWaitMs), isPassing: true, rateWaitMs };
    }
    if (request.accept?.includes(status) === true) return { answer };
    return { error: refused(request, url, status, message), isPassing: status >= 500 };
  }

  async #exchange(request: HostRequest, start: URL): Promise<HostAnswer> {
    const timeout = AbortSignal.timeout(ATTEMPT_TIMEOUT_MS);
    const signal = AbortSignal.any([timeout, this.#options.signal]);
    let url = start;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const response = await fetch(url, { ...this.#init(request), signal, redirect: 'manual' });
      const location = response.headers.get('location');
      if (!isRedirect(response.status) || location === null) {
        return await answerOf(response);
      }
      await response.body?.cancel();
      const next = URL.parse(location, url.href);
      if (next === null) break;
      this.#assertSameOrigin(next, 'a redirect');
      // 301 and 302 would turn a POST into a GET; the host uses 307 and 308 where it means the same.
      if (request.method !== 'GET' && response.status < 307) break;
      url = next;
    }
    throw new AppError('UPSTREAM_ERROR', 'the code host redirects where it must not');
  }

  #init(request: HostRequest): RequestInit {
    const { token } = this.#options;
    const { body, etag, method, apiVersion } = request;
    return {
      method,
      headers: {
        accept: 'application/vnd.github+json',
        'user-agent': USER_AGENT,
        'x-github-api-version': apiVersion ?? API_VERSION,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
  }

  #withoutToken(text: string): string {
    const { token } = this.#options;
    return token === undefined || token === '' ? text : text.replaceAll(token, '***');
  }

  #backoffMs(attempt: number): number {
    const fullMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** attempt);
    return fullMs * (0.5 + this.#options.random() / 2);
  }

  async #wait(ms: number): Promise<void> {
    try {
      await this.#options.wait(ms, this.#options.signal);
    } catch (error) {
      if (this.#options.signal.aborted) throw shuttingDown();
      throw error;
    }
  }
}

async function answerOf(response: Response): Promise<HostAnswer> {
  const { status, headers } = response;
  const text = await readBounded(response, ANSWER_BYTES_MAX);
  if (text === '') return { status, headers, json: undefined };
  try {
    return { status, headers, json: JSON.parse(text) as unknown };
  } catch (error) {
    // Proxies answer errors as HTML; only a success has to be JSON.
    if (status >= 400) return { status, headers, json: undefined };
    throw new AppError(
      'UPSTREAM_ERROR',
      'the code host answered with something else than JSON',
      {
        status: String(status),
      },
      error,
    );
  }
}

function isRateLimited(errors: unknown): boolean {
  const list: readonly unknown[] = Array.isArray(errors) ? errors : [];
  return list.some((error) => objectOf(error)?.['type'] === 'RATE_LIMITED');
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

/** An http or https URL without credentials. Errors: CONFIG_INVALID, naming the setting. */
export function httpUrl(text: string, setting: string): URL {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '') {
    throw new AppError('CONFIG_INVALID', `${setting} must be an http or https URL`, {
      field: setting,
    });
  }
  return url;
}

function rateLimited(waitMs: number): AppError {
  const seconds = Math.ceil(waitMs / 1000);
  return new AppError('UPSTREAM_ERROR', `the code host asks for a pause of ${seconds} s`, {
    retryAfterSeconds: String(seconds),
  });
}

function refused(request: HostRequest, url: URL, status: number, message: string): AppError {
  const text = message === '' ? '' : `: ${message}`;
  return new AppError(
    'UPSTREAM_ERROR',
    `the code host answered ${status} to ${request.method} ${url.pathname}${text}`,
    { status: String(status) },
  );
}

function unreachable(cause: unknown): AppError {
  const isTimeout = cause instanceof Error && cause.name === 'TimeoutError';
  return new AppError(
    'UPSTREAM_ERROR',
    isTimeout ? 'the code host did not answer in time' : 'the code host cannot be reached',
    {},
    cause,
  );
}

function shuttingDown(): AppError {
  return new AppError('SHUTTING_DOWN', 'the runner is shutting down');
}
