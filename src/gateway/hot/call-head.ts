import type { WireFormat } from '../../protocol/shard-client.ts';

/** How a call frames its message: in envelopes with trailers after them (gRPC, gRPC-Web), or as the whole body (Connect). */
export type CallProtocol = 'grpc' | 'grpc-web' | 'connect';

/** What the headers of a plain call say, read once. */
export type CallHead = {
  readonly protocol: CallProtocol;
  readonly format: WireFormat;
  /** Whether messages of the request may be compressed; gzip is the only way. */
  readonly isGzipAllowed: boolean;
  /** Whether the caller takes compressed answers. */
  readonly isGzipWanted: boolean;
  /** Milliseconds that the call may take. */
  readonly timeoutMs: number;
  /** Whether the caller states them: then it is answered at that moment, whatever is under way. */
  readonly isTimeoutStated: boolean;
};

/** A content type in its plainest spelling; every other one is for the general path. */
export type CallType = {
  readonly protocol: CallProtocol;
  readonly format: WireFormat;
  /** Of the answer. */
  readonly answerType: string;
};

const CALL_TYPES: ReadonlyMap<string, CallType> = new Map([
  ['application/grpc', typeOf('grpc', 'proto', 'application/grpc+proto')],
  ['application/grpc+proto', typeOf('grpc', 'proto', 'application/grpc+proto')],
  ['application/grpc+json', typeOf('grpc', 'json', 'application/grpc+json')],
  ['application/grpc-web', typeOf('grpc-web', 'proto', 'application/grpc-web+proto')],
  ['application/grpc-web+proto', typeOf('grpc-web', 'proto', 'application/grpc-web+proto')],
  ['application/grpc-web+json', typeOf('grpc-web', 'json', 'application/grpc-web+json')],
  ['application/proto', typeOf('connect', 'proto', 'application/proto')],
  ['application/json', typeOf('connect', 'json', 'application/json')],
]);

function typeOf(protocol: CallProtocol, format: WireFormat, answerType: string): CallType {
  return { protocol, format, answerType };
}

/** Hot. What a content type says, or undefined where the general path must look at it. */
export function callTypeOf(contentType: string | undefined): CallType | undefined {
  return contentType === undefined ? undefined : CALL_TYPES.get(contentType);
}

/** The content type of a good answer, and of an error of gRPC. */
export function answerTypeOf({ protocol, format }: CallHead): string {
  return `application/${protocol === 'connect' ? format : `${protocol}+${format}`}`;
}

/**
 * Hot. The head of a call; null where the general path must take it: another encoding, a time-out that is ill-formed or
 * shorter than a millisecond. `encoding` is of the request, `accepted` what the caller takes; each undefined where the header is missing.
 * O(length), without memory but for the result.
 */
export function callHeadOf(
  { protocol, format }: CallType,
  encoding: string | undefined,
  accepted: string | undefined,
  timeout: string | undefined,
  timeoutMsMax: number,
): CallHead | null {
  const isGzipAllowed = encoding === 'gzip';
  // Connect's own name for no encoding is none; envelopes say of each message whether it is compressed.
  const isPlain = encoding === undefined || (encoding === 'identity' && protocol !== 'connect');
  if (!isGzipAllowed && !isPlain) return null;
  const isGzipWanted =
    accepted === undefined || accepted === '' ? isGzipAllowed : isGzipAmong(accepted);
  const isTimeoutStated = timeout !== undefined;
  let timeoutMs = timeoutMsMax;
  if (timeout !== undefined) {
    const statedMs = protocol === 'connect' ? connectTimeoutMs(timeout) : grpcTimeoutMs(timeout);
    if (statedMs < 1) return null;
    timeoutMs = Math.min(statedMs, timeoutMsMax);
  }
  return { protocol, format, isGzipAllowed, isGzipWanted, timeoutMs, isTimeoutStated };
}

/** Whether gzip is named among encodings, as Connect looks for it: weights are none of its names. */
function isGzipAmong(accepted: string): boolean {
  if (accepted === 'gzip') return true;
  if (!accepted.includes('gzip')) return false;
  return accepted.split(',').some((name) => name.trim() === 'gzip');
}

const TIMEOUT_DIGITS_MAX = 8;
const CONNECT_TIMEOUT_DIGITS_MAX = 10;

/** Milliseconds of a Connect-Timeout-Ms, 0 where it is ill-formed. */
function connectTimeoutMs(text: string): number {
  return text.length > CONNECT_TIMEOUT_DIGITS_MAX ? 0 : digitsOf(text, text.length);
}

/** Milliseconds of a grpc-timeout, 0 where it is ill-formed. */
function grpcTimeoutMs(text: string): number {
  const digits = text.length - 1;
  if (digits > TIMEOUT_DIGITS_MAX) return 0;
  return digitsOf(text, digits) * msOfUnit(text.charCodeAt(digits));
}

/** The number in the first `count` characters, 0 where one of them is no digit. */
function digitsOf(text: string, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return 0;
    value = value * 10 + digit;
  }
  return value;
}

/** Of gRPC's H, M, S, m, u and n. */
function msOfUnit(code: number): number {
  switch (code) {
    case 0x48:
      return 3_600_000;
    case 0x4d:
      return 60_000;
    case 0x53:
      return 1_000;
    case 0x6d:
      return 1;
    case 0x75:
      return 0.001;
    case 0x6e:
      return 0.000_001;
    default:
      return 0;
  }
}
