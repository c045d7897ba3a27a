import { AppError } from '../../shared/app-error.ts';

const MESSAGE_CHARS_MAX = 300;

/** The host's budget for our credentials, as its last answer reported. */
export type HostRateLimit = { readonly remaining: number; readonly resetAt: string };

export type HostAnswer = {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined when there was none (204, 304). */
  readonly json: unknown;
};

/**
 * The body of `response` as text. Errors: UPSTREAM_ERROR as soon as it is known to be longer than
 * `bytesMax` (after decompression); the connection is given up then.
 */
export async function readBounded(response: Response, bytesMax: number): Promise<string> {
  const declared = Number(response.headers.get('content-length') ?? 0);
  if (declared > bytesMax) {
    await response.body?.cancel();
    throw tooLarge(bytesMax);
  }
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    total += chunk.length;
    // Leaving the loop cancels the stream.
    if (total > bytesMax) throw tooLarge(bytesMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tooLarge(bytesMax: number): AppError {
  return new AppError(
    'UPSTREAM_ERROR',
    `the code host answered with more than ${bytesMax} bytes; the answer was given up`,
    { limitBytes: String(bytesMax) },
  );
}

/**
 * What an error answer says to people: its `message` and the first of its `errors`, without control
 * characters, bounded; '' when it says nothing.
 */
export function messageOfAnswer(json: unknown): string {
  if (typeof json !== 'object' || json === null) return '';
  const { message, errors } = json as { message?: unknown; errors?: unknown };
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  const detail =
    typeof first === 'object' && first !== null && 'message' in first ? first.message : first;
  const parts = [message, detail].filter((part): part is string => typeof part === 'string');
  return printable(parts.join(': '));
}

/** Text of the other side, safe for one line of a log or message. */
export function printable(text: string): string {
  return text
    .replaceAll(/\p{C}+/gu, ' ')
    .trim()
    .slice(0, MESSAGE_CHARS_MAX);
}

/** The rate limit that headers say; undefined when they say none. */
export function rateLimitFromHeaders(headers: Headers): HostRateLimit | undefined {
  const remaining = headers.get('x-ratelimit-remaining');
  const reset = Number(headers.get('x-ratelimit-reset') ?? Number.NaN);
  if (remaining === null || !/^\d{1,9}$/.test(remaining)) return undefined;
  if (!Number.isSafeInteger(reset) || reset < 0 || reset > 8_640_000_000_000) return undefined;
  return { remaining: Number(remaining), resetAt: new Date(reset * 1000).toISOString() };
}

/**
 * How long the host wants us to stay away, when this answer is about a rate limit: `Retry-After`
 * (seconds or a date), else the reset time when nothing remains, else a minute for a secondary limit
 * (docs.github.com, "Best practices for using the REST API"). Undefined for any other answer.
 */
export function rateLimitWaitMs(
  status: number,
  headers: Headers,
  message: string,
  nowMs: number,
): number | undefined {
  if (status !== 403 && status !== 429 && status !== 503) return undefined;
  // The host's own clock, so that a wrong one here does no harm.
  const hostNowMs = Date.parse(headers.get('date') ?? '') || nowMs;
  const retryAfter = headers.get('retry-after');
  if (retryAfter !== null) {
    const seconds = Number(retryAfter);
    const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(retryAfter) - hostNowMs;
    if (Number.isFinite(waitMs)) return Math.max(0, waitMs);
  }
  if (status === 503) return undefined;
  const limit = rateLimitFromHeaders(headers);
  if (limit?.remaining === 0) return Math.max(0, Date.parse(limit.resetAt) - hostNowMs) + 1000;
  if (status === 429 || /secondary rate limit|abuse detection/i.test(message)) return 60_000;
  return undefined;
}
