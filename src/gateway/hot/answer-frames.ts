import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ENVELOPE_BYTES, enveloped } from '../../http/bodies/envelope.ts';
import { setGrpcStatus } from '../../http/connect/protocol/grpc-trailer.ts';
import type { AppError } from '../../shared/app-error.ts';
import { connectErrorFromAppError } from '../connect/connect-error.ts';
import type { PlainHead } from './call-head.ts';

/** A plain yes or no, or the bytes of an answer in the format of the call. Valid until the call returns. */
export type DecisionAnswer = 'allowed' | 'denied' | Uint8Array;

const ALLOWED_JSON = Buffer.from('{"allowed":true}');
const DENIED_JSON = Buffer.from('{"allowed":false}');
const ALLOWED_PROTO = Buffer.from([0x08, 0x01]);
const DENIED_PROTO = Buffer.alloc(0);
const OK_TRAILER = webTrailer(Buffer.from('grpc-status: 0\r\n'));

/** Yes and no as they leave, by protocol and format. */
const PREPARED = {
  connect: {
    json: { allowed: ALLOWED_JSON, denied: DENIED_JSON },
    proto: { allowed: ALLOWED_PROTO, denied: DENIED_PROTO },
  },
  grpc: {
    json: { allowed: enveloped(ALLOWED_JSON, false), denied: enveloped(DENIED_JSON, false) },
    proto: { allowed: enveloped(ALLOWED_PROTO, false), denied: enveloped(DENIED_PROTO, false) },
  },
  'grpc-web': {
    json: {
      allowed: enveloped(ALLOWED_JSON, false, OK_TRAILER),
      denied: enveloped(DENIED_JSON, false, OK_TRAILER),
    },
    proto: {
      allowed: enveloped(ALLOWED_PROTO, false, OK_TRAILER),
      denied: enveloped(DENIED_PROTO, false, OK_TRAILER),
    },
  },
} as const;

/** Hot. The body of a yes or no in the framing of the call. */
export function preparedAnswer(
  { protocol, format }: PlainHead,
  answer: 'allowed' | 'denied',
): Buffer {
  const ofProtocol =
    protocol === 'connect'
      ? PREPARED.connect
      : protocol === 'grpc'
        ? PREPARED.grpc
        : PREPARED['grpc-web'];
  const ofFormat = format === 'json' ? ofProtocol.json : ofProtocol.proto;
  return answer === 'allowed' ? ofFormat.allowed : ofFormat.denied;
}

/** The body of any other good answer, `message` compressed already or not. `isCopied`: it must not be `message` itself. */
export function framedAnswer(
  { protocol }: PlainHead,
  message: Uint8Array,
  isCompressed: boolean,
  isCopied: boolean,
): Uint8Array {
  if (protocol === 'connect') return isCopied ? Buffer.from(message) : message;
  return enveloped(message, isCompressed, protocol === 'grpc-web' ? OK_TRAILER : undefined);
}

/** Whether an answer leaves as it is, without compression. */
export function isSentPlain(
  { isGzipWanted }: PlainHead,
  answer: Uint8Array,
  compressMinBytes: number,
): boolean {
  return !isGzipWanted || answer.byteLength < compressMinBytes;
}

/** The status of a failed call of gRPC as name and value: grpc-status, grpc-message, grpc-status-details-bin. */
export function errorTrailer(error: AppError): Headers {
  return setGrpcStatus(new Headers(), connectErrorFromAppError(error));
}

/** The body of a failed call of gRPC-Web: its trailers alone. */
export function webErrorBody(error: AppError): Buffer {
  return webTrailer(trailerSerialize(errorTrailer(error)));
}

function webTrailer(bytes: Uint8Array): Buffer {
  const envelope = Buffer.alloc(ENVELOPE_BYTES + bytes.length);
  envelope[0] = trailerFlag;
  envelope.writeUInt32BE(bytes.length, 1);
  envelope.set(bytes, ENVELOPE_BYTES);
  return envelope;
}
