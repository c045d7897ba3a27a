import { COMPRESSED, ENVELOPE_BYTES, lengthInEnvelope } from '../../http/bodies/envelope.ts';
import type { WireFormat } from '../../protocol/shard-client.ts';
import { connectTimeoutMs, grpcTimeoutMs } from './stated-time.ts';

/** How a call frames its message: in envelopes with trailers after them (gRPC, gRPC-Web), or as the whole body (Connect). */
export type CallProtocol = 'grpc' | 'grpc-web' | 'connect';

/** The headers of a plain call, read once. */
export type PlainHead = {
  readonly protocol: CallProtocol;
  readonly format: WireFormat;
  /** The content type of a good answer, and of an error of gRPC. */
  readonly answerType: string;
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
  /** Content type of the answer. */
  readonly answerType: string;
  /** The heads of calls that state no time, by their compression: most calls share these. */
  readonly heads: PlainHead[];
};

const JSON_TYPE = typeOf('connect', 'json', 'application/json');
const CALL_TYPES: ReadonlyMap<string, CallType> = new Map([
  ['application/grpc', typeOf('grpc', 'proto', 'application/grpc+proto')],
  ['application/grpc+proto', typeOf('grpc', 'proto', 'application/grpc+proto')],
  ['application/grpc+json', typeOf('grpc', 'json', 'application/grpc+json')],
  ['application/grpc-web', typeOf('grpc-web', 'proto', 'application/grpc-web+proto')],
  ['application/grpc-web+proto', typeOf('grpc-web', 'proto', 'application/grpc-web+proto')],
  ['application/grpc-web+json', typeOf('grpc-web', 'json', 'application/grpc-web+json')],
  ['application/proto', typeOf('connect', 'proto', 'application/proto')],
  ['application/json', JSON_TYPE],
]);

function typeOf(protocol: CallProtocol, format: WireFormat, answerType: string): CallType {
  return { protocol, format, answerType, heads: [] };
}

/** Hot. The call type of a content type, or undefined where the general path must read it. */
export function callTypeOf(contentType: string | undefined): CallType | undefined {
  if (contentType === 'application/json') return JSON_TYPE;
  return contentType === undefined ? undefined : CALL_TYPES.get(contentType);
}

/**
 * Hot. The head of a call; null where the general path must take it: another encoding, a time-out that is ill-formed or
 * shorter than a millisecond. `encoding` is of the request, `accepted` what the caller takes; each undefined where the header is missing.
 * O(length), without memory but for the result where a time is stated.
 */
export function callHeadOf(
  type: CallType,
  encoding: string | undefined,
  accepted: string | undefined,
  timeout: string | undefined,
  timeoutMsMax: number,
): PlainHead | null {
  const { protocol } = type;
  const isGzipAllowed = encoding === 'gzip';
  // `identity` in Connect takes the general path; envelopes state whether a message is compressed.
  const isPlain = encoding === undefined || (encoding === 'identity' && protocol !== 'connect');
  if (!isGzipAllowed && !isPlain) return null;
  const isGzipWanted =
    accepted === undefined || accepted === '' ? isGzipAllowed : isGzipAmong(accepted);
  if (timeout === undefined) {
    const at = (isGzipAllowed ? 1 : 0) + (isGzipWanted ? 2 : 0);
    const known = type.heads[at];
    if (known !== undefined && known.timeoutMs === timeoutMsMax) return known;
    const head = headOf(type, isGzipAllowed, isGzipWanted, timeoutMsMax, false);
    type.heads[at] = head;
    return head;
  }
  const statedMs = protocol === 'connect' ? connectTimeoutMs(timeout) : grpcTimeoutMs(timeout);
  if (statedMs < 1) return null;
  return headOf(type, isGzipAllowed, isGzipWanted, Math.min(statedMs, timeoutMsMax), true);
}

function headOf(
  { protocol, format, answerType }: CallType,
  isGzipAllowed: boolean,
  isGzipWanted: boolean,
  timeoutMs: number,
  isTimeoutStated: boolean,
): PlainHead {
  return {
    protocol,
    format,
    answerType,
    isGzipAllowed,
    isGzipWanted,
    timeoutMs,
    isTimeoutStated,
  };
}

/** Whether gzip is named among encodings, by Connect's own rule: weights are not parsed. */
function isGzipAmong(accepted: string): boolean {
  if (accepted === 'gzip') return true;
  if (!accepted.includes('gzip')) return false;
  return accepted.split(',').some((name) => name.trim() === 'gzip');
}

/**
 * Hot. The one message of a body, in place; null where the general path must take it: no message or several, a flag that
 * is not known, a compressed one whose encoding is not named, or more than `bytesMax`. O(1).
 */
export function messageOf(
  { protocol, isGzipAllowed }: PlainHead,
  body: Uint8Array,
  bytesMax: number,
): Uint8Array | null {
  if (protocol === 'connect') return body.length > bytesMax ? null : body;
  if (body.length < ENVELOPE_BYTES) return null;
  const flags = body[0] as number;
  const length = lengthInEnvelope(body, 0);
  if (length !== body.length - ENVELOPE_BYTES || length > bytesMax || flags > COMPRESSED) {
    return null;
  }
  if (flags === COMPRESSED && (!isGzipAllowed || length === 0)) return null;
  return body.subarray(ENVELOPE_BYTES);
}

/** Hot. Whether the message that `messageOf` found in `body` is compressed. */
export function isCompressedMessage(
  { protocol, isGzipAllowed }: PlainHead,
  body: Uint8Array,
): boolean {
  return protocol === 'connect' ? isGzipAllowed : body[0] === COMPRESSED;
}
