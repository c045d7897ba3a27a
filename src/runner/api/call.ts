import { assertJsonBounds } from '../../decoding/json-count.ts';
import { AppError } from '../../shared/app-error.ts';

/** Who calls, as the audit trail keeps it. */
export type Actor = {
  readonly ip: string;
  /** '' when the request has no such header. */
  readonly origin: string;
  readonly userAgent: string;
};

/** One request, its body read. */
export type ApiCall = {
  readonly method: string;
  /** As sent. */
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** The JSON document, undefined when there was no body; of routes that read JSON. */
  readonly json: unknown;
  /** Of routes that read bytes, else empty. */
  readonly bytes: Uint8Array;
  readonly actor: Actor;
  readonly requestId: string;
  readonly isHead: boolean;
};

const JSON_CONTENT = /^application\/json\s*(;.*)?$/i;

/** A header's value, '' when it is absent. */
export function headerOf(headers: Headers, name: string): string {
  return headers.get(name) ?? '';
}

/** Errors: UNSUPPORTED_MEDIA_TYPE unless the content is JSON, as it stands (RFC 9110 §15.5.16). */
export function requireJson(headers: Headers): void {
  if (!JSON_CONTENT.test(headerOf(headers, 'content-type'))) {
    throw new AppError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be application/json');
  }
  requirePlainEncoding(headers);
}

/** Errors: UNSUPPORTED_MEDIA_TYPE for a compressed body. */
export function requirePlainEncoding(headers: Headers): void {
  const encoding = headerOf(headers, 'content-encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    throw new AppError('UNSUPPORTED_MEDIA_TYPE', 'Content-Encoding is not supported');
  }
}

/** Members and entries of a document, far beyond what any route takes; parsing them takes a few ms. */
const VALUES_MAX = 50_000;

/** The document in `bytes`. Errors: INVALID_JSON, also for text that is no UTF-8; BODY_TOO_LARGE for more than VALUES_MAX values. */
export function parseJson(bytes: Uint8Array): unknown {
  assertBounds(bytes);
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's own text quotes the body, which may hold a secret.
    throw new AppError('INVALID_JSON', 'the body is not valid JSON in UTF-8', {}, error);
  }
}

function assertBounds(bytes: Uint8Array): void {
  try {
    assertJsonBounds(bytes, { valuesMax: VALUES_MAX, bytesMax: bytes.length });
  } catch (error) {
    const isTooMuch = error instanceof AppError && error.reason === 'FIELD_TOO_LARGE';
    if (isTooMuch)
      throw new AppError('BODY_TOO_LARGE', `the body holds more than ${VALUES_MAX} values`);
    throw new AppError(
      'INVALID_JSON',
      'the body is nested too deep, or has a number too long',
      {},
      error,
    );
  }
}

/** A parameter of the path. */
export function parameterOf(call: ApiCall, name: string): string {
  return call.parameters[name] ?? '';
}
