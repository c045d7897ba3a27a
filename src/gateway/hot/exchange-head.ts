import { ENVELOPE_BYTES } from '../../http/bodies/envelope.ts';
import { isKnownVersion, VERSION_HEADER } from '../../http/connect/protocol/wire.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { callHeadOf, callTypeOf, type PlainHead } from './call-head.ts';

/** Limits of the hot path over HTTP/1.1. */
export type ExchangeLimits = {
  /** Largest message. */
  readonly bodyBytesMax: number;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
};

/**
 * Hot. The head of a plain call of Connect or gRPC-Web over HTTP/1.1, whose body has a stated length; null where the
 * general path must take it. Only within the listener's handler.
 */
export function exchangeHeadOf(exchange: HttpExchange, limits: ExchangeLimits): PlainHead | null {
  const type = callTypeOf(exchange.header('content-type'));
  // gRPC has trailers, which HTTP/1.1 does not carry to every caller.
  if (type === undefined || type.protocol === 'grpc') return null;
  const isConnect = type.protocol === 'connect';
  const head = callHeadOf(
    type,
    stated(exchange.header(isConnect ? 'content-encoding' : 'grpc-encoding')),
    stated(acceptedOf(exchange, type)),
    stated(exchange.header(isConnect ? 'connect-timeout-ms' : 'grpc-timeout')),
    limits.timeoutMsMax,
  );
  const length = exchange.header('content-length');
  if (head === null || length === '') return null;
  if (!(Number(length) <= bodyBytesMaxOf(head, limits))) return null;
  // A whole body that is compressed is unpacked there.
  if (isConnect && head.isGzipAllowed) return null;
  return isConnect && !isKnownVersion(exchange.header(VERSION_HEADER)) ? null : head;
}

/** The encodings that the caller takes, by the header of its protocol; '' for none. */
export function acceptedOf(
  exchange: HttpExchange,
  { protocol }: Pick<PlainHead, 'protocol'>,
): string {
  return exchange.header(protocol === 'connect' ? 'accept-encoding' : 'grpc-accept-encoding');
}

/** The longest body of a call: a message, in its envelope where it has one. */
export function bodyBytesMaxOf({ protocol }: PlainHead, { bodyBytesMax }: ExchangeLimits): number {
  return protocol === 'connect' ? bodyBytesMax : bodyBytesMax + ENVELOPE_BYTES;
}

function stated(value: string): string | undefined {
  return value === '' ? undefined : value;
}
